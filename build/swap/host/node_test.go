// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/swaptest"
)

// nodeWith returns a node of a cluster, and what it says.
func nodeWith(c *Cluster) (*Node, *strings.Builder) {
	said := &strings.Builder{}
	return &Node{Kubelet: &Kubelet{NodeName: "cp1"}, Cluster: c, Say: func(format string, arguments ...any) { fmt.Fprintf(said, format+"\n", arguments...) }}, said
}

func TestKubeletIsReadAsItWasStarted(t *testing.T) {
	folder := t.TempDir()
	config := swaptest.Put(t, filepath.Join(folder, "config.yaml"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: /from/config\n")
	for name, c := range map[string]struct {
		arguments []string
		want      Kubelet
	}{
		"kubeadm with containerd": {
			[]string{"--bootstrap-kubeconfig=/x", "--config=" + config, "--container-runtime=remote", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "--hostname-override=cp1"},
			Kubelet{Process: 7, Manifests: "/from/config", Endpoint: "/run/containerd/containerd.sock", NodeName: "cp1"},
		},
		"a flag goes before the file, values may stand apart, the endpoint may have no scheme": {
			[]string{"--pod-manifest-path", "/from/flag", "--config", config, "--unknown", "--container-runtime", "remote", "--container-runtime-endpoint", "/run/crio/crio.sock", "--hostname-override", "cp1"},
			Kubelet{Process: 7, Manifests: "/from/flag", Endpoint: "/run/crio/crio.sock", NodeName: "cp1"},
		},
		"docker is the default of 1.23": {
			[]string{"--config=" + config, "--hostname-override=cp1"},
			Kubelet{Process: 7, Manifests: "/from/config", Endpoint: dockershim, Docker: true, NodeName: "cp1"},
		},
		"kubeadm with docker": {
			[]string{"--config=" + config, "--hostname-override=cp1", "--network-plugin=cni", "--cni-conf-dir=/etc/cni/net.mk"},
			Kubelet{Process: 7, Manifests: "/from/config", Endpoint: dockershim, Docker: true, pluginFolders: "/opt/cni/bin", networkFolder: "/etc/cni/net.mk",
				NodeName: "cp1"},
		},
		"a worker has no static pods": {
			[]string{"--container-runtime=remote", "--container-runtime-endpoint=unix:///s", "--hostname-override=w1"},
			Kubelet{Process: 7, Endpoint: "/s", NodeName: "w1"},
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
	swaptest.Put(t, filepath.Join(folder, "net.d", "10-first.conflist"), `{"plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}, {"type": "portmap"}]}`)
	swaptest.Put(t, filepath.Join(folder, "net.d", "20-later.conf"), `{"type": "never-used"}`)
	swaptest.Put(t, filepath.Join(folder, "bin", "bridge"), "")
	swaptest.Put(t, filepath.Join(folder, "more", "portmap"), "")
	missing := n.missing()
	if len(missing) != 1 || !strings.HasPrefix(missing[0], filepath.Join(folder, "bin", "host-local")+" ") {
		t.Errorf("missing: %q, want host-local alone", missing)
	}
	swaptest.Put(t, filepath.Join(folder, "bin", "host-local"), "")
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
		got, err := logTail(swaptest.Put(t, filepath.Join(t.TempDir(), "0.log"), c.content))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	long := strings.Repeat("2026 stderr F "+strings.Repeat("x", 100)+"\n", 1000) + "2026 stderr F last\n"
	got, err := logTail(swaptest.Put(t, filepath.Join(t.TempDir(), "0.log"), long))
	if err != nil || len(got) != tailLines || got[tailLines-1] != "last" {
		t.Errorf("a long log: %d lines, %v", len(got), err)
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

func TestAFullDiskIsNamedWithTheRoomThatIsNeeded(t *testing.T) {
	folder := t.TempDir()
	swaptest.Put(t, filepath.Join(folder, "bin", "ctr"), "#!/bin/sh\necho 'ctr: write x: no space left on device'\nexit 1\n")
	swaptest.Put(t, filepath.Join(folder, "bin", "docker"), "#!/bin/sh\necho 'Error response from daemon: write x: no space left on device'\nexit 1\n")
	t.Setenv("PATH", filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	r := &Runtime{Images: &swaptest.FakeRuntime{Images: map[string]string{"a": "sha256:1"}}}
	err := r.Save(t.Context(), "a", filepath.Join(folder, ".scratch-1", "image.tar"))
	if err == nil {
		t.Fatal("no error")
	}
	what, next := nextstep.Split(err, "")
	if !strings.Contains(what, "cannot export the image a into "+folder+":") || !strings.Contains(next, "df -h "+folder+"; make room for 21 MB there") {
		t.Errorf("%s\nnext: %s", what, next)
	}
	r.Docker = true
	if what, next = nextstep.Split(r.Save(t.Context(), "a", filepath.Join(folder, "image.tar")), ""); !strings.Contains(next, "the disk of the container runtime") {
		t.Errorf("%s\nnext: %s", what, next)
	}
}
