// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodTopologySpread adds up, for each soft constraint, the count of pods times ln(domains + 2), and maxSkew - 1, as
// floats, and truncates the sum to an integer. Random pods do not reveal the order of the sum: sums of this size are
// exact to 13 digits, and the chance that one is that close to an integer is about as small. With the largest maxSkew
// the sum has 6 decimals. A search found these counts, whose sum is 40 - 9e-7 before maxSkew is added: in the order
// of the constraints the result is 39, and in 97 % of all orders 40.
var (
	roundingDomains = []int{9, 10, 7, 3, 6, 4}
	roundingCounts  = []int{1, 5, 2, 2, 5, 4}
	// otherCounts have the sum 40.3, which is 40 in any order.
	otherCounts = []int{2, 5, 2, 2, 4, 4}
)

// rounding is a scenario with one pod, for which the first node has one point less than the second or as many. The
// second node's score is then 99 or 100.
func rounding(seed int64) *Scenario {
	s := &Scenario{Seed: seed, Config: plainConfig}
	place := func(node *v1.Node, labels map[string]string) {
		name := fmt.Sprintf("placed-%d", len(s.Steps))
		s.Steps = append(s.Steps, Step{Place: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels},
			Spec:       v1.PodSpec{NodeName: node.Name, Containers: []v1.Container{{Name: "c"}}},
		}})
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "pod"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c"}}},
	}
	label := func(constraint int) string { return fmt.Sprintf("counts-%d", constraint) }
	for i := range roundingDomains {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: math.MaxInt32, TopologyKey: fmt.Sprintf("key-%d", i), WhenUnsatisfiable: v1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label(i): "yes"}},
		})
	}
	for n := 0; n < 10; n++ {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", n), UID: types.UID(fmt.Sprintf("node-%d", n)), Labels: map[string]string{},
		}}
		node.Status.Capacity = v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("64Gi"),
			v1.ResourcePods: resource.MustParse("110"),
		}
		node.Status.Allocatable = node.Status.Capacity
		s.Nodes = append(s.Nodes, node)
		// The first two nodes have their own domains; all others have far more pods.
		counts := []int{4, 4, 4, 4, 4, 4}
		for i, domains := range roundingDomains {
			domain := n
			if n >= 2 {
				domain = 2 + (n-2)%(domains-2)
			} else {
				counts = [][]int{roundingCounts, otherCounts}[n]
			}
			node.Labels[fmt.Sprintf("key-%d", i)] = fmt.Sprint(domain)
		}
		for more := 0; more < 5; more++ {
			labels := map[string]string{}
			for i, count := range counts {
				if more < count {
					labels[label(i)] = "yes"
				}
			}
			if len(labels) > 0 {
				place(node, labels)
			}
		}
	}
	s.Steps = append(s.Steps, Step{Schedule: []*v1.Pod{pod}})
	return s
}
