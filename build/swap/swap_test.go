// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
)

// These are the tests without kubelet, container runtime or API server. test/e2e runs whole installs against real ones.

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func get(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func TestAFileIsReplacedWholeAndLeavesNothingBeside(t *testing.T) {
	folder := t.TempDir()
	target := put(t, filepath.Join(folder, "manifest.yaml"), "old")
	// An interrupted run left this.
	put(t, filepath.Join(folder, ".manifest.yaml.new"), "half of it, and longer than the new one")
	if err := writeDurably(target, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t, target); got != "new" {
		t.Errorf("content %q, want new", got)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if got := names(t, folder); !slices.Equal(got, []string{"manifest.yaml"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func TestAFileThatCannotBeReplacedStaysAsItIs(t *testing.T) {
	folder := t.TempDir()
	// The target is a directory, so the last step, the rename, fails.
	target := filepath.Join(folder, "manifest.yaml")
	put(t, filepath.Join(target, "inside"), "old")
	if err := writeDurably(target, []byte("new"), 0o600); err == nil {
		t.Fatal("no error")
	}
	if got := names(t, folder); !slices.Equal(got, []string{"manifest.yaml"}) {
		t.Errorf("the folder holds %q: what could not be used has stayed", got)
	}
}

func TestConfigurationsThatNoManifestNamesAreRemoved(t *testing.T) {
	s := state{folder: t.TempDir()}
	var folders []string
	for _, content := range []string{"one", "two", "three"} {
		folder, err := s.keepConfig([]byte(content), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := s.configFolder(sum([]byte(content))); folder != want {
			t.Errorf("kept in %s, want %s", folder, want)
		}
		folders = append(folders, folder)
	}
	if err := s.dropConfigs([]byte("path: "+folders[0]+"\n"), nil, []byte("path: "+folders[2]+"\n")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if _, err := os.Stat(folders[i]); (err == nil) != want {
			t.Errorf("configuration %d: %v, want it there: %v", i, err, want)
		}
	}
	if got := get(t, filepath.Join(folders[2], ConfigFileName)); got != "three" {
		t.Errorf("content %q", got)
	}
}

func TestAConfigurationIsReadableForItsSchedulerAlone(t *testing.T) {
	s := state{folder: t.TempDir()}
	old := filepath.Join(s.configs(), "0123456789ab", ConfigFileName)
	put(t, old, "token: of an older release\n")
	user := &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	if os.Geteuid() == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65533}
	}
	folder, err := s.keepConfig([]byte("token: secret\n"), user)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(path string, mode os.FileMode, user *syscall.Credential) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if info.Mode().Perm() != mode || owner.Uid != user.Uid || owner.Gid != user.Gid {
			t.Errorf("%s is %v of %d:%d, want %v of %d:%d", path, info.Mode().Perm(), owner.Uid, owner.Gid, mode, user.Uid, user.Gid)
		}
	}
	expect(folder, 0o700, user)
	expect(filepath.Join(folder, ConfigFileName), 0o600, user)
	if err := s.closeConfigs(user); err != nil {
		t.Fatal(err)
	}
	self := &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	expect(s.configs(), 0o700, self)
	expect(old, 0o600, user)
	expect(filepath.Dir(old), 0o700, user)
	// The pod runs as root again.
	if err := giveConfig(folder, nil); err != nil {
		t.Fatal(err)
	}
	expect(folder, 0o700, self)
	expect(filepath.Join(folder, ConfigFileName), 0o600, self)
}

func TestADamagedRecordIsNotTakenForNone(t *testing.T) {
	file := put(t, filepath.Join(t.TempDir(), "journal.json"), `{"operation": "inst`)
	if there, err := readRecord(file, &journal{}); there || err == nil {
		t.Errorf("there %v, error %v", there, err)
	}
	if there, err := readRecord(file+".not", &journal{}); there || err != nil {
		t.Errorf("no record: there %v, error %v", there, err)
	}
}

func TestKubeletIsReadAsItWasStarted(t *testing.T) {
	folder := t.TempDir()
	config := put(t, filepath.Join(folder, "config.yaml"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: /from/config\n")
	for name, c := range map[string]struct {
		arguments []string
		want      kubelet
	}{
		"kubeadm with containerd": {
			[]string{"--bootstrap-kubeconfig=/x", "--config=" + config, "--container-runtime=remote", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "--hostname-override=cp1"},
			kubelet{process: 7, manifests: "/from/config", endpoint: "/run/containerd/containerd.sock", nodeName: "cp1"},
		},
		"a flag goes before the file, values may stand apart, the endpoint may have no scheme": {
			[]string{"--pod-manifest-path", "/from/flag", "--config", config, "--unknown", "--container-runtime", "remote", "--container-runtime-endpoint", "/run/crio/crio.sock", "--hostname-override", "cp1"},
			kubelet{process: 7, manifests: "/from/flag", endpoint: "/run/crio/crio.sock", nodeName: "cp1"},
		},
		"docker is the default of 1.23": {
			[]string{"--config=" + config, "--hostname-override=cp1"},
			kubelet{process: 7, manifests: "/from/config", endpoint: dockershim, docker: true, nodeName: "cp1"},
		},
		"kubeadm with docker": {
			[]string{"--config=" + config, "--hostname-override=cp1", "--network-plugin=cni", "--cni-conf-dir=/etc/cni/net.mk"},
			kubelet{process: 7, manifests: "/from/config", endpoint: dockershim, docker: true, pluginFolders: "/opt/cni/bin", networkFolder: "/etc/cni/net.mk",
				nodeName: "cp1"},
		},
		"a worker has no static pods": {
			[]string{"--container-runtime=remote", "--container-runtime-endpoint=unix:///s", "--hostname-override=w1"},
			kubelet{process: 7, endpoint: "/s", nodeName: "w1"},
		},
	} {
		got, err := readKubelet(7, c.arguments)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if *got != c.want {
			t.Errorf("%s: %+v, want %+v", name, *got, c.want)
		}
	}
	if _, err := readKubelet(7, []string{"--container-runtime=remote"}); err == nil {
		t.Error("a remote runtime without an endpoint: no error")
	}
}

func TestAMissingNetworkPluginIsNamed(t *testing.T) {
	folder := t.TempDir()
	n := &network{binaries: []string{filepath.Join(folder, "bin"), filepath.Join(folder, "more")}, configurations: filepath.Join(folder, "net.d")}
	put(t, filepath.Join(folder, "net.d", "10-first.conflist"), `{"plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}, {"type": "portmap"}]}`)
	put(t, filepath.Join(folder, "net.d", "20-later.conf"), `{"type": "never-used"}`)
	put(t, filepath.Join(folder, "bin", "bridge"), "")
	put(t, filepath.Join(folder, "more", "portmap"), "")
	missing := n.missing()
	if len(missing) != 1 || !strings.HasPrefix(missing[0], filepath.Join(folder, "bin", "host-local")+" ") {
		t.Errorf("missing: %q, want host-local alone", missing)
	}
	put(t, filepath.Join(folder, "bin", "host-local"), "")
	if missing := n.missing(); missing != nil {
		t.Errorf("missing: %q, want none", missing)
	}
	if err := os.Chmod(filepath.Join(folder, "bin", "bridge"), 0o644); err != nil {
		t.Fatal(err)
	}
	if missing := n.missing(); len(missing) != 1 {
		t.Errorf("a plugin that cannot be run is not missing: %q", missing)
	}
}

func TestTheEndOfALogIsReadInBothFormats(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"container runtime interface": {"2026-01-01T00:00:00.0Z stderr F E1 it failed here\n2026-01-01T00:00:01.0Z stdout P part\n", []string{"E1 it failed here", "part"}},
		"Docker":                      {`{"log":"E1 it failed\n","stream":"stderr","time":"2026"}` + "\n", []string{"E1 it failed"}},
		"nothing":                     {"", nil},
	} {
		got, err := logTail(put(t, filepath.Join(t.TempDir(), "0.log"), c.content))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	long := strings.Repeat("2026 stderr F "+strings.Repeat("x", 100)+"\n", 1000) + "2026 stderr F last\n"
	got, err := logTail(put(t, filepath.Join(t.TempDir(), "0.log"), long))
	if err != nil || len(got) != tailLines || got[tailLines-1] != "last" {
		t.Errorf("a long log: %d lines, %v", len(got), err)
	}
}

func TestOnlyTheLeaseOfTheDeadIsReleased(t *testing.T) {
	dead, other := "cp1_1234", "cp2_5678"
	for _, c := range []struct {
		name, holder, after string
	}{
		{"the dead one holds it", dead, ""},
		{"another one holds it by now", other, other},
		{"no scheduler holds it", "", ""},
	} {
		held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder}}
		client := fake.NewSimpleClientset(held)
		free, err := (&cluster{client: client}).release(context.Background(), schedulerpod.DefaultLease, dead)
		if err != nil || !free {
			t.Errorf("%s: free %v, %v", c.name, free, err)
		}
		now, err := client.CoordinationV1().Leases("kube-system").Get(context.Background(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := *now.Spec.HolderIdentity; got != c.after {
			t.Errorf("%s: %q holds it, want %q", c.name, got, c.after)
		}
	}
}

func TestTheControlGroupsOfPodsAreFoundInBothVersions(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{
		"memory/kubepods/burstable/pod0123abc/1234", "cpu/kubepods/burstable/pod0123abc", "memory/kubepods/podother",
		"unified/kubepods/burstable/pod0123abc", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice/x",
	} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := podCgroups(root, map[string]bool{"0123abc": true, "aa-bb": true})
	for i, path := range got {
		got[i] = strings.TrimPrefix(path, root+"/")
	}
	want := []string{"cpu/kubepods/burstable/pod0123abc", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice", "memory/kubepods/burstable/pod0123abc"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if gone([]string{filepath.Join(root, want[0])}) || !gone([]string{filepath.Join(root, "not-there")}) {
		t.Error("gone does not tell what is there")
	}
}

const stock = `apiVersion: v1
kind: Pod
metadata:
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    image: registry.k8s.io/kube-scheduler:v1.23.17
    livenessProbe:
      httpGet: {host: 127.0.0.1, path: /healthz, port: 10259, scheme: HTTPS}
    name: kube-scheduler
`

// podWith returns the scheduler's pod with more flags.
func podWith(t *testing.T, flags ...string) *Pod {
	t.Helper()
	lines := ""
	for _, flag := range flags {
		lines += "    - " + flag + "\n"
	}
	pod, err := Describe([]byte(strings.Replace(stock, "    image:", lines+"    image:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return &pod
}

// podOf returns the pod of a manifest.
func podOf(t *testing.T, manifest string) *Pod {
	t.Helper()
	pod := describe(t, manifest)
	return &pod
}

// restarted returns a manifest with a new restart time.
func restarted(manifest []byte) ([]byte, error) {
	edit, err := Restart(manifest, time.Now())
	return edit.Manifest, err
}

func TestARestartIsNoOtherManifest(t *testing.T) {
	restarted, err := restarted([]byte(stock))
	if err != nil {
		t.Fatal(err)
	}
	if !onlyRestarted([]byte(stock), restarted) || !onlyRestarted([]byte(stock), []byte(stock)) {
		t.Error("a manifest with the time of a restart in it is taken for another one")
	}
	if onlyRestarted([]byte(stock), []byte(strings.Replace(string(restarted), "v1.23.17", "v1.23.16", 1))) {
		t.Error("a manifest with another image is taken for the same")
	}
}

// toolFor returns a tool for a manifest, without a running kubelet, container runtime or API server.
func toolFor(t *testing.T, manifest string) *Tool {
	t.Helper()
	folder := t.TempDir()
	tool := newTool(Options{Output: &strings.Builder{}, State: filepath.Join(folder, "state"), Timeout: time.Minute})
	tool.node.kubelet = &kubelet{nodeName: "cp1"}
	tool.manifest = put(t, filepath.Join(folder, "manifests", manifestName), manifest)
	tool.state.manifests = filepath.Dir(tool.manifest)
	if err := keepFolder(tool.state.folder); err != nil {
		t.Fatal(err)
	}
	return tool
}

// working reports a working scheduler.
func working() error { return nil }

func TestWhatDoesNotWorkIsNoWayBack(t *testing.T) {
	broken := strings.Replace(stock, "    image:", "    - --v=9\n    image:", 1)
	tool := toolFor(t, broken)
	put(t, tool.state.original(), stock)
	put(t, tool.state.undo(), "from before")
	content, pod, err := tool.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	good, err := tool.state.keepWayBack(content, pod, nil, func() error { return errors.New("it hangs") })
	if good != nil || err != nil {
		t.Fatalf("an undo would put back %q, %v", good, err)
	}
	if got := get(t, tool.state.original()); got != stock {
		t.Errorf("the original is now\n%s", got)
	}
	kept := names(t, tool.state.folder)
	if index := slices.IndexFunc(kept, func(name string) bool { return strings.HasPrefix(name, "broken-") }); index < 0 {
		t.Errorf("what lay there is not kept: %q", kept)
	} else if got := get(t, filepath.Join(tool.state.folder, kept[index])); got != broken {
		t.Errorf("kept is\n%s", got)
	} else if said := tool.options.Output.(*strings.Builder).String(); !strings.Contains(said, "kept as "+filepath.Join(tool.state.folder, kept[index])) {
		t.Errorf("it does not say where: %q", said)
	}
	if _, err := os.Stat(tool.state.undo()); err == nil {
		t.Error("an undo from before is left, for the next run to take")
	}
}

func TestTheWayBackIsTheLastManifestThatWorked(t *testing.T) {
	swapped := func(image string) string {
		edit, err := Apply([]byte(stock), Swap{Image: image, Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		return string(edit.Manifest)
	}
	tool := toolFor(t, stock)
	crashes, works := swapped("crashes:1"), swapped("works:1")
	upgraded := strings.Replace(stock, "v1.23.17", "v1.23.18", 1)
	// wrote returns the journal of a run that wrote, or was about to write, a manifest.
	wrote := func(before *journal, manifest string) *journal {
		j := &journal{Operation: "install", Unproven: []string{identity([]byte(manifest))}}
		if before != nil {
			j.Unproven = append(j.Unproven, before.Unproven...)
		}
		return j
	}
	restartedNow := func(manifest string) string {
		content, err := restarted([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	for _, step := range []struct {
		name, found    string
		unfinished     *journal
		want, original string
	}{
		{"the first swap", stock, nil, stock, stock},
		{"it was killed after the rename", restartedNow(crashes), wrote(nil, crashes), stock, stock},
		{"so was the one after it, before the rename", restartedNow(crashes), wrote(wrote(nil, crashes), works), stock, stock},
		{"and the third one, after the rename", restartedNow(works), wrote(wrote(nil, crashes), works), stock, stock},
		{"that was finished; the next one", works, nil, works, stock},
		{"it was killed, and kubeadm wrote a newer manifest", upgraded, wrote(nil, crashes), upgraded, upgraded},
	} {
		good, err := tool.state.keepWayBack([]byte(step.found), podOf(t, step.found), step.unfinished, working)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if string(good) != step.want || get(t, tool.state.undo()) != step.want {
			t.Errorf("%s: an undo would put back\n%s", step.name, good)
		}
		if got := get(t, tool.state.original()); got != step.original {
			t.Errorf("%s: the original is\n%s", step.name, got)
		}
	}
}

func TestAManifestThatNamesOurConfigurationWithoutItsVolumeIsNoOriginal(t *testing.T) {
	half := strings.Replace(stock, "    image:", "    - --config="+ContainerConfigPath+"\n    image:", 1)
	tool := toolFor(t, half)
	content, pod, err := tool.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.state.keepWayBack(content, pod, nil, working); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool.state.original()); err == nil {
		t.Error("a manifest whose scheduler cannot start is kept as kubeadm's own")
	}
}

func TestCheckFindsASwapThatWasUndone(t *testing.T) {
	swap := Swap{Image: "ours:1", Version: "v1", ConfigFolder: "/var/lib/kube-scheduler-swap/configs/0123456789ab", ConfigSHA256: strings.Repeat("0123456789abcdef", 4), Mounts: "/etc/extender", Hardened: true}
	edit, err := Apply([]byte(stock), swap)
	if err != nil {
		t.Fatal(err)
	}
	swapped, flag := string(edit.Manifest), "    - --config="+ContainerConfigPath+"\n"
	for _, c := range []struct {
		name, manifest string
		installed      bool // by this tool on this node
		want           Severity
		words          string
	}{
		{"as it was installed", swapped, true, "", ""},
		{"kubeadm's own again", stock, true, Problem, "the swap was undone"},
		{"another image", strings.Replace(swapped, "ours:1", "ours:2", 1), true, Problem, "the swap was undone"},
		{"not hardened", strings.Replace(swapped, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", 1), true, Problem, "is not hardened"},
		{"without its mount", strings.Replace(swapped, "kube-scheduler-swap-1", "mine", 2), true, Problem, "mounts other directories"},
		{"another line", swapped + "# mine\n", true, Warning, "was rewritten or edited"},
		{"without its configuration", strings.Replace(swapped, flag, "", 1), true, Problem, "partly undone"},
		{"an upgrade of a node that joined swapped", strings.Replace(stock, "    image:", flag+"    image:", 1), false, Problem, "mounts nothing there"},
	} {
		tool := toolFor(t, c.manifest)
		if c.installed {
			record := installed{Manifest: sum(edit.Manifest), Image: "ours:1", Config: swap.ConfigSHA256, Mounts: swap.Mounts, Hardened: true, At: time.Now()}
			if err := writeRecord(tool.state.installedFile(), record); err != nil {
				t.Fatal(err)
			}
		}
		content, pod, err := tool.readManifest()
		if err != nil {
			t.Fatal(err)
		}
		var findings Findings
		if err := tool.checkUndone(&findings, content, pod); err != nil {
			t.Fatal(err)
		}
		switch {
		case c.want == "" && len(findings) == 0:
		case len(findings) == 1 && findings[0].Severity == c.want && strings.Contains(findings[0].What, c.words) && findings[0].Next != "":
		default:
			t.Errorf("%s: %+v, want %s %q", c.name, findings, c.want, c.words)
		}
	}
}

func TestMountsAreCheckedAndStay(t *testing.T) {
	folder, earlier := t.TempDir(), t.TempDir()
	edit, err := Apply([]byte(stock), Swap{Image: "ours:1", Mounts: earlier})
	if err != nil {
		t.Fatal(err)
	}
	pod := describe(t, string(edit.Manifest))
	for _, tt := range []struct {
		requested  []string
		want, fail string
	}{
		{nil, earlier, ""},
		{[]string{NoMount}, "", ""},
		{[]string{folder + "/", folder}, folder, ""},
		{[]string{"extender"}, "", "is not an absolute path"},
		{[]string{folder, folder + "/none"}, "", "no such file"},
		{[]string{put(t, filepath.Join(folder, "ca.crt"), "")}, "", "is not a directory"},
		{[]string{"/etc/kubernetes"}, "", "already has a volume at"},
		{[]string{ContainerConfigFolder + "/files"}, "", "already has a volume at " + ContainerConfigFolder},
	} {
		p := &plan{pod: &pod}
		err := p.planMounts(tt.requested)
		switch {
		case tt.fail == "" && (err != nil || p.swap.Mounts != tt.want):
			t.Errorf("%q: %q, %v; want %q", tt.requested, p.swap.Mounts, err, tt.want)
		case tt.fail != "" && (err == nil || !strings.Contains(err.Error(), tt.fail)):
			t.Errorf("%q: %v, want an error that contains %q", tt.requested, err, tt.fail)
		}
	}
	if err := os.Remove(earlier); err != nil {
		t.Fatal(err)
	}
	if err := (&plan{pod: &pod}).planMounts(nil); err == nil || !strings.Contains(err.Error(), "or --mount none") {
		t.Errorf("a directory of the current swap that is gone: %v", err)
	}
}

func TestAManifestThatSomebodyElseHasWrittenStays(t *testing.T) {
	tool := toolFor(t, stock)
	theirs := strings.Replace(stock, "v1.23.17", "v1.23.18", 1)
	put(t, tool.manifest, theirs)
	_, pod, err := tool.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	change := &replacement{tool: tool, pod: pod, found: []byte(stock), mode: 0o600,
		edit: func(at time.Time) (Edit, error) { return Restart([]byte(stock), at) }}
	var other *changedByOther
	if err := change.write(); !errors.As(err, &other) {
		t.Errorf("error %v, want that another program has written it", err)
	}
	if got := get(t, tool.manifest); got != theirs {
		t.Errorf("their manifest was overwritten:\n%s", got)
	}
}

func TestRollbackKnowsWhetherItGoesBackToWhatWasSwapped(t *testing.T) {
	edit, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1", RestartedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	pod, err := Describe(edit.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if !swapOf([]byte(stock), &pod) {
		t.Error("a swap is taken for another manifest")
	}
	if swapOf([]byte(strings.Replace(stock, "10259", "10260", 1)), &pod) {
		t.Error("the swap of another manifest is taken for that of this one")
	}
}

func TestAPipeIsNotWaitedFor(t *testing.T) {
	tool := toolFor(t, stock)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, pod, err := tool.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(tool.manifest), "pipe.yaml")
	if err := unix.Mkfifo(beside, 0o600); err != nil {
		t.Fatal(err)
	}
	mounted := podWith(t, "--config="+pipe)
	mounted.Object.Spec.Volumes = []corev1.Volume{{Name: "pipe",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: pipe}}}}
	mounted.Container().VolumeMounts = []corev1.VolumeMount{{Name: "pipe", MountPath: pipe}}
	for what, read := range map[string]func() error{
		"an archive":                        func() error { _, err := openArchive(pipe); return err },
		"a configuration":                   func() error { return tool.planConfig(&plan{pod: pod}, Request{Config: pipe}) },
		"the configuration of the manifest": func() error { _, err := configContent(mounted); return err },
		"the administrator's credentials":   func() error { _, err := connectCluster(pipe); return err },
		"another file of the folder": func() error {
			var findings Findings
			tool.checkStray(&findings, pod)
			return errors.New(findings[0].What)
		},
	} {
		done := make(chan error, 1)
		go func() { done <- read() }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s is waited for", what)
		}
	}
}

func TestAManifestThatIsALinkIsRefused(t *testing.T) {
	tool := toolFor(t, stock)
	tool.node.runtime = &runtime{endpoint: "/run/it.sock", name: "containerd"}
	tool.node.cluster = &cluster{client: fake.NewSimpleClientset()}
	real := filepath.Join(t.TempDir(), "ks.yaml")
	if err := errors.Join(os.Rename(tool.manifest, real), os.Symlink(real, tool.manifest)); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		for _, want := range []string{"is a symbolic link to " + real, "cp " + real} {
			if !strings.Contains(what, want) {
				t.Errorf("want %q in:\n%s", want, what)
			}
		}
	}
	_, pod, err := tool.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	tool.checkNode(t.Context(), pod, nil).Write(&found)
	refused(found.String())
	put(t, tool.state.original(), stock)
	for _, to := range []string{ToStock, ToPrevious} {
		if err := tool.rollback(t.Context(), to); err == nil {
			t.Error("a rollback replaces it")
		} else {
			refused(err.Error())
		}
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tool.readManifest(); err == nil {
		t.Error("a link to nothing is read")
	} else {
		refused(err.Error())
	}
}

func TestAManifestOfAnUnfinishedRunIsInDoubtUntilItWasSeen(t *testing.T) {
	tool := toolFor(t, stock)
	unfinished := &journal{Unproven: []string{identity([]byte(stock))}}
	again, err := restarted([]byte(stock))
	if err != nil {
		t.Fatal(err)
	}
	other := []byte(strings.Replace(stock, "v1.23.17", "v1.23.18", 1))
	expect := func(when string, unfinished *journal, manifest []byte, want bool) {
		t.Helper()
		if got, err := tool.state.doubted(unfinished, manifest); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	expect("no run is unfinished", nil, again, false)
	expect("the run wrote it", unfinished, again, true)
	expect("another program wrote another one", unfinished, other, false)
	if err := writeRecord(tool.state.installedFile(), installed{Manifest: sum(again)}); err != nil {
		t.Fatal(err)
	}
	expect("the run saw it work, and was ended as it cleared up", unfinished, again, false)
}

func TestAManifestThatARollbackPutBackIsNobodysEdit(t *testing.T) {
	tool := toolFor(t, stock)
	put(t, tool.state.original(), stock)
	again, err := restarted([]byte(stock))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.state.keepEdits(again, false); err != nil {
		t.Fatal(err)
	}
	if got, _ := filepath.Glob(filepath.Join(tool.state.folder, "edited-*")); len(got) != 0 {
		t.Errorf("kept %q", got)
	}
}

func TestStrayFilesAreFound(t *testing.T) {
	tool := toolFor(t, stock)
	folder := filepath.Dir(tool.manifest)
	put(t, filepath.Join(folder, "kube-scheduler.yaml.bak"), stock)
	put(t, filepath.Join(folder, ".kube-scheduler.yaml.swp"), stock)
	put(t, filepath.Join(folder, "other.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: c, image: i}]}\n")
	_, pod, err := tool.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	var findings Findings
	tool.checkStray(&findings, pod)
	if len(findings) != 1 || findings.Problems() != 1 || !strings.Contains(findings[0].What, "kube-scheduler.yaml.bak") {
		t.Errorf("%+v, want the backup alone", findings)
	}
}

func TestAReleaseIsComparedByItsMinor(t *testing.T) {
	for version, want := range map[string]string{"v1.23.17": "1.23", "v1.24.0-rc.1+x": "1.24", "1.23.0": "1.23", "odd": "odd"} {
		if got := minorOf(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

func TestAnotherFormOfTheManifestIsAnnouncedAndItsExactTextIsKept(t *testing.T) {
	for _, c := range []struct {
		name, manifest string
		want           bool
	}{
		{"as kubeadm writes it", string(readFile(t, "testdata/kubeadm/before.yaml")), false},
		{"edited by hand", string(readFile(t, "testdata/comments-everywhere/before.yaml")), true},
		{"with a line that kubeadm broke", strings.Replace(string(readFile(t, "testdata/kubeadm/before.yaml")), "=true\n",
			"=true\n    - --vmodule=a b\n      c\n", 1), true},
	} {
		tool := toolFor(t, c.manifest)
		content, pod, err := tool.readManifest()
		if err != nil {
			t.Fatal(err)
		}
		edit, err := Apply(content, withConfig)
		if err != nil {
			t.Fatal(err)
		}
		after := describe(t, string(edit.Manifest))
		var findings Findings
		tool.checkForm(&findings, &plan{before: content, pod: pod, afterPod: &after, reformatted: edit.Reformatted})
		if got := len(findings) == 1 && findings.Problems() == 0 && strings.Contains(findings[0].What, "rewrites the whole file"); got != c.want {
			t.Errorf("%s: check says %+v", c.name, findings)
		}
		tool.state.keepExact(content)
		kept, _ := filepath.Glob(filepath.Join(tool.state.folder, "exact-*"))
		if got := len(kept) == 1 && get(t, kept[0]) == c.manifest; got != c.want {
			t.Errorf("%s: kept %q", c.name, kept)
		}
		if said := tool.options.Output.(*strings.Builder).String(); strings.Contains(said, "exact text is kept as") != c.want {
			t.Errorf("%s: it says %q", c.name, said)
		}
	}
}
