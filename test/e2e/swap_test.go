// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"kube-scheduler-fork/build/swap"
	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

const (
	manifestFile = "/etc/kubernetes/manifests/kube-scheduler.yaml"
	stateFolder  = "/var/lib/kube-scheduler-swap"
	// fakeNodes is the number of nodes, and fewestPods the minimum
	// number of pods that are created while schedulers are replaced.
	fakeNodes  = 100
	fewestPods = 500
	// stepTimeout limits steps that take seconds. A pod that is tried just after the scheduler's start, before the
	// scheduler knows any nodes, waits 60 to 90 seconds for upstream's flush of unschedulable pods.
	stepTimeout = 3 * time.Minute
)

// operator runs the commands of the page on a control-plane node.
type operator struct {
	page   *page
	node   *kubeadmnode.Node
	client kubernetes.Interface
	// original is kubeadm's manifest.
	original []byte
	// served makes the load use the profile my-scheduler.
	served  atomic.Bool
	figures []figure
}

// figure is a line of the final table.
type figure struct {
	what      string
	took, gap time.Duration
	// load and from are for the longest wait of a pod, which is known only at the end.
	load *load
	from time.Time
}

func (o *operator) measure(t *testing.T, load *load, what string, work func()) {
	t.Helper()
	from := time.Now()
	gap, took := load.during(t, work)
	o.figures = append(o.figures, figure{what, took, gap, load, from})
	t.Logf("%s: %.1f s, longest gap without a binding %.1f s", what, took.Seconds(), gap.Seconds())
}

func TestControlPlane(t *testing.T) {
	first := start(t, kubeadmnode.NodeOptions{Name: "cp1"})
	if err := first.WriteFile(auditPolicyFile, []byte(auditPolicy)); err != nil {
		t.Fatal(err)
	}
	if err := first.Init(t.Context(), kubeadmnode.InitOptions{ClusterConfiguration: auditConfiguration}); err != nil {
		t.Fatal(err)
	}
	if err := first.FakeNodes(t.Context(), fakeNodes); err != nil {
		t.Fatal(err)
	}
	o := &operator{page: readPage(t, filepath.Join("..", "..", "docs", "operations.md")), node: first}
	o.connect(t)
	o.original = o.read(t, manifestFile)
	o.copyBundle(t, first)

	load := startLoad(t, o.client, "load", func(i int) string {
		if i%2 == 1 && o.served.Load() {
			return "my-scheduler"
		}
		return "default-scheduler"
	})

	// Each step starts from the result of the previous one.
	step := func(name string, run func(t *testing.T)) {
		t.Helper()
		if !t.Run(name, run) && os.Getenv("E2E_GO_ON") == "" {
			t.FailNow()
		}
	}
	step("Install", func(t *testing.T) { o.install(t, load) })
	step("BothProfilesBindPods", o.verify)
	step("Why", o.why)
	step("MoreThanANodeHas", o.overfull)
	step("ChangeOfTheConfiguration", func(t *testing.T) {
		o.measure(t, load, "another configuration", func() { o.page.do(t, first, "change") })
		o.expectConfig(t, "weight: 30")
	})
	step("CheckNamesWhatIsMissing", o.network)
	step("BrokenConfigurations", func(t *testing.T) { o.brokenConfigurations(t, load) })
	step("ImageThatCrashes", func(t *testing.T) { o.crashingImage(t, load) })
	step("WhatCannotBeWritten", o.unwritable)
	step("KilledAtEveryStep", func(t *testing.T) { o.killed(t, load) })
	step("ManifestThatHangs", func(t *testing.T) { o.hangs(t, load) })
	step("Upgrade", func(t *testing.T) { o.upgrade(t, load) })
	step("Rollback", func(t *testing.T) { o.rollback(t, load) })
	step("TheUsualWays", func(t *testing.T) { o.usualWays(t, load) })
	step("Hardened", o.hardened)
	step("NoPodIsLostOrBoundTwice", func(t *testing.T) { o.accounts(t, load, fewestPods) })
	step("Extender", o.extender)
	step("SecondScheduler", o.secondScheduler)
	step("PowerCut", o.powerCut)
	step("WithoutTheTool", o.withoutTool)
	step("TwoControlPlaneNodes", o.twoNodes)
	o.page.complete(t)
	t.Log(table(o.figures))
}

// start starts a node, which is closed at the end of the test.
func start(t *testing.T, options kubeadmnode.NodeOptions) *kubeadmnode.Node {
	t.Helper()
	node, err := hub.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	return node
}

func (o *operator) connect(t *testing.T) {
	t.Helper()
	var err error
	if o.client, err = o.node.Client(); err != nil {
		t.Fatal(err)
	}
}

