// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// ofPlugin is a configuration with one of this project's plugins.
func ofPlugin(name, args string) string {
	return fmt.Sprintf("%sprofiles:\n- schedulerName: served\n  plugins: {multiPoint: {enabled: [{name: %s, weight: 3}]}}\n"+
		"  pluginConfig: [{name: %s, args: %s}]\n", header, name, name, args)
}

// TestEachOfOurPluginsIsServed asks each of them about the nodes a, with ssd, and b, with hdd, of which a runs the
// pod's image, serves its data and is of its job.
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
	anything := func(scores []int64) bool { return len(scores) == 2 }
	are := func(want ...int64) func([]int64) bool {
		return func(scores []int64) bool { return slices.Equal(scores, want) }
	}
	tests := map[string]struct {
		args   string
		passed []string
		// failed is what is said of the others.
		failed string
		// scores tells whether the scores of both nodes can be so; nil is for a plugin that lets the pod go nowhere.
		scores func([]int64) bool
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
		"RandScore":        {"{seed: 7}", both, "", anything},
		"NodeFilter": {
			"{rules: [{name: not-a, action: Deny, nodeNames: [a]}]}", both[1:], `denied by rule "not-a" of NodeFilter`, are(0, 0),
		},
		// Nothing answers there: nodes are scored by the requests of their pods.
		"NodeLoad": {`{prometheus: {endpoints: ["http://127.0.0.1:1"]}, resources: [{name: cpu, threshold: 80}, {name: memory}]}`, both, "", anything},
		// The pod is an ordinary one.
		"Overcommit": {"{predictor: Requests}", both, "", are(0, 0)},
		"PodFilter": {
			"{rules: [{name: not-this, action: Deny, podNames: [incoming]}]}", []string{}, `denied by rule "not-this" of PodFilter`, nil,
		},
		// One of two nodes runs the image, so the match counts by half.
		"RunningImageLocality": {"{}", both, "", are(5, 0)},
		"Chaos":                {"{namespaces: [default], rejectPercent: 100, randomScore: true}", []string{}, "a coin of Chaos", anything},
	}
	for name := range Plugins() {
		test, found := tests[name]
		if !found {
			t.Errorf("the plugin %s is not tested here", name)
		}
		for mode, args := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				f := newFixture(t, ofPlugin(name, test.args), generous, objects(nodes, running)...)
				question := args(nodes...)
				question.Pod.Spec.Containers = []corev1.Container{{Name: "builder", Image: image}}
				question.Pod.Labels = map[string]string{"app": "job"}
				question.Pod.Annotations = map[string]string{"data-locality.scheduler/datasets": "sales=1Ti"}
				var result extenderv1.ExtenderFilterResult
				f.post(t, "filter", question, &result)
				if got := passed(t, mode, result); !slices.Equal(got, test.passed) {
					t.Errorf("passed %v, want %v", got, test.passed)
				}
				said := result.FailedNodes
				for node, why := range result.FailedAndUnresolvableNodes {
					said[node] = why
				}
				for _, node := range both {
					if why := said[node]; !slices.Contains(test.passed, node) && !strings.Contains(why, test.failed) {
						t.Errorf("of %s it is said: %q, want %q", node, why, test.failed)
					}
				}
				if test.scores == nil {
					checkFailure(t, f, "prioritize", question, http.StatusInternalServerError)
					return
				}
				// What a plugin watches for itself, it may see a moment later.
				var scores extenderv1.HostPriorityList
				await(t, "the scores", func() bool {
					scores = nil
					f.post(t, "prioritize", question, &scores)
					var values []int64
					for _, score := range scores {
						if score.Score < extenderv1.MinExtenderPriority || score.Score > extenderv1.MaxExtenderPriority {
							t.Errorf("score %d", score.Score)
						}
						values = append(values, score.Score)
					}
					return test.scores(values)
				})
				if hosts := []string{scores[0].Host, scores[1].Host}; !reflect.DeepEqual(hosts, both) {
					t.Errorf("scores of %v", hosts)
				}
			})
		}
	}
}
