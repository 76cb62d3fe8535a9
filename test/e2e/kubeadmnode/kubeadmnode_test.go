// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"kube-scheduler-fork/test/testinput"
)

// patience is how long the tests wait for what takes a second or two.
const patience = time.Minute

func TestTwoNodesFormOneCluster(t *testing.T) {
	before := leftOvers(t)
	var nodes [2]*Node
	var group errgroup.Group
	for i, name := range []string{"cp1", "cp2"} {
		group.Go(func() (err error) {
			nodes[i], err = hub.Start(t.Context(), NodeOptions{Name: name})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	first, second := nodes[0], nodes[1]
	const patches = "/etc/kubernetes/patches"
	for _, node := range nodes {
		patch := "metadata: {annotations: {patched: of-" + node.Name() + "}}\n"
		if err := node.WriteFile(patches+"/kube-scheduler+strategic.yaml", []byte(patch)); err != nil {
			t.Fatal(err)
		}
	}
	lines := "scheduler: {extraArgs: {v: '3'}}\n"
	if err := first.Init(t.Context(), InitOptions{ClusterConfiguration: lines, Patches: patches}); err != nil {
		t.Fatal(err)
	}
	if err := second.Join(t.Context(), first, JoinOptions{Patches: patches}); err != nil {
		t.Fatal(err)
	}

	t.Run("EachNodeAnswersForBoth", func(t *testing.T) {
		for _, node := range nodes {
			list, err := clientOf(t, node).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 2 {
				t.Errorf("%s knows %d nodes, want 2", node.Name(), len(list.Items))
			}
		}
	})
	t.Run("ConfigurationAndPatchesReachTheScheduler", func(t *testing.T) {
		for _, node := range nodes {
			name := "kube-scheduler-" + node.Name()
			pod, err := clientOf(t, node).CoreV1().Pods(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := pod.Annotations["patched"]; got != "of-"+node.Name() {
				t.Errorf("%s: annotation patched=%q, want of-%s", name, got, node.Name())
			}
			if !slices.Contains(pod.Spec.Containers[0].Command, "--v=3") {
				t.Errorf("%s runs %q, want --v=3 in it", name, pod.Spec.Containers[0].Command)
			}
		}
	})
	t.Run("KubeletIsStartedAsKubeadmsUnitFileDoes", func(t *testing.T) {
		output, err := first.Run(t.Context(), "tr '\\0' ' ' < /proc/$(pgrep --exact kubelet)/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"/usr/bin/kubelet ", "--config=/var/lib/kubelet/config.yaml ", "--kubeconfig=/etc/kubernetes/kubelet.conf ",
			"--container-runtime-endpoint=unix:///run/containerd/containerd.sock ", "--node-ip=" + first.Address() + " ",
		} {
			if !strings.Contains(output, want) {
				t.Errorf("kubelet's command line has no %q: %s", want, output)
			}
		}
	})
	t.Run("PodsReachTheAPIServerByItsServiceAddress", func(t *testing.T) { testPods(t, nodes[:]) })
	t.Run("FakeNodesAreReady", func(t *testing.T) {
		if err := first.FakeNodes(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("NodeComesBackAfterAPowerCut", func(t *testing.T) { testPowerCut(t, first, second) })

	for _, node := range nodes {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}
	expectNothingLeft(t, before)
}

// testPods runs, on each node, a pod that asks the API server for its version and, once the API server has answered, goes on.
func testPods(t *testing.T, nodes []*Node) {
	const image = "registry.example.com/kubectl:test"
	archive := filepath.Join(t.TempDir(), "kubectl.tar")
	if err := BuildImage(archive, image, filepath.Join(hub.programs.folder, "kubectl"), "/usr/local/bin/kubectl"); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, nodes[0])
	for _, node := range nodes {
		if err := node.Import(t.Context(), archive); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "asks-from-" + node.Name()},
			Spec: corev1.PodSpec{
				NodeSelector:   map[string]string{corev1.LabelHostname: node.Name()},
				RestartPolicy:  corev1.RestartPolicyNever,
				InitContainers: []corev1.Container{{Name: "ask", Image: image, Args: []string{"version", "--short"}}},
				Containers:     []corev1.Container{{Name: "go-on", Image: hub.pauseImage}},
			},
		}
		if _, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range nodes {
		pods := client.CoreV1().Pods(metav1.NamespaceDefault)
		var pod *corev1.Pod
		err := eventually(t, func(ctx context.Context) (done bool, err error) {
			pod, err = pods.Get(ctx, "asks-from-"+node.Name(), metav1.GetOptions{})
			return err == nil && pod.Status.Phase == corev1.PodRunning, nil
		})
		if err != nil {
			t.Fatalf("the pod on %s is not running: %v\n%+v\n%s", node.Name(), err, pod.Status, node.LogTail("asks-from"))
		}
		if pod.Spec.NodeName != node.Name() {
			t.Errorf("the pod is on %s, want %s", pod.Spec.NodeName, node.Name())
		}
		log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: "ask"}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := "Server Version: " + hub.version; !strings.Contains(string(log), want) {
			t.Errorf("kubectl in the pod says %q, want %q", log, want)
		}
	}
}

// testPowerCut cuts off the second node: what it had written to its disk is there again, and its pods run again.
func testPowerCut(t *testing.T, first, second *Node) {
	if err := second.WriteFile("/var/lib/written", []byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := second.PowerCut(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Run(t.Context(), "true"); err == nil {
		t.Error("a node without power runs a script")
	}
	if err := second.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if output, err := second.Run(t.Context(), "cat /var/lib/written"); err != nil || output != "before" {
		t.Errorf("the disk has %q (%v), want \"before\"", output, err)
	}
	err := eventually(t, func(ctx context.Context) (bool, error) {
		_, err := second.Run(ctx, "pgrep --exact kube-apiserver && kubectl get --raw /readyz")
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, second.LogTail("kubelet", "kube-apiserver"))
	}
	for _, node := range []*Node{second, first} {
		if err := node.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCommandsRunInsideTheNode(t *testing.T) {
	before := leftOvers(t)
	node, err := hub.Start(t.Context(), NodeOptions{Name: "alone"})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("SignalReachesTheCommandItself", func(t *testing.T) {
		sleep := node.Command(t.Context(), "sleep", "1000")
		if err := sleep.Start(); err != nil {
			t.Fatal(err)
		}
		// It is named env until env has found it.
		err := eventually(t, func(context.Context) (bool, error) {
			return strings.TrimSpace(testinput.Read(t, fmt.Sprintf("/proc/%d/comm", sleep.Process.Pid))) == "sleep", nil
		})
		if err != nil {
			t.Fatalf("the process is %s, want sleep", testinput.Read(t, fmt.Sprintf("/proc/%d/comm", sleep.Process.Pid)))
		}
		if output, err := node.Run(t.Context(), "pgrep --full --exact 'sleep 1000'"); err != nil {
			t.Errorf("the node does not see the command: %v %s", err, output)
		}
		if err := sleep.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := sleep.Wait(); err == nil || sleep.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("the command ended with %v, want the signal", err)
		}
		if output, err := node.Run(t.Context(), "! pgrep --full --exact 'sleep 1000'"); err != nil {
			t.Errorf("the command lives on after it was killed: %s", output)
		}
	})
	t.Run("CommandHasTheNodesNamespaces", func(t *testing.T) {
		output, err := node.Run(t.Context(), "hostname; pwd; hostname --all-ip-addresses; cat /proc/1/comm; echo $KUBECONFIG")
		if err != nil {
			t.Fatal(err)
		}
		want := "alone\n/root\n" + node.Address() + " \nbash\n/etc/kubernetes/admin.conf\n"
		if output != want {
			t.Errorf("got %q, want %q", output, want)
		}
	})
	t.Run("ErrorHasTheLastLines", func(t *testing.T) {
		output, err := node.Run(t.Context(), "seq 100; false; echo never")
		if err == nil || !strings.Contains(err.Error(), "\n99\n100\n") || strings.Contains(err.Error(), "\n50\n") {
			t.Errorf("the error is %v, want it with the end of the output", err)
		}
		if !strings.HasPrefix(output, "1\n2\n") || strings.Contains(output, "never") {
			t.Errorf("the output is %q, want all of it up to the failure", output)
		}
	})
	t.Run("CancelledScriptLeavesNoProcess", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		ended := make(chan error, 1)
		go func() {
			_, err := node.Run(ctx, "sleep 2000; true")
			ended <- err
		}()
		err := eventually(t, func(ctx context.Context) (bool, error) {
			_, err := node.Run(ctx, "pgrep --full --exact 'sleep 2000'")
			return err == nil, nil
		})
		cancel(enough)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, enough) {
			t.Errorf("the script ended with %v, want the reason of the cancellation", err)
		}
		// The kernel takes a moment to end it.
		err = eventually(t, func(ctx context.Context) (bool, error) {
			_, err := node.Run(ctx, "! pgrep --full --exact 'sleep 2000'")
			return err == nil, nil
		})
		if err != nil {
			t.Errorf("what the script started lives on: %v", err)
		}
	})
	t.Run("MachinesFilesAndSettingsStay", func(t *testing.T) {
		const setting = "/proc/sys/kernel/panic"
		value := testinput.Read(t, setting)
		folders := []string{"/etc", "/usr/bin", "/var/lib", "/opt", "/root"}
		script := "for folder in " + strings.Join(folders, " ") + "; do echo node > $folder/of-a-node; done; echo 7777 > " + setting
		if _, err := node.Run(t.Context(), script); err != nil {
			t.Fatal(err)
		}
		if got := testinput.Read(t, node.Root()+setting); got != "7777\n" {
			t.Errorf("the node's own %s is %q, want 7777", setting, got)
		}
		if got := testinput.Read(t, setting); got != value {
			t.Errorf("the machine's %s became %q, was %q", setting, got, value)
		}
		for _, folder := range folders {
			if _, err := os.Stat(folder + "/of-a-node"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s/of-a-node on the machine: %v, want no such file", folder, err)
			}
		}
		if _, err := node.Run(t.Context(), "echo > "+filepath.Join(hub.folder, "of-a-node")); err == nil {
			t.Error("the node writes to the output folder")
		}
	})
	t.Run("ScriptMayLeaveAProcessBehind", func(t *testing.T) {
		output, err := node.Run(t.Context(), "sleep 3000 & echo started")
		if err != nil || output != "started\n" {
			t.Errorf("got %q and %v, want the script's success", output, err)
		}
		if output, err := node.Run(t.Context(), "pkill --full --exact 'sleep 3000'"); err != nil {
			t.Errorf("the process does not live on: %v %s", err, output)
		}
	})
	t.Run("TemporaryFilesOfTheTestAreSeenAtTheSamePath", func(t *testing.T) {
		folder := t.TempDir()
		if output, err := node.Run(t.Context(), "echo from the node > "+folder+"/file"); err != nil {
			t.Fatal(err, output)
		}
		if got := testinput.Read(t, folder+"/file"); got != "from the node\n" {
			t.Errorf("the file says %q", got)
		}
	})
	t.Run("NoOtherNetworkIsReached", func(t *testing.T) {
		// An address for documentation, which belongs to nobody.
		for place, command := range map[string]interface{ CombinedOutput() ([]byte, error) }{
			"the node": node.Command(t.Context(), "ip", "route", "get", "192.0.2.1"),
			"the hub":  exec.CommandContext(t.Context(), "ip", "route", "get", "192.0.2.1"),
		} {
			output, err := command.CombinedOutput()
			if reached := err == nil && !strings.Contains(string(output), "via "+hubAddress); reached {
				t.Errorf("from %s: %s, want no way, or one to the hub", place, output)
			}
		}
	})
	t.Run("TwoNodesCannotHaveOneName", func(t *testing.T) {
		other, err := hub.Start(t.Context(), NodeOptions{Name: "alone"})
		if err == nil {
			_ = other.Close()
			t.Fatal("a second node of that name was started")
		}
		if _, err := node.Run(t.Context(), "ctr --namespace k8s.io images list --quiet | grep pause"); err != nil {
			t.Errorf("the first node of that name was harmed: %v", err)
		}
		if err := errors.Join(node.PowerCut(), node.Boot(t.Context())); err != nil {
			t.Errorf("the first node of that name does not start again: %v", err)
		}
	})

	if err := node.Close(); err != nil {
		t.Error(err)
	}
	expectNothingLeft(t, before)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return wait.PollImmediateUntilWithContext(ctx, pollInterval, condition)
}

func clientOf(t *testing.T, node *Node) kubernetes.Interface {
	t.Helper()
	client, err := node.Client()
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// leftOvers lists everything that a node could leave in the hub: processes, mounts, network interfaces and namespaces,
// cgroups, folders.
func leftOvers(t *testing.T) []string {
	t.Helper()
	var found []string
	add := func(kind, pattern string, read func(string) (string, error)) {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			// A process may end meanwhile.
			if name, err := read(path); err == nil {
				found = append(found, kind+" "+name)
			}
		}
	}
	asIs := func(path string) (string, error) { return path, nil }
	add("process", "/proc/[0-9]*/comm", func(path string) (string, error) {
		name, err := os.ReadFile(path)
		return path + " " + string(name), err
	})
	add("namespace", "/proc/[0-9]*/ns/*", os.Readlink)
	add("folder", filepath.Join(hub.memory, "*"), asIs)
	folders, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		add("cgroup", filepath.Join(folder, hub.cgroup, "*"), func(path string) (string, error) {
			info, err := os.Stat(path)
			if err == nil && !info.IsDir() {
				err = os.ErrNotExist
			}
			return path, err
		})
	}
	for line := range strings.Lines(testinput.Read(t, "/proc/self/mounts")) {
		found = append(found, "mount "+line)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range interfaces {
		found = append(found, "interface "+one.Name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// expectNothingLeft checks that everything is as it was before. The kernel takes a moment for some of it.
func expectNothingLeft(t *testing.T, before []string) {
	t.Helper()
	var left []string
	err := eventually(t, func(context.Context) (bool, error) {
		left = slices.DeleteFunc(leftOvers(t), func(one string) bool { return slices.Contains(before, one) })
		return len(left) == 0, nil
	})
	if err != nil {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}
