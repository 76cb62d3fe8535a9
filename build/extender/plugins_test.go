// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// ofPlugin returns a configuration with one plugin.
func ofPlugin(name, args string) string {
	return fmt.Sprintf("%sprofiles:\n- schedulerName: served\n  plugins: {multiPoint: {enabled: [{name: %s, weight: 3}]}}\n"+
		"  pluginConfig: [{name: %s, args: %s}]\n", header, name, name, args)
}

// TestEachOfOurPluginsIsServed calls each of them with the nodes a, with ssd, and b, with hdd. Node a has a pod with the
// pod's image, its data and its job.
func TestEachOfOurPluginsIsServed(t *testing.T) {
	const image = "registry.example.com/builder:v1"
	running := onNode("running", "a")
	running.Spec.Containers = []corev1.Container{{Name: "builder", Image: image}}
	running.Status.Phase = corev1.PodRunning
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "builder", Image: image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	running.Labels = map[string]string{"dataset": "sales", "app": "job"}
	nodes := []*corev1.Node{diskNode("a", "ssd"), diskNode("b", "hdd")}
	both := []string{"a", "b"}
	inRange := func(a, b int64) bool { return min(a, b) >= 0 && max(a, b) <= 10 }
	are := func(wantA, wantB int64) func(int64, int64) bool {
		return func(a, b int64) bool { return a == wantA && b == wantB }
	}
	tests := map[string]struct {
		args   string
		passed []string
		// failed is the reason of the others.
		failed string
		// scores checks the scores of both nodes; nil expects an error, because PreFilter rejects the pod.
		scores func(a, b int64) bool
	}{
		"DataLocality": {
			"{servers: [{datasetLabel: dataset}], levels: [{topologyKey: disktype, percent: 50}], requireWithin: disktype}", both[:1],
			`had not all data that the pod reads within their "disktype"`, are(5, 0),
		},
		"MyScorePlugin":        {"{preferredValues: [ssd, hdd]}", both, "", are(10, 5)},
		"ExtensionPointLogger": {"{redact: true}", both, "", are(0, 0)},
		"NodeCost": {
			"{strategy: CheapestNode, capacityTypeLabel: disktype, prices: [{capacityType: ssd, pricePerHour: 1}, {capacityType: hdd, pricePerHour: 2}]}",
			both, "", are(10, 5),
		},
		"WorkloadTopology": {"{podSelector: {}, groupBy: [app], levels: [{topologyKey: disktype, cost: 0}]}", both, "", are(10, 0)},
		"RandScore":        {"{seed: 7}", both, "", inRange},
		"NodeFilter": {
			"{rules: [{name: not-a, action: Deny, nodeNames: [a]}]}", both[1:], `denied by rule "not-a" of NodeFilter`, are(0, 0),
		},
		// Nothing answers there: nodes are scored by the requests of their pods.
		"NodeLoad": {`{prometheus: {endpoints: ["http://127.0.0.1:1"]}, resources: [{name: cpu, threshold: 80}, {name: memory}]}`, both, "", inRange},
		// The pod is an ordinary one.
		"Overcommit": {"{predictor: Requests}", both, "", are(0, 0)},
		"PodFilter": {
			"{rules: [{name: not-this, action: Deny, podNames: [incoming]}]}", []string{}, `denied by rule "not-this" of PodFilter`, nil,
		},
		// One of two nodes runs the image, so the match counts by half.
		"RunningImageLocality": {"{}", both, "", are(5, 0)},
		"Chaos":                {"{namespaces: [default], rejectPercent: 100, randomScore: true}", []string{}, "a coin of Chaos", inRange},
	}
	for name := range Plugins() {
		test, found := tests[name]
		if !found {
			t.Errorf("the plugin %s is not tested here", name)
		}
		for _, mode := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				f := newFixture(t, ofPlugin(name, test.args), generous, objects(nodes, running)...)
				pod := newPod()
				pod.Spec.Containers = []corev1.Container{{Name: "builder", Image: image}}
				pod.Labels = map[string]string{"app": "job"}
				pod.Annotations = map[string]string{"data-locality.scheduler/datasets": "sales=1Ti"}
				client := upstreamsClient(t, extenderConfig(f.url, in(mode)))
				passed, failed, unresolvable, err := client.Filter(pod, nodes)
				if err != nil || !slices.Equal(namesOf(passed), test.passed) {
					t.Errorf("passed %v, %v, want %v", namesOf(passed), err, test.passed)
				}
				for _, reasons := range []extenderv1.FailedNodesMap{failed, unresolvable} {
					for node, why := range reasons {
						if !strings.Contains(why, test.failed) {
							t.Errorf("%s failed with %q, want %q", node, why, test.failed)
						}
					}
				}
				// A plugin's own informers may have synced a moment later.
				plugintest.WaitFor(t, "the scores", func() bool {
					scores, _, err := client.Prioritize(pod, nodes)
					if err != nil {
						return test.scores == nil
					}
					return test.scores != nil && test.scores((*scores)[0].Score, (*scores)[1].Score)
				})
			})
		}
	}
}
