// SPDX-License-Identifier: Apache-2.0

// Package endtoend sees a stock kube-scheduler place pods as a plugin says that it does not have, through scheduler-extender,
// in a local control plane. It needs programs that were built before, so it is run by its own make target.
package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/testinput"
)

// long is a time that nothing here takes.
const long = time.Minute

// The configurations that people copy: the scheduler's and the extender's.
const (
	config  = "../../../manifests/config/extender.yaml"
	plugins = "../../../manifests/config/extender-plugins.yaml"
)

// What the scheduler's says, and a test puts its own in place of.
const (
	certificateFolder = "/etc/kubernetes/scheduler-extender"
	url               = "https://127.0.0.1:8888/"
	noBinding         = "# bindVerb: bind"
	notIgnorable      = "ignorable: false"
	names             = "nodeCacheCapable: true"
	httpTimeout       = "httpTimeout: 5s"
)

// inputs are the programs the test works with, each the value of an environment variable. The scheduler is a stock one.
type inputs struct {
	scheduler, extender, apiServer, etcd, kwok string
}

// readInputs fails the test when one is missing.
func readInputs(t *testing.T) inputs {
	t.Helper()
	return inputs{
		scheduler: testinput.File(t, "STOCK_SCHEDULER"),
		extender:  testinput.File(t, "SCHEDULER_EXTENDER"),
		apiServer: testinput.File(t, "KUBE_APISERVER"),
		etcd:      testinput.File(t, "ETCD"),
		kwok:      testinput.File(t, "KWOK"),
	}
}

// cluster is a control plane with nodes, and the certificates with which an extender and a scheduler know each other.
type cluster struct {
	inputs
	plane        *localcluster.ControlPlane
	certificates string
	address      string
	pods         int
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{inputs: readInputs(t), certificates: t.TempDir(), address: freeAddress(t)}
	writeCertificates(t, c.certificates)
	var err error
	c.plane, err = localcluster.Start(t.Context(), localcluster.Options{
		Etcd: c.etcd, KubeAPIServer: c.apiServer, KWOK: c.kwok, Parent: t.TempDir(), Progress: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	// Disk types take turns: ssd, hdd, ssd, hdd.
	if _, err := c.plane.AddNodes(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if err := c.plane.CreateNodes(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// freeAddress is one that nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// startScheduler starts the stock scheduler with the configuration in manifests/, in which the address, the certificates and the
// time for an answer are the test's, and some more text is replaced: old, new, old, new. Had an answer come late, which it may on
// a slow, busy machine, the pod would be tried again when something changes in the cluster, or after 60 to 90 s.
func (c *cluster) startScheduler(t *testing.T, replacements ...string) *localcluster.Scheduler {
	t.Helper()
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	replacements = append(replacements, certificateFolder, c.certificates, url, "https://"+c.address+"/",
		httpTimeout, "httpTimeout: "+long.String())
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			t.Fatalf("%s does not say %q", config, replacements[i])
		}
		text = strings.ReplaceAll(text, replacements[i], replacements[i+1])
	}
	file := filepath.Join(t.TempDir(), "extender.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	scheduler, err := c.plane.StartScheduler(t.Context(), c.scheduler, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scheduler.Stop(); err != nil {
			t.Error(err)
		}
	})
	return scheduler
}

// startExtender starts scheduler-extender with the configuration in manifests/ as it is, and with the scheduler's own
// kubeconfig and as much time for an answer as that waits, and waits until it can answer. What it gives ends it.
func (c *cluster) startExtender(t *testing.T) (stop func()) {
	t.Helper()
	command := exec.Command(c.extender,
		"--config="+plugins,
		"--kubeconfig="+filepath.Join(c.plane.Folder(), "kube-scheduler.kubeconfig"),
		"--listen="+c.address,
		"--bind",
		"--request-timeout="+long.String(),
		"--tls-cert-file="+filepath.Join(c.certificates, "server.crt"),
		"--tls-private-key-file="+filepath.Join(c.certificates, "server.key"),
		"--client-ca-file="+filepath.Join(c.certificates, "ca.crt"),
	)
	command.Stdout, command.Stderr = t.Output(), t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-exited; err != nil {
			t.Errorf("scheduler-extender: %v, want exit code 0 after SIGTERM", err)
		}
	}
	t.Cleanup(stop)
	client := c.client(t, true)
	await(t, "scheduler-extender is ready", func() (bool, error) {
		select {
		case err := <-exited:
			ended = true
			return false, fmt.Errorf("it ended: %v", err)
		default:
		}
		response, err := client.Get("https://" + c.address + "/healthz")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK, nil
	})
	return stop
}

