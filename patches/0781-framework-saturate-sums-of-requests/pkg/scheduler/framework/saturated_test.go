// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// requesting returns a pod with a container for each amount, requested of four resources.
func requesting(name string, amounts ...string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	for _, amount := range amounts {
		requests := v1.ResourceList{}
		for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.com/x"} {
			requests[name] = resource.MustParse(amount)
		}
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Resources: v1.ResourceRequirements{Requests: requests}})
	}
	return pod
}

func TestRequestsOfANodeSaturate(t *testing.T) {
	const huge, most = "18446743073709551616", int64(math.MaxInt64)
	for name, tt := range map[string]struct {
		add, remove  []*v1.Pod
		cpu, another int64
	}{
		"a request that is negative in 64 bits": {add: []*v1.Pod{requesting("a", huge)}, cpu: most, another: most},
		"containers whose sum is":               {add: []*v1.Pod{requesting("a", "5E", "5E")}, cpu: most, another: most},
		"pods whose sum is":                     {add: []*v1.Pod{requesting("a", huge), requesting("b", "1")}, cpu: most, another: most},
		"the remaining pod counts in full": {
			add:    []*v1.Pod{requesting("a", huge), requesting("b", "2"), requesting("c", "3")},
			remove: []*v1.Pod{requesting("a", huge)}, cpu: 5000, another: 5,
		},
		"another huge pod remains": {
			add:    []*v1.Pod{requesting("a", huge), requesting("b", huge)},
			remove: []*v1.Pod{requesting("a", huge)}, cpu: most, another: most,
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := NewNodeInfo(tt.add...)
			for _, pod := range tt.remove {
				if err := node.RemovePod(pod); err != nil {
					t.Fatal(err)
				}
			}
			r, n := node.Requested, node.NonZeroRequested
			got := fmt.Sprint(r.MilliCPU, n.MilliCPU, r.Memory, n.Memory, r.EphemeralStorage, r.ScalarResources["example.com/x"])
			if want := fmt.Sprint(tt.cpu, tt.cpu, tt.another, tt.another, tt.another, tt.another); got != want {
				t.Errorf("the node has %s, want %s", got, want)
			}
		})
	}
}
