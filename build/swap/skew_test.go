// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

// serverOf returns a cluster whose API server has a version.
func serverOf(version string, kubelet string) *fake.Clientset {
	client := fake.NewSimpleClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp1"},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet}}})
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: version}
	return client
}

func TestCheckComparesTheVersionOfTheAPIServer(t *testing.T) {
	const newer, lacks, untried, older = "warning: the API server is %, newer than the scheduler (1.23): pods with fields",
		"problem: the API server is %, and this image only supports 1.23", "warning: the API server is %; this project has run",
		"problem: the API server is %, older than the scheduler (1.23)"
	const unasked, unreadable = "warning: the API server is %, newer than the scheduler (1.23): only an image with the flag", "problem: the API server's version is \"%\", which cannot be compared"
	for _, c := range []struct {
		server string
		plan   *plan
		want   string
	}{
		{"v1.23.0", &plan{}, ""},
		{"v1.23.17-rc.1+x_y", &plan{}, ""},
		{"v1.24.0-rc.1+x", &plan{later: true}, newer},
		{"v1.27.3-eks-a5565ad", &plan{later: true}, newer},
		{"v1.37.2", &plan{later: true}, newer},
		{"v1.37.2", nil, unasked},
		{"v1.38.0-beta.0", &plan{later: true}, untried},
		{"v1.24.17", &plan{}, lacks},
		{"v1.24.17", &plan{refusal: errInterruptedBefore}, unasked}, // the image could not be asked
		{"v1.22.17", &plan{later: true}, older},
		{"1.24+", &plan{later: true}, newer},
		{"odd", nil, unreadable},
		{"", &plan{later: true}, unreadable},
	} {
		var found Findings
		checkSkew(&found, c.server, c.plan)
		var got string
		if len(found) == 1 {
			got = string(found[0].Severity) + ": " + found[0].What
		}
		if want := strings.ReplaceAll(c.want, "%", c.server); len(found) > 1 || (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s, %+v: %q, want %q", c.server, c.plan, found, want)
		}
	}
}

func TestCheckOfANodeAllowsNewerKubelets(t *testing.T) {
	for kubelet, want := range map[string]bool{"v1.22.17": true, "v1.23.0": false, "v1.37.2": false, "": false} {
		tool := toolFor(t, swaptest.Stock)
		tool.node.Cluster = &host.Cluster{Client: serverOf("v1.37.2", kubelet)}
		tool.node.Runtime = &host.Runtime{Containers: &swaptest.FakeRuntime{}, Endpoint: "/run/it.sock", Name: "containerd"}
		var text strings.Builder
		tool.checkNode(t.Context(), swaptest.PodWith(t), nil).Write(&text)
		if got := strings.Contains(text.String(), "this node's kubelet is "+kubelet); got != want || !strings.Contains(text.String(), "the API server is v1.37.2") {
			t.Errorf("kubelet %s:\n%s", kubelet, text.String())
		}
	}
}

func TestARollbackToASchedulerThatWouldHangIsRefused(t *testing.T) {
	old := swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:0", Version: "v1.23.17+fork.0123456789ab"})
	control := swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:0", Version: "v1.23.17+control.0123456789ab"})
	for name, c := range map[string]struct {
		server, target string
		refused        bool
		says           string
	}{
		"stock":                      {"v1.27.0", swaptest.Stock, true, ""},
		"stock with a digest":        {"v1.27.0", strings.Replace(swaptest.Stock, "v1.23.17", "v1.23.17@sha256:"+strings.Repeat("c0", 32), 1), true, ""},
		"make control":               {"v1.27.0", control, true, ""},
		"stock that starts":          {"v1.26.15", swaptest.Stock, false, ""},
		"stock of a later release":   {"v1.27.0", strings.Replace(swaptest.Stock, "v1.23.17", "v1.27.0", 1), false, ""},
		"stock with the flag":        {"v1.37.2", swaptest.StockWith("--feature-gates=X=true,CSIStorageCapacity=false"), false, ""},
		"an image of this project":   {"v1.27.0", old, false, "if the image ours:0 lacks the flag"},
		"an API server that is away": {"", swaptest.Stock, false, ""},
	} {
		tool := toolFor(t, swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:1", Version: "v1"}))
		tool.node.Runtime = &host.Runtime{Images: &swaptest.FakeRuntime{Broken: true}}
		tool.node.Cluster = &host.Cluster{Client: serverOf(c.server, "")}
		swaptest.Put(t, tool.state.Original(), c.target)
		// Without a refusal, the rollback fails at the image.
		what, next := nextstep.Split(tool.rollback(t.Context(), ToStock), "")
		if got := strings.Contains(what, "does not schedule with the API server "+c.server); got != c.refused || got == strings.Contains(what, "no images") {
			t.Errorf("%s: %s", name, what)
		} else if c.refused && !(strings.HasPrefix(next, byKubeadm) && strings.Contains(next, "--feature-gates=CSIStorageCapacity=false")) {
			t.Errorf("%s: next: %s", name, next)
		}
		if said := said(tool); !strings.Contains(said, c.says) || c.says == "" && strings.Contains(said, "lacks the flag") {
			t.Errorf("%s: it says %q", name, said)
		}
	}
}