func await(t *testing.T, what string, condition wait.ConditionFunc) {
	t.Helper()
	if err := wait.PollImmediate(50*time.Millisecond, long, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// createPods creates pods that name no scheduler, with what edits change in each, and gives their names.
func (c *cluster) createPods(t *testing.T, count int, edits ...func(*corev1.Pod)) []string {
	t.Helper()
	var created []string
	for range count {
		c.pods++
		pod := localcluster.NewPod(fmt.Sprintf("pod-%d", c.pods), "")
		for _, edit := range edits {
			edit(pod)
		}
		if _, err := c.plane.Client().CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		created = append(created, pod.Name)
	}
	return created
}

func (c *cluster) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.plane.Client().CoreV1().Pods(corev1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// awaitBound waits until the pods are bound, and sees that it is to nodes with ssd.
func (c *cluster) awaitBound(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		node := ""
		await(t, name+" is bound", func() (bool, error) {
			node = c.pod(t, name).Spec.NodeName
			return node != "", nil
		})
		if node != "node-1" && node != "node-3" {
			t.Errorf("%s is on %s, want a node with ssd: node-1 or node-3", name, node)
		}
	}
}

// awaitNotBound waits until the scheduler has said why it does not bind a pod.
func (c *cluster) awaitNotBound(t *testing.T, name, why string) {
	t.Helper()
	message := ""
	defer func() { t.Logf("%s: %s", name, message) }()
	await(t, name+" is not bound because: "+why, func() (bool, error) {
		pod := c.pod(t, name)
		if pod.Spec.NodeName != "" {
			return false, fmt.Errorf("it is on %s", pod.Spec.NodeName)
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				message = condition.Message
			}
		}
		return strings.Contains(message, why), nil
	})
}

// TestStockSchedulerPlacesPodsAsThePluginSays, although it does not have it: by names of nodes, and by whole nodes.
func TestStockSchedulerPlacesPodsAsThePluginSays(t *testing.T) {
	c := newCluster(t)
	t.Run("by names", func(t *testing.T) {
		c.startScheduler(t)
		c.startExtender(t)
		c.awaitBound(t, c.createPods(t, 6)...)
	})
	t.Run("by whole nodes, bound by the extender", func(t *testing.T) {
		c.startScheduler(t, names, "nodeCacheCapable: false", noBinding, "bindVerb: bind")
		c.startExtender(t)
		c.awaitBound(t, c.createPods(t, 6)...)
	})
	t.Run("the plugin's filter names its reason", func(t *testing.T) {
		c.startScheduler(t)
		c.startExtender(t)
		c.awaitNotBound(t, c.createPods(t, 1, onlyOnBare)[0], `1 node(s) didn't have the label "disktype"`)
	})
}

// onlyOnBare has a pod ask for the node without labels. The pod says so itself: a change of the other nodes, the scheduler may
// see after the pod.
func onlyOnBare(pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"bare"}},
			},
		}}},
	}}
}

