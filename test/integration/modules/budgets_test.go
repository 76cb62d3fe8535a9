// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// TestPreemptionWithinBudgets fills a node with pods of a budget that allows one disruption. There is no controller of
// budgets: only an eviction counts the disruption.
func TestPreemptionWithinBudgets(t *testing.T) {
	s := newStand(t)
	// The commands of docs/configuration.md.
	s.Kubectl(t, t.Context(), "create", "clusterrole", "kube-scheduler-evictions", "--verb=create", "--resource=pods/eviction")
	t.Cleanup(func() {
		s.Kubectl(t, context.Background(), "delete", "clusterrole,clusterrolebinding", "kube-scheduler-evictions")
	})
	s.Kubectl(t, t.Context(), "create", "clusterrolebinding", "kube-scheduler-evictions", "--clusterrole=kube-scheduler-evictions", "--user=system:kube-scheduler")
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: above}, value: 1000}")
	t.Cleanup(func() { s.Kubectl(t, context.Background(), "delete", "priorityclass", "above") })
	s.create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: guarded}}\n---\n"+
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all, namespace: guarded}, spec: {minAvailable: 1, selector: {matchLabels: {app: guarded}}}}\n")
	budgets := s.Client().PolicyV1().PodDisruptionBudgets("guarded")
	budget, err := budgets.Get(t.Context(), "all", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2,
	}
	if _, err := budgets.UpdateStatus(t.Context(), budget, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AddNodes(t, 1) // with 8 CPUs
	config := root + "/manifests/config/weights.yaml"
	s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config, localcluster.SchedulerOptions{Flags: []string{"--preemption-respects-budgets"}})
	for _, name := range []string{"one", "two"} {
		pod := newPod("guarded", name, "3")
		pod.Labels = map[string]string{"app": "guarded"}
		s.AwaitBound(t, s.CreatePod(t, pod))
	}
	s.Await(t, "both pods to be ready", func() error {
		for name, pod := range s.pods(t, "guarded") {
			if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
	above := func(name string) *corev1.Pod {
		pod := newPod("default", name, "4")
		pod.Spec.PriorityClassName = "above"
		return s.CreatePod(t, pod)
	}
	s.AwaitBound(t, above("first"))
	above("second")
	s.AwaitPending(t, "default", "second", "")
	left := 0
	for _, pod := range s.pods(t, "guarded") {
		if pod.DeletionTimestamp == nil {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d of two pods are left of a budget that allows one disruption, want 1", left)
	}
	if budget, err = budgets.Get(t.Context(), "all", metav1.GetOptions{}); err != nil || budget.Status.DisruptionsAllowed != 0 {
		t.Errorf("the budget allows %d disruptions, %v; want 0 after the eviction", budget.Status.DisruptionsAllowed, err)
	}
}
