// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

// secondScheduler runs ours in addition to the stock one, and kills its leader while pods arrive for both.
func (o *operator) secondScheduler(t *testing.T) {
	expect(t, o.page.do(t, o.node, "second-scheduler"), "successfully rolled out")
	holder := o.holder(t, "kube-scheduler")
	always := func(name string) func(int) string { return func(int) string { return name } }
	ours := startLoad(t, o.client, "second", always("second-scheduler"))
	stock := startLoad(t, o.client, "beside", always("default-scheduler"))
	o.measure(t, ours, "second scheduler: its leader killed with SIGKILL", func() {
		leader := o.holder(t, "second-scheduler")
		pod, _, _ := strings.Cut(leader, "_")
		// The process has the name of the leader's pod as host name.
		o.run(t, `for process in $(pgrep --full '^kube-scheduler .*second-scheduler'); do
  [[ $(nsenter --target "$process" --uts hostname) != `+pod+` ]] || leader=$process
done
kill -KILL "$leader"`)
		err := wait.PollImmediateWithContext(t.Context(), 100*time.Millisecond, stepTimeout, func(ctx context.Context) (bool, error) {
			holder := o.holder(t, "second-scheduler")
			return holder != "" && holder != leader, nil
		})
		if err != nil {
			t.Fatalf("no other took over from %s: %v", leader, err)
		}
	})
	// It has its own network, and its own lease names it.
	o.run(t, "kubectl scheduling queue --lease kube-system/second-scheduler")
	o.measure(t, ours, "second scheduler: its leader's pod deleted", func() {
		pod, _, _ := strings.Cut(o.holder(t, "second-scheduler"), "_")
		o.run(t, "kubectl --namespace kube-system delete pod "+pod+"\nkubectl --namespace kube-system rollout status deployment/second-scheduler --timeout 120s")
	})
	o.accounts(t, ours, 1)
	o.accounts(t, stock, 1)
	t.Logf("the stock scheduler's longest gap without a binding meanwhile: %.1f s", stock.gap(time.Time{}, time.Now()).Seconds())
	if got := o.holder(t, "kube-scheduler"); got != holder {
		t.Errorf("the stock scheduler did not outlive the second one's leaders: %q holds its lease, %q did", got, holder)
	}
	for _, load := range []*load{ours, stock} {
		pods, err := o.client.CoreV1().Pods(load.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if !strings.HasPrefix(pod.Spec.NodeName, "fake-") {
				t.Errorf("the pod %s/%s is on %q", pod.Namespace, pod.Name, pod.Spec.NodeName)
			}
		}
	}
	o.page.do(t, o.node, "second-scheduler-away")
}

// holder returns the holder of a lease in kube-system.
func (o *operator) holder(t *testing.T, name string) string {
	t.Helper()
	lease, err := o.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// powerCut simulates a power failure of the node during an install.
func (o *operator) powerCut(t *testing.T) {
	install := []string{"install", "--archive", path.Join(o.page.folder, "kube-scheduler.tar"), "--config", path.Join(o.page.folder, "my-scheduler.yaml")}
	command := o.node.Command(t.Context(), "kube-scheduler-swap", install...)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	buffer := make([]byte, 256)
	for !strings.Contains(said.String(), "wrote "+manifestFile) {
		count, err := stderr.Read(buffer)
		if err != nil {
			t.Fatalf("the install ended too soon: %v: %s", err, said.String())
		}
		said.Write(buffer[:count])
	}
	// The node exists until its last process was waited for, and that process is our child.
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	if err := o.node.PowerCut(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatal("the install outlived the power cut")
	}
	if err := o.node.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.expectOneManifest(t)
	if err := o.node.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, o.run(t, "kube-scheduler-swap "+strings.Join(install, " ")+" 2>&1"), "done:")
	status := o.run(t, "kube-scheduler-swap status")
	expect(t, status, "swapped: v1.23.17+", "health     ok")
	if strings.Contains(status, "did not finish") {
		t.Errorf("the journal of the run that was cut off is still there:\n%s", status)
	}
	o.connect(t)
}

// roll runs the page's loop over all nodes. The nodes have no ssh, so
// this test runs the remote commands on the other node.
func (o *operator) roll(t *testing.T, second *kubeadmnode.Node) string {
	t.Helper()
	folder := t.TempDir()
	o.run(t, "cd "+folder+"; mkfifo command answer")
	ended := make(chan error, 1)
	go func() {
		command, err := os.ReadFile(filepath.Join(folder, "command"))
		if err == nil {
			var output string
			output, err = second.Run(t.Context(), string(command))
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, "answer"), []byte(output), 0))
		}
		ended <- err
	}()
	ssh := "ssh() {\n  if [ \"$1\" = root@cp1 ]; then bash -c \"$2\"; else printf %s \"$2\" > " + folder + "/command; cat " + folder + "/answer; fi\n}\n"
	output := o.page.do(t, o.node, "roll", "for node in", ssh+"for node in")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return output
}

