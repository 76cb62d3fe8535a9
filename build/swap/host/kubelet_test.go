// SPDX-License-Identifier: Apache-2.0

package host

import (
	"path/filepath"
	"testing"

	"kube-scheduler-fork/build/swap/swaptest"
)

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
