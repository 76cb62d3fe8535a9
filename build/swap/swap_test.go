// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
	"kube-scheduler-fork/build/swap/swaptest"
)

// said returns what a tool has printed.
func said(tool *Tool) string { return tool.options.Output.(*strings.Builder).String() }

// toolFor returns a tool for a manifest, without a running kubelet, container runtime or API server.
func toolFor(t *testing.T, manifest string) *Tool {
	t.Helper()
	folder := t.TempDir()
	tool := newTool(Options{Output: &strings.Builder{}, State: filepath.Join(folder, "state"), Timeout: time.Minute})
	tool.node.Kubelet = &host.Kubelet{NodeName: "cp1"}
	tool.node.Cluster = &host.Cluster{Client: fake.NewSimpleClientset()}
	tool.manifest = swaptest.Put(t, filepath.Join(folder, "manifests", manifestName), manifest)
	tool.state.Watched = filepath.Dir(tool.manifest)
	if err := record.CreateDirectory(tool.state.Path); err != nil {
		t.Fatal(err)
	}
	return tool
}

// recordInstalled records a manifest as the last one that was installed.
func recordInstalled(t *testing.T, tool *Tool, manifest string, swap manifest.Swap) {
	t.Helper()
	if err := tool.state.RecordInstalled([]byte(manifest), swap, ""); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsASwapThatWasUndone(t *testing.T) {
	swap := manifest.Swap{Image: "ours:1", Version: "v1", ConfigFolder: "/var/lib/kube-scheduler-swap/configs/0123456789ab", ConfigSHA256: strings.Repeat("0123456789abcdef", 4), Mounts: "/etc/extender", Hardened: true}
	swapped, flag := swaptest.Swapped(t, swaptest.Stock, swap), "    - --config="+manifest.ContainerConfigPath+"\n"
	for _, c := range []struct {
		name, manifest string
		installed      bool // by this tool on this node
		want           Severity
		words          string
	}{
		{"as it was installed", swapped, true, "", ""},
		{"kubeadm's own again", swaptest.Stock, true, Problem, "the swap was undone"},
		{"another image", strings.Replace(swapped, "ours:1", "ours:2", 1), true, Problem, "the swap was undone"},
		{"not hardened", strings.Replace(swapped, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", 1), true, Problem, "is not hardened"},
		{"without its mount", strings.Replace(swapped, "kube-scheduler-swap-1", "mine", 2), true, Problem, "mounts other directories"},
		{"another line", swapped + "# mine\n", true, Warning, "was rewritten or edited"},
		{"without its configuration", strings.Replace(swapped, flag, "", 1), true, Problem, "partly undone"},
		{"an upgrade of a node that joined swapped", strings.Replace(swaptest.Stock, "    image:", flag+"    image:", 1), false, Problem, "mounts nothing there"},
	} {
		tool := toolFor(t, c.manifest)
		if c.installed {
			recordInstalled(t, tool, swapped, swap)
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
	edit := swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:1", Mounts: earlier})
	pod := swaptest.PodOf(t, edit)
	for _, tt := range []struct {
		requested  []string
		want, fail string
	}{
		{nil, earlier, ""},
		{[]string{NoMount}, "", ""},
		{[]string{folder + "/", folder}, folder, ""},
		{[]string{"extender"}, "", "is not an absolute path"},
		{[]string{folder, folder + "/none"}, "", "no such file"},
		{[]string{swaptest.Put(t, filepath.Join(folder, "ca.crt"), "")}, "", "is not a directory"},
		{[]string{"/etc/kubernetes"}, "", "already has a volume at"},
		{[]string{manifest.ContainerConfigFolder + "/files"}, "", "already has a volume at " + manifest.ContainerConfigFolder},
	} {
		p := &plan{pod: pod}
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
	if err := (&plan{pod: pod}).planMounts(nil); err == nil || !strings.Contains(err.Error(), "or --mount none") {
		t.Errorf("a directory of the current swap that is gone: %v", err)
	}
}

func TestAManifestThatSomebodyElseHasWrittenStays(t *testing.T) {
	tool := toolFor(t, swaptest.Stock)
	theirs := strings.Replace(swaptest.Stock, "v1.23.17", "v1.23.18", 1)
	swaptest.Put(t, tool.manifest, theirs)
	pod := swaptest.PodOf(t, swaptest.Get(t, tool.manifest))
	change := &replacement{tool: tool, pod: pod, found: []byte(swaptest.Stock), mode: 0o600,
		edit: func(at time.Time) (manifest.Edit, error) { return manifest.Restart([]byte(swaptest.Stock), at) }}
	var other *changedByOther
	if err := change.write(); !errors.As(err, &other) {
		t.Errorf("error %v, want that another program has written it", err)
	}
	if got := swaptest.Get(t, tool.manifest); got != theirs {
		t.Errorf("their manifest was overwritten:\n%s", got)
	}
}

func TestAPipeIsNotWaitedFor(t *testing.T) {
	tool := toolFor(t, swaptest.Stock)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	pod := swaptest.PodOf(t, swaptest.Get(t, tool.manifest))
	beside := filepath.Join(filepath.Dir(tool.manifest), "pipe.yaml")
	if err := unix.Mkfifo(beside, 0o600); err != nil {
		t.Fatal(err)
	}
	mounted := swaptest.PodWith(t, "--config="+pipe)
	mounted.Object.Spec.Volumes = []corev1.Volume{{Name: "pipe",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: pipe}}}}
	mounted.Container().VolumeMounts = []corev1.VolumeMount{{Name: "pipe", MountPath: pipe}}
	for what, read := range map[string]func() error{
		"an archive":                        func() error { _, err := record.OpenArchive(pipe); return err },
		"a configuration":                   func() error { return tool.planConfig(&plan{pod: pod}, Request{Config: pipe}) },
		"the configuration of the manifest": func() error { _, err := host.ConfigContent(mounted); return err },
		"the administrator's credentials":   func() error { _, err := host.ConnectCluster(pipe); return err },
		"another file of the folder": func() error {
			var findings Findings
			tool.checkOtherFiles(&findings, pod)
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
	tool := toolFor(t, swaptest.Stock)
	tool.node.Runtime = &host.Runtime{Endpoint: "/run/it.sock", Name: "containerd"}
	tool.node.Cluster = &host.Cluster{Client: fake.NewSimpleClientset()}
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
	pod := swaptest.PodOf(t, swaptest.Get(t, tool.manifest))
	var found strings.Builder
	tool.checkNode(t.Context(), pod, nil).Write(&found)
	refused(found.String())
	swaptest.Put(t, tool.state.Original(), swaptest.Stock)
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

func TestStrayFilesAreFound(t *testing.T) {
	tool := toolFor(t, swaptest.Stock)
	folder := filepath.Dir(tool.manifest)
	swaptest.Put(t, filepath.Join(folder, "kube-scheduler.yaml.bak"), swaptest.Stock)
	swaptest.Put(t, filepath.Join(folder, ".kube-scheduler.yaml.swp"), swaptest.Stock)
	swaptest.Put(t, filepath.Join(folder, "other.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: c, image: i}]}\n")
	pod := swaptest.PodOf(t, swaptest.Get(t, tool.manifest))
	var findings Findings
	tool.checkOtherFiles(&findings, pod)
	if len(findings) != 1 || findings.Problems() != 1 || !strings.Contains(findings[0].What, "kube-scheduler.yaml.bak") {
		t.Errorf("%+v, want the backup alone", findings)
	}
}

func TestAnotherFormOfTheManifestIsAnnouncedAndItsExactTextIsKept(t *testing.T) {
	for _, c := range []struct {
		name, manifest string
		want           bool
	}{
		{"as kubeadm writes it", swaptest.Get(t, "manifest/testdata/kubeadm/before.yaml"), false},
		{"edited by hand", swaptest.Get(t, "manifest/testdata/comments-everywhere/before.yaml"), true},
		{"with a line that kubeadm broke", strings.Replace(swaptest.Get(t, "manifest/testdata/kubeadm/before.yaml"), "=true\n",
			"=true\n    - --vmodule=a b\n      c\n", 1), true},
	} {
		tool := toolFor(t, c.manifest)
		content, pod, err := tool.readManifest()
		if err != nil {
			t.Fatal(err)
		}
		edit, err := manifest.Apply(content, manifest.Swap{Image: "ours:1", Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		after := swaptest.PodOf(t, string(edit.Manifest))
		var findings Findings
		tool.checkForm(&findings, &plan{before: content, pod: pod, afterPod: after, reformatted: edit.Reformatted})
		if got := len(findings) == 1 && findings.Problems() == 0 && strings.Contains(findings[0].What, "rewrites the whole file"); got != c.want {
			t.Errorf("%s: check says %+v", c.name, findings)
		}
		tool.state.SaveExact(content)
		kept, _ := filepath.Glob(filepath.Join(tool.state.Path, "exact-*"))
		if got := len(kept) == 1 && swaptest.Get(t, kept[0]) == c.manifest; got != c.want {
			t.Errorf("%s: kept %q", c.name, kept)
		}
		if said := said(tool); strings.Contains(said, "exact text is kept as") != c.want {
			t.Errorf("%s: it says %q", c.name, said)
		}
	}
}
