// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// TestOvercommittingPods is about a pod on a node of 10 cores with a load of 72 %.
func TestOvercommittingPods(t *testing.T) {
	for _, test := range []struct {
		name           string
		asks, measured bool
		since          int
		want           string
	}{
		{"a core that an overcommitting pod uses is no load", true, true, -1000, "62 %"},
		{"it is not known", true, false, -1000, "72 %"},
		{"one that starts will be no load", true, false, 0, "72 %"},
		{"the use of an ordinary pod", false, true, -1000, "72 %"},
		{"an ordinary pod that starts", false, false, 0, "92 %"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := on(pod("p", "2"), "node-0", test.since)
			if test.asks {
				p.Spec.Containers[0].Resources.Requests = v1.ResourceList{
					v1.ResourceCPU: apiresource.MustParse("0"), v1.ResourceMemory: apiresource.MustParse("1Mi"),
					config.OvercommitResource: apiresource.MustParse("2000"),
				}
				p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("2")}
			}
			w := newWorld(t, arguments(cpu(70)), nodes(1))
			w.measureLoads(0.72)
			if w.plugin.current().usedByPods[0] = map[string]collector.Sample{"test/other": w.sample(1, 0)}; test.measured {
				w.plugin.current().usedByPods[0]["test/p"] = w.sample(1, 0)
			}
			if got := w.predicted(plugintest.NodeInfo(nodes(1)[0], p)); got != test.want {
				t.Errorf("the load is %s, want %s", got, test.want)
			}
		})
	}
}
