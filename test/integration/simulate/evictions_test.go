// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
)

// The simulator refuses the evictions that the API server of this release refuses.
func TestEvictionsThatTheAPIServerRefuses(t *testing.T) {
	c := shared.Get(t)
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	type budget struct {
		selector                  *metav1.LabelSelector
		allowed, healthy, desired int32
	}
	for name, test := range map[string]struct {
		phase   corev1.PodPhase
		ready   corev1.ConditionStatus
		budgets []budget
		refused bool
		code    int32
	}{
		"a disruption is left":                {corev1.PodRunning, "True", []budget{{app, 1, 3, 2}}, false, 0},
		"none is left":                        {corev1.PodRunning, "True", []budget{{app, 0, 2, 2}}, true, 429},
		"two budgets":                         {corev1.PodRunning, "True", []budget{{app, 1, 3, 2}, {app, 1, 3, 2}}, true, 500},
		"two budgets of a pod without a node": {corev1.PodPending, "False", []budget{{app, 1, 3, 2}, {app, 1, 3, 2}}, false, 0},
		"an empty selector":                   {corev1.PodRunning, "True", []budget{{&metav1.LabelSelector{}, 0, 2, 2}}, false, 0},
		"it does not run":                     {corev1.PodPending, "False", []budget{{app, 0, 2, 2}}, false, 0},
		"it is not ready":                     {corev1.PodRunning, "False", []budget{{app, 0, 2, 2}}, false, 0},
		"nor are enough others":               {corev1.PodRunning, "False", []budget{{app, 0, 1, 2}}, true, 429},
	} {
		t.Run(name, func(t *testing.T) {
			for i, of := range test.budgets {
				made := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i)}}
				made.Spec.Selector = of.selector
				budgets := c.Client().PolicyV1().PodDisruptionBudgets(corev1.NamespaceDefault)
				made, err := budgets.Create(t.Context(), made, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer budgets.Delete(t.Context(), made.Name, metav1.DeleteOptions{})
				made.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: made.Generation, DisruptionsAllowed: of.allowed,
					CurrentHealthy: of.healthy, DesiredHealthy: of.desired}
				if _, err := budgets.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			pods := c.Client().CoreV1().Pods(corev1.NamespaceDefault)
			pod := localcluster.NewPod("web", "")
			pod.Labels = app.MatchLabels
			pod = c.CreatePod(t, pod)
			defer pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{})
			pod.Status.Phase = test.phase
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: test.ready}}
			if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			err := pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
			if test.refused != (err != nil) {
				t.Fatalf("the eviction: %v, want refused: %v", err, test.refused)
			}
			if status, ok := err.(apierrors.APIStatus); test.refused && (!ok || status.Status().Code != test.code) {
				t.Errorf("the eviction: %v, want the code %d", err, test.code)
			}
		})
	}
}
