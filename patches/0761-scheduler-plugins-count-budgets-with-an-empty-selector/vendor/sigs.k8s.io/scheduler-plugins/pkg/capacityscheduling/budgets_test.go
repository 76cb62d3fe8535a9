// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestBudgetWithAnEmptySelector(t *testing.T) {
	budget := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "budget"}}
	pod := framework.NewPodInfo(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	for name, want := range map[string]int{"none": 0, "empty": 1} {
		if budget.Spec.Selector = nil; name == "empty" {
			budget.Spec.Selector = &metav1.LabelSelector{}
		}
		violating, _ := filterPodsWithPDBViolation([]*framework.PodInfo{pod}, []*policy.PodDisruptionBudget{budget})
		if len(violating) != want {
			t.Errorf("selector %s: %d pods without labels violate a budget that allows no disruption, want %d", name, len(violating), want)
		}
	}
}