// changeSomething has the scheduler try again at once; without any change in the cluster it does after 60 to 90 s.
func (c *cluster) changeSomething(t *testing.T) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"changed":"%d"}}}`, time.Now().UnixNano())
	nodes := c.plane.Client().CoreV1().Nodes()
	if _, err := nodes.Patch(t.Context(), "bare", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestExtenderThatIsDown sees what the comments in the configuration say: no pod is bound, unless it is ignorable, and then all
// are; but if it is to bind them, none is even then. When it comes back, they are bound.
func TestExtenderThatIsDown(t *testing.T) {
	c := newCluster(t)
	t.Run("not ignorable", func(t *testing.T) {
		c.startScheduler(t)
		waiting := c.createPods(t, 1)[0]
		c.awaitNotBound(t, waiting, "connection refused")
		stop := c.startExtender(t)
		c.changeSomething(t)
		c.awaitBound(t, waiting)
		stop()
		waiting = c.createPods(t, 1)[0]
		c.awaitNotBound(t, waiting, "connection refused")
		c.startExtender(t)
		c.changeSomething(t)
		c.awaitBound(t, waiting)
	})
	t.Run("ignorable", func(t *testing.T) {
		c.startScheduler(t, notIgnorable, "ignorable: true")
		name := c.createPods(t, 1)[0]
		await(t, name+" is bound", func() (bool, error) { return c.pod(t, name).Spec.NodeName != "", nil })
	})
	t.Run("ignorable, and to bind", func(t *testing.T) {
		c.startScheduler(t, notIgnorable, "ignorable: true", noBinding, "bindVerb: bind")
		waiting := c.createPods(t, 1)[0]
		c.awaitNotBound(t, waiting, "binding rejected")
		c.startExtender(t)
		c.awaitBound(t, waiting)
	})
}

// TestSchedulerWithoutACertificateIsRefused starts a scheduler that cannot show who it is.
func TestSchedulerWithoutACertificateIsRefused(t *testing.T) {
	c := newCluster(t)
	c.startScheduler(t, "certFile:", "# certFile:", "keyFile:", "# keyFile:")
	c.startExtender(t)
	// Whether the scheduler reads the alert, "certificate required", before it sees the end of the connection, is left to chance.
	c.awaitNotBound(t, c.createPods(t, 1)[0], "https://"+c.address+"/filter")
}

// TestBindAgain asks the extender itself to bind a pod of a real API server twice, and then to another node, and under the name
// of another pod.
func TestBindAgain(t *testing.T) {
	c := newCluster(t)
	c.startScheduler(t) // the kubeconfig is its
	c.startExtender(t)
	client := c.client(t, true)
	ask := func(args extenderv1.ExtenderBindingArgs) string {
		body, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Post("https://"+c.address+"/bind", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var result extenderv1.ExtenderBindingResult
		if err := json.NewDecoder(response.Body).Decode(&result); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", response.Status, err)
		}
		return result.Error
	}
	// A pod that the scheduler leaves alone.
	pod := localcluster.NewPod("by-hand", "nobody")
	pod, err := c.plane.Client().CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := extenderv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: "of-another", Node: "node-2"}
	if problem := ask(args); !strings.Contains(problem, "UID") {
		t.Errorf("another pod's UID: %q", problem)
	}
	args.PodUID = pod.UID
	for range 2 {
		if problem := ask(args); problem != "" {
			t.Error(problem)
		}
	}
	args.Node = "node-4"
	if problem := ask(args); !strings.Contains(problem, "it is bound to node node-2") {
		t.Errorf("another node: %q", problem)
	}
	args.Node, args.PodUID = "node-2", "of-another"
	if problem := ask(args); problem == "" {
		t.Error("another pod's UID, bound: no error")
	}
	if node := c.pod(t, pod.Name).Spec.NodeName; node != "node-2" {
		t.Errorf("the pod is on %s", node)
	}
	if _, err := c.client(t, false).Get("https://" + c.address + "/healthz"); err == nil {
		t.Error("a client without a certificate got an answer")
	}
}

// client is an HTTPS client for the extender, with the scheduler's certificate or without any.
func (c *cluster) client(t *testing.T, certificate bool) *http.Client {
	t.Helper()
	transport, err := newTransport(c.certificates, certificate)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport, Timeout: long}
}
