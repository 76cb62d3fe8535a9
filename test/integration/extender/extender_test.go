// SPDX-License-Identifier: Apache-2.0

// Package extender tests a stock kube-scheduler in a local control plane that places pods by a plugin it does not have,
// through scheduler-extender. It needs programs that were built before, so it has its own make target.
package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// long is longer than anything here takes.
const long = time.Minute

// The configurations that people copy: the scheduler's and the extender's.
const (
	config  = "../../../manifests/config/extender.yaml"
	plugins = "../../../manifests/config/extender-plugins.yaml"
)

// Values in the scheduler's configuration that the tests replace.
const (
	certificateFolder = "/etc/kubernetes/scheduler-extender"
	url               = "https://127.0.0.1:8888/"
	noBinding         = "# bindVerb: bind"
	names             = "nodeCacheCapable: true"
	httpTimeout       = "httpTimeout: 5s"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is a control plane with nodes, and the certificates by which
// an extender and a scheduler authenticate each other.
type stand struct {
	*cluster.Cluster
	certificates string
	address      string
	// kubeconfig is the extender's.
	kubeconfig string
	pods       int
}

func newStand(t *testing.T) *stand {
	c := &stand{Cluster: shared.Get(t), certificates: t.TempDir(), address: cluster.FreeAddress(t, "127.0.0.1")}
	c.kubeconfig = filepath.Join(c.Folder(), "kube-scheduler.kubeconfig")
	c.writeCertificates(t)
	// Disk types alternate: ssd, hdd, ssd, hdd.
	c.AddNodes(t, 4)
	c.CreateNodes(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
	return c
}

// writeCertificates writes the files that the page on extenders tells an operator to create: a CA, ca.crt, and the
// pairs that it signed for the extender, server, and for the scheduler, scheduler.
func (c *stand) writeCertificates(t *testing.T) {
	t.Helper()
	authority, err := localcluster.NewAuthority("scheduler-extender-ca")
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Server("server")
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := authority.Client("scheduler")
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{
		"ca.crt": authority.PEM(), "server.crt": server.Certificate, "server.key": server.Key,
		"scheduler.crt": scheduler.Certificate, "scheduler.key": scheduler.Key,
	} {
		cluster.Write(t, filepath.Join(c.certificates, file), string(content))
	}
}

// startScheduler starts the stock scheduler with the configuration in manifests/. The address, the certificates and the
// timeout are the test's, and more text is replaced: old, new, old, new. The long timeout is for slow, busy machines:
// after a late answer the pod would be retried only when something changes in the cluster, or after 60 to 90 s.
func (c *stand) startScheduler(t *testing.T, replacements ...string) *localcluster.Scheduler {
	t.Helper()
	text := cluster.Read(t, config)
	replacements = append(replacements, certificateFolder, c.certificates, url, "https://"+c.address+"/",
		httpTimeout, "httpTimeout: "+long.String())
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			t.Fatalf("%s does not say %q", config, replacements[i])
		}
		text = strings.ReplaceAll(text, replacements[i], replacements[i+1])
	}
	file := filepath.Join(t.TempDir(), "extender.yaml")
	cluster.Write(t, file, text)
	return c.StartScheduler(t, cluster.Program(t, "STOCK_SCHEDULER"), file)
}

// startExtender starts scheduler-extender with a configuration, the stand's kubeconfig and the scheduler's timeout, and
// waits until it can answer. The returned function stops it.
func (c *stand) startExtender(t *testing.T, config string) (stop func()) {
	t.Helper()
	command := exec.Command(cluster.Program(t, "SCHEDULER_EXTENDER"),
		"--config="+config,
		"--kubeconfig="+c.kubeconfig,
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
	stop = sync.OnceFunc(func() {
		if err := errors.Join(command.Process.Signal(syscall.SIGTERM), <-exited); err != nil {
			t.Errorf("scheduler-extender: %v, want exit code 0 after SIGTERM", err)
		}
	})
	t.Cleanup(stop)
	client := c.client(t)
	c.Await(t, "scheduler-extender to be ready", func() error {
		response, err := client.Get("https://" + c.address + "/healthz")
		if err != nil {
			return err
		}
		return errors.Join(cluster.Unless(response.StatusCode == http.StatusOK, "%s", response.Status), response.Body.Close())
	})
	return stop
}

// createPods creates pods without a scheduler name, each changed by the edits.
func (c *stand) createPods(t *testing.T, count int, edits ...func(*corev1.Pod)) []*corev1.Pod {
	t.Helper()
	var created []*corev1.Pod
	for range count {
		c.pods++
		pod := localcluster.NewPod(fmt.Sprintf("pod-%d", c.pods), "")
		for _, edit := range edits {
			edit(pod)
		}
		created = append(created, c.CreatePod(t, pod))
	}
	return created
}

// expectSSD waits until the pods are bound, and checks that their nodes have ssd.
func (c *stand) expectSSD(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		if node := c.AwaitBound(t, pod); node != "node-1" && node != "node-3" {
			t.Errorf("%s is on %s, want a node with ssd: node-1 or node-3", pod.Name, node)
		}
	}
}