// copyBundle copies the release bundle to a node, in the form that an operator downloads.
func (o *operator) copyBundle(t *testing.T, node *kubeadmnode.Node) {
	t.Helper()
	bundle := setting(t, "E2E_BUNDLE")
	for _, file := range []string{bundle, filepath.Join(filepath.Dir(bundle), "SHA256SUMS")} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := node.WriteFile("/root/release/"+filepath.Base(file), content); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads a file of the node.
func (o *operator) read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(o.node.Root() + file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// run runs a script on the node, in the directory of the bundle.
func (o *operator) run(t *testing.T, script string) string {
	t.Helper()
	output, err := o.node.Run(t.Context(), "cd "+o.page.folder+"\n"+script)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// refused runs a script that must fail, and returns its output.
func (o *operator) refused(t *testing.T, script string) string {
	t.Helper()
	output, err := o.node.Run(t.Context(), "cd "+o.page.folder+"\n"+script)
	if err == nil {
		t.Fatalf("%s: did not fail:\n%s", script, output)
	}
	return output
}

func expect(t *testing.T, output string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(output, word) {
			// The expected text comes last, where it is visible in a long log.
			t.Fatalf("%s\nwant %q in the output above", output, word)
		}
	}
}

// sums returns the checksums of the files that kubelet watches, and of the tool's own files.
func (o *operator) sums(t *testing.T) string {
	t.Helper()
	return o.run(t, "{ find /etc/kubernetes/manifests "+stateFolder+" -type f ! -name lock 2> /dev/null || true; } | sort | xargs sha256sum; ls -A /etc/kubernetes/manifests")
}

// expectOneManifest checks the invariant that there is exactly one manifest of the scheduler, and that it is complete.
func (o *operator) expectOneManifest(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(o.node.Root() + path.Dir(manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		// kubelet ignores names that begin with a dot.
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	if want := []string{"etcd.yaml", "kube-apiserver.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml"}; !slices.Equal(names, want) {
		t.Errorf("the directory that kubelet watches contains %q, want %q", names, want)
	}
	pod, err := swap.Describe(o.read(t, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	if folder := pod.Swap.ConfigFolder; folder != "" {
		content := o.read(t, folder+"/"+swap.ConfigFileName)
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != pod.Swap.ConfigSHA256 {
			t.Errorf("the configuration in %s is not the one of the manifest: %s, want %s", folder, got, pod.Swap.ConfigSHA256)
		}
	}
}

func (o *operator) expectConfig(t *testing.T, words string) {
	t.Helper()
	pod, err := swap.Describe(o.read(t, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(o.read(t, pod.Swap.ConfigFolder+"/"+swap.ConfigFileName)), words)
}

func (o *operator) install(t *testing.T, load *load) {
	o.page.do(t, o.node, "unpack")
	o.page.folder = strings.TrimSpace(o.run(t, "realpath kube-scheduler-*/"))
	o.damagedArchives(t)
	before := o.sums(t)
	output := o.page.do(t, o.node, "check")
	expect(t, output, "nothing found", "profile my-scheduler: the default plugins with these changes", "+    image: registry.k8s.io/kube-scheduler:v1.23.17_", "+    - --config="+swap.ContainerConfigPath)
	if after := o.sums(t); after != before {
		t.Errorf("check or diff changed files:\n%s\nbefore:\n%s", after, before)
	}
	o.measure(t, load, "install, from kubeadm's scheduler", func() { output = o.page.do(t, o.node, "install") })
	t.Log(output)
	expect(t, output, "loaded registry.k8s.io/kube-scheduler:", "it holds the lease", "bound it to", "done:")
	o.expectOneManifest(t)
	if open := o.run(t, "find "+stateFolder+"/configs -perm /077"); open != "" {
		t.Errorf("other users can read a configuration, which may contain secrets:\n%s", open)
	}
}

// damagedArchives checks that damaged archives are refused, and imports them: the intact archive must be installable
// even after a partial import.
func (o *operator) damagedArchives(t *testing.T) {
	size, err := strconv.Atoi(strings.TrimSpace(o.run(t, "stat --format %s kube-scheduler.tar")))
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int{size / 10, size / 3, size / 2, size - 20_000} {
		o.run(t, fmt.Sprintf("cp kube-scheduler.tar damaged.tar; dd if=kube-scheduler.tar bs=1 skip=%d count=1 status=none | tr '\\000-\\377' '\\001-\\377\\000' | "+
			"dd of=damaged.tar bs=1 seek=%d conv=notrunc status=none; ! cmp --silent kube-scheduler.tar damaged.tar", offset, offset))
		expect(t, o.refused(t, "kube-scheduler-swap check --archive damaged.tar"), "damaged.tar is damaged or incomplete", "next: copy it here again")
		expect(t, o.refused(t, "kube-scheduler-swap install --archive damaged.tar 2>&1"), "damaged.tar is damaged or incomplete")
		o.run(t, "ctr --namespace k8s.io images import damaged.tar 2>&1 || true")
	}
	o.run(t, "rm damaged.tar")
}

// hangs makes the manifest refer to a missing object, so that kubelet waits for it, and rolls back.
func (o *operator) hangs(t *testing.T, load *load) {
	manifest := o.read(t, manifestFile)
	broken := strings.Replace(string(manifest), "    - mountPath: "+swap.ContainerConfigFolder, "    - {mountPath: /absent, name: absent}\n"+
		"    - mountPath: "+swap.ContainerConfigFolder, 1)
	broken = strings.Replace(broken, "  volumes:\n", "  volumes:\n  - {name: absent, hostPath: {path: /absent, type: Directory}}\n", 1)
	o.measure(t, load, "a manifest whose pod hangs, and rollback", func() {
		o.replaceManifest(t, []byte(broken))
		o.run(t, "until grep -q '^runs *no' <(kube-scheduler-swap status); do sleep 0.1; done")
		o.run(t, "until grep -q /absent <(kubectl get events --namespace kube-system --field-selector reason=FailedMount); do sleep 0.1; done")
		o.refused(t, "kube-scheduler-swap status")
		expect(t, o.refused(t, "kube-scheduler-swap install --config my-scheduler.yaml 2>&1"), "the manifest mounts /absent as a Directory")
		expect(t, o.run(t, "kube-scheduler-swap rollback --to previous 2>&1"), "was edited since the last install; kept as", "done:")
	})
	o.expectOneManifest(t)
	o.run(t, "kube-scheduler-swap install --archive kube-scheduler.tar --config my-scheduler.yaml")
	o.expectDone(t)
}

// pulls makes kubelet pull the image at every start, although there is no registry.
func (o *operator) pulls(t *testing.T) {
	manifest := strings.Replace(string(o.read(t, manifestFile)), "imagePullPolicy: IfNotPresent", "imagePullPolicy: Always", 1)
	o.replaceManifest(t, []byte(manifest))
	o.run(t, "until grep -Eq 'reason: (ErrImagePull|ImagePullBackOff)' <(kubectl get pod --namespace kube-system kube-scheduler-cp1 --output yaml); do sleep 0.1; done")
	expect(t, o.run(t, "kube-scheduler-swap check --archive kube-scheduler.tar"),
		"makes kubelet pull the image at every start")
	expect(t, o.run(t, "kube-scheduler-swap install --archive kube-scheduler.tar --config my-scheduler.yaml 2>&1"),
		"does not work, so it cannot be used for a rollback", "its manifest is kept as "+stateFolder+"/broken-", "done:")
	o.expectDone(t)
	// kubelet also removes unused images.
	o.run(t, "ctr --namespace k8s.io images rm registry.k8s.io/kube-scheduler:v1.23.17")
	expect(t, o.run(t, "kube-scheduler-swap rollback 2>&1"), "which is no longer on this node, from "+stateFolder, "done:")
	o.expectStock(t)
}

// uninstall checks that uninstall removes everything of the tool except an annotation and manual edits.
func (o *operator) uninstall(t *testing.T) {
	pod, err := swap.Describe(o.read(t, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	// Another pod of the node needs the image: its container starts once its ConfigMap exists.
	beside, err := json.Marshal(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "beside"},
		Spec: corev1.PodSpec{NodeName: "cp1", Containers: []corev1.Container{{Name: "beside", Image: pod.Image, EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}}}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.run(t, "kubectl create --filename - <<< '"+string(beside)+"'")
	output := o.page.do(t, o.node, "uninstall")
	expect(t, output, "the image "+pod.Image+" is left: ")
	_, command, _ := strings.Cut(output, "once nothing needs it: ")
	command, _, _ = strings.Cut(command, "\n")
	o.run(t, "kubectl delete pod beside --grace-period 0 --force 2>&1\n"+command)
	expect(t, output, stateFolder+" is left, with saved manual edits", "removed /etc/kubernetes/patches/kube-scheduler+strategic.yaml",
		"ClusterConfiguration still has")
	o.expectStock(t)
	if left := o.run(t, "find "+stateFolder+" -type f ! -name 'edited-*' ! -name 'broken-*'; find /etc/kubernetes/patches -type f; "+
		"ctr --namespace k8s.io images ls --quiet | grep 'kube-scheduler.*fork' || true"); left != "" {
		t.Errorf("uninstall left:\n%s", left)
	}
	o.run(t, "rm "+stateFolder+"/*.yaml")
	expect(t, o.run(t, "kube-scheduler-swap uninstall 2>&1"), "nothing to roll back", "removed "+stateFolder, "done:")
	// With an unedited patch, and an image without other users.
	o.run(t, "kube-scheduler-swap install --archive kube-scheduler.tar --config my-scheduler.yaml 2>&1\n"+
		"kube-scheduler-swap kubeadm-patch 2>&1\nkube-scheduler-swap rollback 2>&1")
	output = o.run(t, "kube-scheduler-swap uninstall 2>&1")
	expect(t, output, "removed the image "+pod.Image, "removed /etc/kubernetes/patches/kube-scheduler+strategic.yaml",
		"removed "+stateFolder, "done:")
	if strings.Contains(output, "would restore the swap") {
		t.Errorf("uninstall warns about the patch that it removes:\n%s", output)
	}
}

func (o *operator) verify(t *testing.T) {
	output := o.page.do(t, o.node, "verify", "kubectl get events",
		"kubectl wait --for condition=PodScheduled --timeout "+stepTimeout.String()+" pod nginx\nkubectl get events")
	expect(t, output, "swapped: v1.23.17+", "health     ok", "this node holds it", "kube-scheduler-cp1")
	// The page's commands have labelled the nodes that this profile needs.
	o.served.Store(true)
	for _, profile := range []string{"default-scheduler", "my-scheduler"} {
		err := wait.PollImmediateWithContext(t.Context(), 100*time.Millisecond, stepTimeout, func(ctx context.Context) (bool, error) {
			events, err := o.client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=Scheduled"})
			if err != nil {
				return false, nil
			}
			return slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
				return event.ReportingController == profile || event.Source.Component == profile
			}), nil
		})
		if err != nil {
			t.Errorf("no pod was bound by %s: %v", profile, err)
		}
	}
	nginx, err := o.client.CoreV1().Pods("default").Get(t.Context(), "nginx", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if nginx.Spec.NodeName != "cp1" {
		t.Errorf("the example pod is on %q, want cp1, which has the label", nginx.Spec.NodeName)
	}
	o.run(t, "kubectl delete pod nginx --grace-period 0 --force 2>&1")
	// The page's commands for pods that stay Pending, with one for an unknown scheduler.
	o.run(t, "kubectl run lost --image none --overrides '{\"spec\": {\"schedulerName\": \"absent\"}}'")
	output, err = o.page.try(t, o.node, "pending")
	if err != nil {
		t.Error(err)
	}
	expect(t, output, "lost", "1 pending pods ask for the scheduler absent", "health     ok")
	o.run(t, "kubectl delete pod lost --grace-period 0 --force 2>&1")
}

// network removes a network plugin, which check must report.
func (o *operator) network(t *testing.T) {
	o.run(t, "mv /usr/lib/cni/bridge /usr/lib/cni/bridge.away")
	output, _ := o.node.Run(t.Context(), "kube-scheduler-swap check")
	o.run(t, "mv /usr/lib/cni/bridge.away /usr/lib/cni/bridge")
	expect(t, output, "network plugin is missing: /usr/lib/cni/bridge")
	if output := o.run(t, "kube-scheduler-swap check"); strings.Contains(output, "network plugin") {
		t.Errorf("check reports a plugin as missing that exists:\n%s", output)
	}
	// A backup in the directory that kubelet watches.
	o.run(t, "cp "+manifestFile+" /etc/kubernetes/manifests/.hidden.yaml")
	expect(t, o.run(t, "kube-scheduler-swap check"), "nothing found")
	o.run(t, "rm /etc/kubernetes/manifests/.hidden.yaml")
	// The scheduler prints a note about this, but starts.
	expect(t, o.run(t, "{ cat my-scheduler.yaml; printf -- '---\\nkind: Another\\n'; } > two.yaml\nkube-scheduler-swap check --config two.yaml"),
		"warning: the new scheduler warns: the file has more than one YAML document")
}

func (o *operator) brokenConfigurations(t *testing.T, load *load) {
	before := o.sums(t)
	for name, change := range map[string]struct{ script, want string }{
		"unknown plugin":     {"s/name: MyScorePlugin/name: Nope/", "[Nope]: this scheduler has no plugin of that name"},
		"wrong type":         {"s/nodeLabel: disktype/nodeLabel: 3/", "nodeLabel"},
		"no kubeconfig":      {"/kubeconfig:/d; s/^clientConnection:/clientConnection: {}/", "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}"},
		"no default profile": {"s/schedulerName: default-scheduler/schedulerName: other/", "- schedulerName: default-scheduler"},
		"not YAML":           {"s/profiles:/profiles: ]/", "yaml: line"},
		"empty":              {"d", "broken.yaml is empty"},
		"cut off":            {"/^kind:/,$d", "is not a KubeSchedulerConfiguration: its kind is"},
		"another kind":       {"s/^kind: .*/kind: Pod/", `its kind is "Pod"`},
		"a negative weight":  {"s/weight: 30/weight: -30/", "must not be negative"},
		"one name twice":     {"s/schedulerName: my-scheduler/schedulerName: default-scheduler/", `Duplicate value: "profiles[`},
		"a file that is not mounted": {"$a extenders: [{urlPrefix: \"https://127.0.0.1:1\", filterVerb: f, enableHTTPS: true, tlsConfig: {caFile: /root/release/SHA256SUMS}}]",
			"extenders[0].tlsConfig.caFile"},
	} {
		output := o.refused(t, "sed '"+change.script+"' my-scheduler.yaml > broken.yaml; kube-scheduler-swap install --config broken.yaml 2>&1")
		if !strings.Contains(output, change.want) {
			t.Errorf("%s: want %q in:\n%s", name, change.want, output)
		}
	}
	if after := o.sums(t); after != before {
		t.Errorf("a refused configuration changed files:\n%s\nbefore:\n%s", after, before)
	}

	// The scheduler accepts this one, but can never get its lease.
	var output string
	o.measure(t, load, "a configuration that does not work, and back", func() {
		output = o.refused(t, "sed 's/leaderElect: true/leaderElect: true\\n  resourceNamespace: nowhere/' my-scheduler.yaml > broken.yaml\n"+
			"kube-scheduler-swap install --config broken.yaml 2>&1")
	})
	t.Log(output)
	expect(t, output, "it does not get the lease nowhere/kube-scheduler", `namespaces "nowhere" not found`, "the old one runs again")
	o.expectConfig(t, "weight: 30")
	o.expectOneManifest(t)

	// The scheduler accepts this one, is healthy and the leader, but binds nothing.
	o.measure(t, load, "an extender that does not answer, and back", func() {
		output = o.refused(t, "sed '$a extenders: [{urlPrefix: \"http://127.0.0.1:1\", filterVerb: filter}]' my-scheduler.yaml > broken.yaml\n"+
			"kube-scheduler-swap install --config broken.yaml 2>&1")
	})
	t.Log(output)
	expect(t, output, "it holds the lease", "did not bind the probe pod", "the old one runs again")
	o.expectConfig(t, "weight: 30")
	o.expectOneManifest(t)

	// This one finds no node for any pod, while the previous one did.
	o.measure(t, load, "a configuration that rejects all nodes, and back", func() {
		output = o.refused(t, `sed 's/- schedulerName: default-scheduler/&\n    plugins: {multiPoint: {enabled: [{name: PodFilter}]}}\n`+
			`    pluginConfig: [{name: PodFilter, args: {rules: [{name: nothing, action: Deny, podNames: ["*"]}]}}]/' my-scheduler.yaml > rejects.yaml`+
			"\nkube-scheduler-swap install --config rejects.yaml 2>&1")
	})
	t.Log(output)
	expect(t, output, "it holds the lease", "denied by rule", "Before the swap, such a pod was bound", "the old one runs again")
	o.expectConfig(t, "weight: 30")
	o.expectOneManifest(t)

	// While kubelet restarts the manually edited pod, for a quarter of a minute, no scheduler runs.
	unedited := o.read(t, manifestFile)
	o.replaceManifest(t, []byte(strings.Replace(string(unedited), "    - --leader-elect=true\n", "    - --leader-elect=true\n    - --v=1\n", 1)))
	o.run(t, "until grep -q '^runs *no' <(kube-scheduler-swap status); do sleep 0.1; done")
	output = o.refused(t, "kube-scheduler-swap install --config broken.yaml 2>&1")
	if strings.Contains(output, "cannot be used for a rollback") {
		t.Errorf("a pod that kubelet had not restarted yet was treated as broken:\n%s", output)
	}
	expect(t, output, "did not bind the probe pod", "the old one runs again")
	expect(t, string(o.read(t, manifestFile)), "- --v=1\n")
	o.replaceManifest(t, unedited)
	o.run(t, "kube-scheduler-swap install --config my-scheduler.yaml")
	o.expectOneManifest(t)
}

func (o *operator) crashingImage(t *testing.T, load *load) {
	archive := filepath.Join(t.TempDir(), "crash.tar")
	if err := kubeadmnode.BuildImage(archive, "registry.k8s.io/kube-scheduler:crash", setting(t, "E2E_CRASH"), "/usr/local/bin/kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	var output string
	o.measure(t, load, "an image that crashes, and back", func() {
		output = o.refused(t, "kube-scheduler-swap install --archive "+archive+" 2>&1")
	})
	t.Log(output)
	expect(t, output, "exited with status 3", "crash: the fault of this scheduler shows when it runs", "the old one runs again")
	o.expectOneManifest(t)
	expect(t, o.run(t, "kube-scheduler-swap status"), "swapped: v1.23.17+", "health     ok")
}

// unwritable checks that an install that cannot write changes nothing.
func (o *operator) unwritable(t *testing.T) {
	install := "kube-scheduler-swap install --config manifests/config/my-scheduler.yaml"
	for name, c := range map[string]struct{ before, command, after, want string }{
		"the directory of the manifests is read-only": {
			before:  "mount --bind /etc/kubernetes/manifests /etc/kubernetes/manifests; mount -o remount,bind,ro /etc/kubernetes/manifests",
			command: install,
			after:   "umount /etc/kubernetes/manifests",
			want:    "read-only file system",
		},
		"the disk of the state is full": {
			before:  "mkdir -p /run/full; mount -t tmpfs -o size=64k tmpfs /run/full; head -c 64k /dev/zero > /run/full/ballast || true",
			command: install + " --state /run/full",
			after:   "umount /run/full",
			want:    "no space left on device",
		},
		"another run holds the lock": {
			before:  "flock " + stateFolder + "/lock sleep infinity & echo $! > /run/holder; until ! flock --nonblock " + stateFolder + "/lock true; do sleep 0.1; done",
			command: install,
			after:   "pkill --parent $(cat /run/holder); flock " + stateFolder + "/lock true",
			want:    "is changing the scheduler",
		},
	} {
		before := o.sums(t)
		o.run(t, c.before)
		output := o.refused(t, c.command+" 2>&1")
		o.run(t, c.after)
		if !strings.Contains(output, c.want) || !strings.Contains(output, "next:") {
			t.Errorf("%s: want %q and the next step in:\n%s", name, c.want, output)
		}
		if after := o.sums(t); after != before {
			t.Errorf("%s: files have changed:\n%s\nbefore:\n%s", name, after, before)
		}
		o.expectOneManifest(t)
	}
	// A rollback must work on a full disk, so it needs no room for existing files.
	o.run(t, "mkdir -p /run/full; mount -t tmpfs -o size=256k tmpfs /run/full; cp "+stateFolder+"/*.yaml "+stateFolder+"/*.json /run/full\n"+
		"echo 1 > /run/full/lock; head -c 256k /dev/zero > /run/full/ballast || true")
	output, err := o.node.Run(t.Context(), "kube-scheduler-swap rollback --state /run/full 2>&1")
	o.run(t, "umount /run/full")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, output, "there is no room in /run/full to keep the current manifest", "done:")
	o.expectStock(t)
	o.run(t, "kube-scheduler-swap install --archive kube-scheduler.tar --config my-scheduler.yaml")
	o.expectDone(t)
}

// killed kills installs with SIGKILL at each step, and checks that the next run completes the job.
func (o *operator) killed(t *testing.T, load *load) {
	steps := []string{"accepts its command line", "kept the configuration", "wrote " + manifestFile, "the old container has stopped",
		"the new container runs", "it is healthy", "it holds the lease", "done:"}
	o.measure(t, load, "killed at each step in turn, and finished", func() {
		for _, step := range steps {
			o.interrupt(t, os.Kill, step)
			o.expectOneManifest(t)
		}
		// An install is killed before each rename or removal of a file, as in a power failure.
		for _, c := range []struct{ call, file string }{
			{"renameat", stateFolder + "/undo.yaml"}, {"renameat", stateFolder + "/journal.json"}, {"renameat", manifestFile},
			{"renameat", stateFolder + "/installed.json"}, {"renameat", stateFolder + "/previous.yaml"}, {"unlinkat", stateFolder + "/journal.json"},
		} {
			if c.file == stateFolder+"/previous.yaml" {
				// The saved previous manifest changes only after a completed run.
				o.run(t, "kube-scheduler-swap install --config "+o.otherConfig(t))
			}
			output, err := o.node.Run(t.Context(), "cd "+o.page.folder+"\nstrace --quiet=all --follow-forks --output /dev/null --trace-path "+c.file+
				" --trace "+c.call+" --inject "+c.call+":signal=KILL kube-scheduler-swap install --config "+o.otherConfig(t)+" 2>&1")
			if err == nil || strings.Contains(output, "error:") {
				t.Errorf("an install was not killed at %s of %s: %v\n%s", c.call, c.file, err, output)
			}
			o.expectOneManifest(t)
		}
		// The same command completes a job, whether or not the manifest was replaced; so does a rollback.
		o.interrupt(t, os.Kill, "wrote")
		expect(t, o.run(t, "kube-scheduler-swap status || true"), "did not finish")
		o.run(t, "kube-scheduler-swap rollback --to previous")
		o.expectOneManifest(t)
		expect(t, o.run(t, "kube-scheduler-swap install --config my-scheduler.yaml --archive kube-scheduler.tar 2>&1"), "done:")
	})
	o.expectDone(t)
	// Ctrl-C before the manifest is replaced must not be reported as another error.
	manifest := o.read(t, manifestFile)
	output := o.interrupt(t, os.Interrupt, "loading ", "--archive", path.Join(o.page.folder, "kube-scheduler.tar"))
	if expect(t, output, "interrupted before anything was changed"); strings.Contains(output, "canceled") || strings.Contains(output, "killed") {
		t.Errorf("an interrupted install reports another error:\n%s", output)
	}
	if after := o.read(t, manifestFile); !bytes.Equal(after, manifest) {
		t.Errorf("an interrupted install changed the manifest:\n%s", after)
	}
	// Ctrl-C after the manifest was replaced restores the old one.
	o.interrupt(t, os.Interrupt, "wrote")
	o.expectConfig(t, "weight: 30")
	o.expectDone(t)
}

// expectDone checks that our scheduler works, and that no run is incomplete.
func (o *operator) expectDone(t *testing.T) {
	t.Helper()
	status := o.run(t, "kube-scheduler-swap status")
	expect(t, status, "swapped: v1.23.17+", "health     ok", "this node holds it")
	if strings.Contains(status, "did not finish") {
		t.Errorf("a run has left its journal:\n%s", status)
	}
}

// interrupt installs the other configuration, sends the install a signal when it prints the words, and returns the
// output after these.
func (o *operator) interrupt(t *testing.T, signal os.Signal, words string, more ...string) string {
	t.Helper()
	command := o.node.Command(t.Context(), "kube-scheduler-swap", append([]string{"install", "--config", o.otherConfig(t)}, more...)...)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	command.Stderr = writer
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	said := false
	var rest strings.Builder
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		if said {
			fmt.Fprintln(&rest, lines.Text())
		} else if said = strings.Contains(lines.Text(), words); said {
			// It may have exited just now.
			if err := command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	// An error is expected, because it was killed.
	_ = command.Wait()
	if !said {
		t.Fatalf("the install did not print %q", words)
	}
	return rest.String()
}

// otherConfig returns a configuration that the manifest does not use.
func (o *operator) otherConfig(t *testing.T) string {
	t.Helper()
	pod, err := swap.Describe(o.read(t, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	config := path.Join(o.page.folder, "manifests/config/my-scheduler.yaml")
	if pod.Swap.ConfigSHA256 == fmt.Sprintf("%x", sha256.Sum256(o.read(t, config))) {
		return path.Join(o.page.folder, "my-scheduler.yaml")
	}
	return config
}

// offline are the flags that kubeadm needs without a network and a server.
const offline = " --yes --force --ignore-preflight-errors=ImagePull,Swap,HTTPProxyCIDR,CreateJob,CoreDNSUnsupportedPlugins,CoreDNSMigration"

func (o *operator) upgrade(t *testing.T, load *load) {
	const command = "kubeadm upgrade apply v1.23.17"
	o.measure(t, load, "kubeadm upgrade, which undoes the swap", func() { o.run(t, command+offline) })
	expect(t, o.refused(t, "kube-scheduler-swap check"), "problem: the swap was undone", "as after kubeadm upgrade")
	expect(t, o.run(t, "kube-scheduler-swap status"), "not swapped", "the swap was undone")
	o.measure(t, load, "install again after an upgrade", func() {
		o.run(t, "mkdir /etc/kubernetes/files")
		expect(t, o.page.do(t, o.node, "repair", "install", "install --mount /etc/kubernetes/files"), "done:")
	})

	expect(t, o.page.do(t, o.node, "patch"), "config: "+swap.ContainerConfigPath)
	expect(t, o.page.do(t, o.node, "cluster-configuration"), "replaced")
	o.measure(t, load, "kubeadm upgrade with the patch, which keeps it", func() {
		o.page.do(t, o.node, "upgrade", "kubeadm upgrade apply v1.23.17", command+offline)
	})
	expect(t, o.run(t, "kube-scheduler-swap status"), "swapped: v1.23.17+", "health     ok", "this node holds it")
	if pod, err := swap.Describe(o.read(t, manifestFile)); err != nil || pod.Swap.Mounts != "/etc/kubernetes/files" {
		t.Errorf("after the upgrade the scheduler mounts %q (%v)", pod.Swap.Mounts, err)
	}
	if output, err := o.node.Run(t.Context(), "kube-scheduler-swap check"); err != nil {
		t.Errorf("check reports a problem after an upgrade that kept the swap: %v\n%s", err, output)
	}
	// The next install updates the patch.
	o.run(t, "kube-scheduler-swap install --config manifests/config/my-scheduler.yaml")
	sum := fmt.Sprintf("%x", sha256.Sum256(o.read(t, path.Join(o.page.folder, "manifests/config/my-scheduler.yaml"))))
	expect(t, string(o.read(t, "/etc/kubernetes/patches/kube-scheduler+strategic.yaml")), sum)
}

func (o *operator) rollback(t *testing.T, load *load) {
	o.measure(t, load, "rollback to the install before", func() {
		expect(t, o.page.do(t, o.node, "rollback-previous"), "done:", "before the last change, with the image")
	})
	o.expectConfig(t, "weight: 30")
	// Pods for a profile that kubeadm's scheduler does not have would wait forever.
	o.served.Store(false)
	load.untilBound(t, "my-scheduler")
	var output string
	o.measure(t, load, "rollback to kubeadm's scheduler", func() { output = o.page.do(t, o.node, "rollback") })
	expect(t, output, "done:", "kubeadm would restore the swap")
	o.expectStock(t)
	expect(t, o.run(t, "kube-scheduler-swap rollback"), "nothing to roll back")
	o.pulls(t)
}

// hardened checks the rights of a hardened scheduler, first as root, and then as a user who may read its kubeconfig.
func (o *operator) hardened(t *testing.T) {
	const kubeconfig = "/etc/kubernetes/scheduler.conf"
	const status = "pid=$(pgrep -x kube-scheduler); cat /proc/$pid/status; awk '$5 == \"/\" {print \"root is \" $6}' /proc/$pid/mountinfo"
	allow := fmt.Sprintf("chgrp %d %s && chmod g+rX %s", swap.NonRootUser, kubeconfig, kubeconfig)
	rights := []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "root is ro"}
	const mode = "stat --format '%A %u:%g %z' " + kubeconfig
	before := o.run(t, mode)
	expect(t, o.page.do(t, o.node, "hardened"), "keeps running as root, because the user 65530 cannot read "+kubeconfig, allow, "done:")
	if after := o.run(t, mode); after != before {
		t.Errorf("install changed a file of kubeadm's:\n%s\nbefore:\n%s", after, before)
	}
	expect(t, o.run(t, status), append(rights, "Uid:\t0\t")...)
	o.run(t, allow)
	expect(t, o.page.do(t, o.node, "hardened"), "done:")
	expect(t, o.run(t, status), append(rights, "Uid:\t65530\t", "Gid:\t65530\t")...)
	o.expectOneManifest(t)
	// An install without the flag leaves it as it is.
	expect(t, o.refused(t, "chmod g-r "+kubeconfig+"\nkube-scheduler-swap install --config manifests/config/my-scheduler.yaml 2>&1"),
		"has no capabilities, so its user 65530 could not read "+kubeconfig)
	o.run(t, "chgrp 0 "+kubeconfig)
	expect(t, o.run(t, "kube-scheduler-swap rollback 2>&1"), "done:")
	o.expectStock(t)
}

// withoutTool makes kubeadm write its own manifest, with the page's commands for a node without the tool.
func (o *operator) withoutTool(t *testing.T) {
	since := time.Now()
	expect(t, o.page.do(t, o.node, "by-hand"), "Creating static Pod manifest")
	o.awaitRestart(t, since)
	t.Logf("kubeadm init phase control-plane scheduler, until the scheduler works: %s", time.Since(since).Round(time.Second))
	expect(t, o.run(t, "kube-scheduler-swap status"), "not swapped", "the swap was undone", "health     ok")
	o.expectOneManifest(t)
	o.run(t, "kube-scheduler-swap install --archive kube-scheduler.tar --config my-scheduler.yaml")
	o.expectDone(t)
}

// expectStock checks that the manifest is kubeadm's except for one annotation, and that it runs.
func (o *operator) expectStock(t *testing.T) {
	t.Helper()
	now := o.read(t, manifestFile)
	var rest []string
	for _, line := range strings.SplitAfter(string(now), "\n") {
		if !strings.Contains(line, swap.RestartedAtAnnotation) && line != "  annotations:\n" {
			rest = append(rest, line)
		}
	}
	if got := strings.Join(rest, ""); got != string(o.original) {
		t.Errorf("the manifest is not kubeadm's:\n%s", swap.Diff("kubeadm's", o.original, "now", []byte(got)))
	}
	expect(t, o.run(t, "kube-scheduler-swap status"), "not swapped", "registry.k8s.io/kube-scheduler:v1.23.17 ", "health     ok")
}

// usualWays measures the usual replacements without the tool, on the same node.
func (o *operator) usualWays(t *testing.T, load *load) {
	o.measure(t, load, "by hand: the manifest edited in place", func() {
		since := time.Now()
		o.replaceManifest(t, o.read(t, manifestFile))
		o.awaitRestart(t, since)
	})
	o.measure(t, load, "by hand: the manifest moved out and back", func() {
		manifest, since := o.read(t, manifestFile), time.Now()
		o.run(t, "mv "+manifestFile+" /root/\n"+
			"while kubectl --namespace kube-system get pod kube-scheduler-cp1 > /dev/null 2>&1; do sleep 0.1; done")
		o.replaceManifest(t, manifest)
		o.awaitRestart(t, since)
	})
}

// replaceManifest adds the time of the restart to a manifest, and replaces the current one with it by a rename.
func (o *operator) replaceManifest(t *testing.T, manifest []byte) {
	t.Helper()
	edit, err := swap.Restart(manifest, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	hidden := path.Join(path.Dir(manifestFile), ".by-hand")
	if err := o.node.WriteFile(hidden, edit.Manifest); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(o.node.Root()+hidden, o.node.Root()+manifestFile); err != nil {
		t.Fatal(err)
	}
}

// awaitRestart waits until a scheduler that was started after a time works.
func (o *operator) awaitRestart(t *testing.T, since time.Time) {
	t.Helper()
	err := wait.PollImmediateWithContext(t.Context(), 200*time.Millisecond, stepTimeout, func(ctx context.Context) (bool, error) {
		output, err := o.node.Run(ctx, "kube-scheduler-swap status --output json")
		if err != nil {
			return false, nil
		}
		var status swap.Status
		if err := json.Unmarshal([]byte(output), &status); err != nil {
			return false, err
		}
		return status.Running && status.Since.After(since) && status.Health == "ok" && status.Holder != "", nil
	})
	if err != nil {
		t.Fatalf("the scheduler did not restart: %v", err)
	}
}

// accounts checks in the logs of all API servers that every created pod was bound, and none twice.
func (o *operator) accounts(t *testing.T, load *load, fewest int, others ...*kubeadmnode.Node) {
	t.Helper()
	count := load.settled(t, stepTimeout)
	if count < fewest {
		t.Errorf("only %d pods were created, want %d", count, fewest)
	}
	var bound map[string]int
	// An API server writes its log after the response.
	err := wait.PollImmediateWithContext(t.Context(), 100*time.Millisecond, stepTimeout, func(context.Context) (bool, error) {
		bound = map[string]int{}
		for _, node := range append(others, o.node) {
			for name, times := range bindings(t, node, load.namespace) {
				bound[name] += times
			}
		}
		return len(bound) >= count, nil
	})
	if err != nil && !errors.Is(err, wait.ErrWaitTimeout) {
		t.Fatal(err)
	}
	if len(bound) != count {
		t.Errorf("%d pods were created, but the API servers were asked to bind %d", count, len(bound))
	}
	unanswered := 0
	for name, times := range bound {
		if times > 1 {
			t.Errorf("the pod %s was bound %d times", name, times)
		} else if times == 0 {
			unanswered++
		}
	}
	// The load has checked that each pod has one node, and keeps it. At
	// most one binding may be unanswered for each stopped scheduler.
	if unanswered > 40 {
		t.Errorf("%d bindings were not answered with success", unanswered)
	}
	t.Logf("%d pods were bound once each; %d of the bindings were answered after the end of the scheduler", count, unanswered)
}

// table prints the figures.
func table(figures []figure) string {
	var text bytes.Buffer
	fmt.Fprintln(&text, "duration of each step, longest time without a binding while pods were pending, and longest wait of a pod that was created during the step:")
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(writer, "took\tgap\tlongest wait\t")
	for _, f := range figures {
		fmt.Fprintf(writer, "%.1f s\t%.1f s\t%.1f s\t  %s\n", f.took.Seconds(), f.gap.Seconds(), f.load.longestWait(f.from, f.from.Add(f.took)).Seconds(), f.what)
	}
	writer.Flush()
	return text.String()
}
