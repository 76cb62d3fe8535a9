// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/test/cluster"
)

// moduleConfig enables the plugin of scheduler-plugins at each of its extension points, with each of its arguments, and at
// filter, which the plugin here needs.
const moduleConfig = `apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
      preFilter: &plugin {enabled: [{name: Coscheduling}]}
      filter: *plugin
      postFilter: *plugin
      reserve: *plugin
      permit: *plugin
      postBind: *plugin
    pluginConfig:
      - name: Coscheduling
        args: {permitWaitingTimeSeconds: 10, deniedPGExpirationTimeSeconds: 3}
`

// kind describes the pods of a gang, or single pods if min is 0.
type kind struct {
	cpu, min  int
	important bool
	// resources is the gang's minResources.
	resources string
}

// The cases are those of TestCoschedulingPlugin of scheduler-plugins, with CPUs instead of memory: the node has six.
func TestGangsOfSchedulerPluginsRunAsThere(t *testing.T) {
	fits, large, wide := kind{cpu: 1, min: 3}, kind{cpu: 2, min: 4}, kind{cpu: 2, min: 3}
	important := kind{cpu: 1, min: 3, important: true}
	fitsToo, largeToo := kind{cpu: 1, min: 3, resources: "3"}, kind{cpu: 2, min: 4, resources: "8"}
	for name, test := range map[string]struct {
		// A letter is a pod, in the order of their creation. Those of want are bound, and of the others none, unless it
		// is evicted for them.
		pods, want string
		kinds      map[rune]kind
	}{
		"two gangs":                     {"aaabbbb", "a", map[rune]kind{'a': fits, 'b': large}},
		"two interleaved gangs":         {"abababb", "a", map[rune]kind{'a': fits, 'b': large}},
		"an incomplete gang, and pods":  {"axaxa", "x", map[rune]kind{'a': {cpu: 1, min: 4}, 'x': {cpu: 2}}},
		"a more important gang":         {"aaabbb", "b", map[rune]kind{'a': wide, 'b': important}},
		"it is interleaved":             {"ababab", "b", map[rune]kind{'a': wide, 'b': important}},
		"a gang, and important pods":    {"axaxax", "x", map[rune]kind{'a': fits, 'x': {cpu: 2, important: true}}},
		"three interleaved gangs":       {"abcabcabcbc", "a", map[rune]kind{'a': fits, 'b': large, 'c': large}},
		"three gangs with minResources": {"abcabcabcbc", "a", map[rune]kind{'a': fitsToo, 'b': largeToo, 'c': largeToo}},
		"two gangs with minResources":   {"abababb", "a", map[rune]kind{'a': fitsToo, 'b': largeToo}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
			s.CreateNodes(t, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "node"},
				Status:     corev1.NodeStatus{Allocatable: cluster.Resources("6", "64Gi", "32")},
			})
			file := filepath.Join(t.TempDir(), "config.yaml")
			cluster.Write(t, file, moduleConfig)
			s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file)
			for letter, kind := range test.kinds {
				if kind.min > 0 {
					resources := ""
					if kind.resources != "" {
						resources = ", minResources: {cpu: " + kind.resources + "}"
					}
					s.create(t, "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\n"+
						"metadata: {name: %c, namespace: default}\nspec: {minMember: %d%s}\n", letter, kind.min, resources)
				}
			}
			for i, letter := range test.pods {
				kind := test.kinds[letter]
				pod := newPod(corev1.NamespaceDefault, fmt.Sprintf("%c-%d", letter, i), fmt.Sprint(kind.cpu))
				if kind.min > 0 {
					pod.Labels = map[string]string{groupLabel: string(letter)}
				}
				if kind.important {
					pod.Spec.PriorityClassName = "important"
				}
				s.CreatePod(t, pod)
			}
			want := strings.Count(test.pods, test.want)
			s.Await(t, fmt.Sprintf("the pods of %s to be bound", test.want), func() error {
				bound := s.boundLetters(t)
				return cluster.Unless(bound[test.want] == want, "bound are %v", bound)
			})
			if bound := s.boundLetters(t); !test.kinds[rune(test.want[0])].important && len(bound) > 1 {
				t.Errorf("bound are %v, want only %s", bound, test.want)
			}
		})
	}
}

// boundLetters counts the bound pods by the letter that their names begin with.
func (s *stand) boundLetters(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for name, pod := range s.pods(t, corev1.NamespaceDefault) {
		if pod.Spec.NodeName != "" {
			counts[name[:1]]++
		}
	}
	return counts
}