// twoNodes joins a second node, swapped from the start, and replaces the schedulers of both, the leader's last.
func (o *operator) twoNodes(t *testing.T) {
	second := start(t, kubeadmnode.NodeOptions{Name: "cp2"})
	o.page.do(t, o.node, "before-join")
	content := o.read(t, path.Join(o.page.folder, "swap.tar.gz"))
	for file, content := range map[string][]byte{"/root/swap.tar.gz": content, auditPolicyFile: []byte(auditPolicy)} {
		if err := second.WriteFile(file, content); err != nil {
			t.Fatal(err)
		}
	}
	o.copyBundle(t, second)
	if _, err := second.Run(t.Context(), "tar xzf swap.tar.gz --absolute-names"); err != nil {
		t.Fatal(err)
	}
	page := *o.page
	page.folder = "/root/release"
	other := &operator{page: &page, node: second}
	other.page.do(t, second, "unpack")
	page.folder = o.page.folder
	if _, err := second.Run(t.Context(), "ctr --namespace k8s.io images import "+page.folder+"/kube-scheduler.tar"); err != nil {
		t.Fatal(err)
	}
	if err := second.Join(t.Context(), o.node, kubeadmnode.JoinOptions{Patches: "/etc/kubernetes/patches"}); err != nil {
		t.Fatal(err)
	}
	other.connect(t)
	// Either of the two may hold the lease: etcd pauses while a node joins, for longer than a lease.
	o.settled(t)
	expect(t, other.run(t, "kube-scheduler-swap status"), "swapped: v1.23.17+", "health     ok")
	expect(t, other.refused(t, "kube-scheduler-swap rollback 2>&1"), strings.Join(strings.Fields(o.page.blocks["by-hand"]), " "))

	load := startLoad(t, o.client, "two-nodes", func(i int) string { return []string{"default-scheduler", "my-scheduler"}[i%2] })
	holder := strings.TrimSpace(o.page.do(t, o.node, "holder"))
	for _, each := range []*operator{o, other} {
		each.run(t, "sed 's/weight: 25/weight: 35/' manifests/config/my-scheduler.yaml > my-scheduler.yaml")
	}
	output := ""
	o.measure(t, load, "two nodes: the one that stands by, then the one that holds the lease", func() { output = o.roll(t, second) })
	t.Log(output)
	standing, leading, _ := strings.Cut(output, "done:")
	expect(t, standing, "it stands by", "this node stands by; "+holder+" holds the lease and bound the probe pod")
	expect(t, leading, "done:")
	o.accounts(t, load, 1, second)
	// Two schedulers of one cluster must not have different leases.
	expect(t, o.refused(t, "sed 's/leaderElect: true/leaderElect: true\\n  resourceName: mine/' my-scheduler.yaml > broken.yaml\n"+
		"kube-scheduler-swap install --config broken.yaml 2>&1"), "would not share the lease")
	for _, each := range []*operator{o, other} {
		each.expectConfig(t, "weight: 35")
		each.expectOneManifest(t)
	}
	if got := strings.TrimSpace(o.page.do(t, o.node, "holder")); got == holder {
		t.Errorf("%s holds the lease still, though its scheduler was replaced", got)
	}
	o.deadLeader(t, other)
	// This runs while the second node exists: without it etcd has no quorum.
	o.uninstall(t)
}

// settled waits until one scheduler has renewed its lease some times.
func (o *operator) settled(t *testing.T) {
	t.Helper()
	holder, renewed, times := "", time.Time{}, 0
	err := wait.PollImmediateWithContext(t.Context(), time.Second, 5*time.Minute, func(ctx context.Context) (bool, error) {
		lease, err := o.client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
			return false, nil
		}
		switch {
		case *lease.Spec.HolderIdentity != holder:
			holder, times = *lease.Spec.HolderIdentity, 0
		case !lease.Spec.RenewTime.Time.Equal(renewed):
			times++
		}
		renewed = lease.Spec.RenewTime.Time
		return times == 5, nil
	})
	if err != nil {
		t.Fatalf("no scheduler keeps the lease: %v", err)
	}
}

// deadLeader rolls out a scheduler that binds nothing, which no probe can detect on the standby's node.
func (o *operator) deadLeader(t *testing.T, other *operator) {
	holder := strings.TrimSpace(o.page.do(t, o.node, "holder"))
	leading, standing, first := o, other, "cp2"
	if strings.HasPrefix(holder, "cp2_") {
		leading, standing, first = other, o, "cp1"
	}
	broken := "sed '$a extenders: [{urlPrefix: \"http://127.0.0.1:1\", filterVerb: filter}]' my-scheduler.yaml > broken.yaml\n"
	const install = "kube-scheduler-swap install --config broken.yaml 2>&1"
	// While the leader is replaced, the lease is free for a moment: the standby retries often enough to get it.
	eager := "sed -i 's/leaderElect: true/leaderElect: true\\n  retryPeriod: 100ms/' broken.yaml\n"
	expect(t, standing.run(t, broken+eager+install), holder+" holds the lease and bound the probe pod", "done:")
	output := leading.refused(t, broken+install)
	t.Log(output)
	expect(t, output, first+"_", " holds the lease but binds no pods", "the old one runs again", "on "+first+": kube-scheduler-swap rollback")
	leading.expectConfig(t, "weight: 35")
	standing.run(t, "kube-scheduler-swap rollback --to previous")
	expect(t, standing.run(t, "kube-scheduler-swap install --config my-scheduler.yaml 2>&1"), "already runs", "bound it to", "done:")
	for _, each := range []*operator{o, other} {
		each.expectConfig(t, "weight: 35")
		expect(t, each.run(t, "kube-scheduler-swap status"), "health     ok")
	}
}