// TestStockSchedulerPlacesPodsAsThePluginSays covers extenders that receive names of nodes, and whole nodes.
func TestStockSchedulerPlacesPodsAsThePluginSays(t *testing.T) {
	c := newStand(t)
	t.Run("by names", func(t *testing.T) {
		c.startScheduler(t)
		c.startExtender(t, plugins)
		c.expectSSD(t, c.createPods(t, 6)...)
	})
	t.Run("by whole nodes, bound by the extender", func(t *testing.T) {
		c.startScheduler(t, names, "nodeCacheCapable: false", noBinding, "bindVerb: bind")
		c.startExtender(t, plugins)
		c.expectSSD(t, c.createPods(t, 6)...)
	})
}

// TestTwoExtenders checks that nodes must pass both, and that only the one that is not ignorable stops scheduling when it
// is down.
func TestTwoExtenders(t *testing.T) {
	c := newStand(t)
	second := *c
	second.address = cluster.FreeAddress(t, "127.0.0.1")
	text := cluster.Read(t, config)
	entry := text[strings.Index(text, "  - urlPrefix:"):]
	c.startScheduler(t, entry, entry+strings.NewReplacer(
		url, "https://"+second.address+"/", "ignorable: false", "ignorable: true").Replace(entry))
	stop := c.startExtender(t, plugins)
	// The ignorable one is down.
	c.expectSSD(t, c.createPods(t, 1)...)

	// The ignorable one requires a label that only node-3 has.
	patch := []byte(`{"metadata":{"labels":{"second":"yes"}}}`)
	if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "node-3", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	requires := filepath.Join(t.TempDir(), "second.yaml")
	cluster.Write(t, requires, strings.NewReplacer("nodeLabel: disktype", "nodeLabel: second", "[ssd, hdd]", "[\"yes\"]").
		Replace(cluster.Read(t, plugins)))
	second.startExtender(t, requires)
	for _, pod := range c.createPods(t, 4) {
		if node := c.AwaitBound(t, pod); node != "node-3" {
			t.Errorf("%s is on %s, want node-3, the only node with the label", pod.Name, node)
		}
	}
	stop()
	pod := c.createPods(t, 1)[0]
	c.AwaitPending(t, pod.Namespace, pod.Name, "connection refused")
}

// TestDeploymentHasThePermissionsThatTheExtenderNeeds runs the extender with the configuration and as the service account
// of manifests/scheduler-extender.
func TestDeploymentHasThePermissionsThatTheExtenderNeeds(t *testing.T) {
	const base = "../../../manifests/scheduler-extender"
	c := newStand(t)
	c.Kubectl(t, t.Context(), "apply", "-k", base)
	t.Cleanup(func() { c.Kubectl(t, context.Background(), "delete", "-k", base) })
	account := cluster.Account{Namespace: metav1.NamespaceSystem, Name: "scheduler-extender"}
	c.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
		User: account.User(), ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "watch", Resource: "pods"},
	})
	credentials, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	user := credentials.Contexts[credentials.CurrentContext].AuthInfo
	credentials.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: c.Token(t, account)}
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*credentials, c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.startScheduler(t)
	c.startExtender(t, base+"/config.yaml")
	c.expectSSD(t, c.createPods(t, 2)...)
}

// client returns an HTTPS client for the extender, with the scheduler's certificate.
func (c *stand) client(t *testing.T) *http.Client {
	t.Helper()
	roots, err := cert.NewPool(filepath.Join(c.certificates, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.certificates, "scheduler.crt"), filepath.Join(c.certificates, "scheduler.key"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: long}
}
