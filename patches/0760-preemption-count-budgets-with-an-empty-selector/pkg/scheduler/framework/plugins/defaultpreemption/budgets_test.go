// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestBudgetsSelectAsThePolicyAPIDoes(t *testing.T) {
	web := map[string]string{"app": "web"}
	pod := func(namespace string, labels map[string]string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels}}
	}
	for _, test := range []struct {
		name     string
		selector *metav1.LabelSelector
		pod      *v1.Pod
		violates bool
	}{
		{"an empty selector selects a pod with labels", &metav1.LabelSelector{}, pod("shop", web), true},
		{"an empty selector selects a pod without labels", &metav1.LabelSelector{}, pod("shop", nil), true},
		{"an empty selector selects no pod of another namespace", &metav1.LabelSelector{}, pod("bank", nil), false},
		{"a nil selector selects no pod", nil, pod("shop", web), false},
		{"a pod without labels has no label with the value old, so NotIn selects it", &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"old"}}},
		}, pod("shop", nil), true},
		{"labels that the pod lacks do not select it", &metav1.LabelSelector{MatchLabels: web}, pod("shop", nil), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			budget := &policy.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "budget"}, Spec: policy.PodDisruptionBudgetSpec{Selector: test.selector},
			}
			violating, _ := filterPodsWithPDBViolation([]*framework.PodInfo{framework.NewPodInfo(test.pod)}, []*policy.PodDisruptionBudget{budget})
			if violates := len(violating) == 1; violates != test.violates {
				t.Errorf("got %v for a budget that allows no disruption, want %v", violates, test.violates)
			}
		})
	}
}
