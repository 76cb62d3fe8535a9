// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/test/cluster"
)

// createQuota creates an ElasticQuota, and its namespace.
func (s *stand) createQuota(t *testing.T, namespace, min, max string) {
	t.Helper()
	s.create(t, "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {name: quota, namespace: %s}\n"+
		"spec: {min: {%s}, max: {%s}}\n", namespace, min, max)
}

// place creates pods of one CPU, and waits until they are bound.
func (s *stand) place(t *testing.T, namespace string, names ...string) {
	t.Helper()
	var created []*corev1.Pod
	for _, name := range names {
		created = append(created, s.CreatePod(t, newPod(namespace, name, "1")))
	}
	for _, pod := range created {
		s.AwaitBound(t, pod)
	}
}

func TestATenantGetsBackByPreemptionWhatAnotherHasBorrowed(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, 1) // with 8 CPUs
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
	s.createQuota(t, "borrower", "cpu: 4, memory: 8Gi", "cpu: 8, memory: 16Gi")
	s.createQuota(t, "owner", "cpu: 4, memory: 8Gi", "cpu: 8, memory: 16Gi")
	s.start(t, "quota.yaml")

	// Two pods of a higher priority, two that a budget protects, and then four others: half of it is borrowed.
	var first []*corev1.Pod
	for i := range 2 {
		important, guarded := newPod("borrower", fmt.Sprint("important-", i), "1"), newPod("borrower", fmt.Sprint("guarded-", i), "1")
		important.Spec.PriorityClassName = "important"
		guarded.Labels = map[string]string{"app": "guarded"}
		first = append(first, s.CreatePod(t, important), s.CreatePod(t, guarded))
	}
	s.protect(t, "borrower", "guarded")
	for _, pod := range first {
		s.AwaitBound(t, pod)
	}
	// Of two pods the one that started later is evicted first, and times are in whole seconds.
	s.Await(t, "the seconds to be over in which the first pods started", func() error {
		for _, pod := range s.pods(t, "borrower") {
			if pod.Status.StartTime == nil || time.Since(pod.Status.StartTime.Time) < time.Second {
				return fmt.Errorf("%s started at %v", pod.Name, pod.Status.StartTime)
			}
		}
		return nil
	})
	s.place(t, "borrower", "other-0", "other-1", "other-2", "other-3")

	s.place(t, "owner", "owner-0", "owner-1", "owner-2", "owner-3")
	s.Await(t, "the pods to be gone that made room", func() error {
		left := slices.Sorted(maps.Keys(s.pods(t, "borrower")))
		want := []string{"guarded-0", "guarded-1", "important-0", "important-1"}
		return cluster.Unless(slices.Equal(left, want), "%v are left, want %v", left, want)
	})
	// Its own part is not taken back.
	more := newPod("borrower", "wants-more", "1")
	more.Spec.PriorityClassName = "important"
	s.CreatePod(t, more)
	s.AwaitPending(t, more.Namespace, more.Name, "")
	if left := s.pods(t, "owner"); len(left) != 4 {
		t.Errorf("%d pods of the owner are left, want 4", len(left))
	}
	for name, pod := range s.pods(t, "owner") {
		if pod.DeletionTimestamp != nil {
			t.Errorf("%s of the owner has to go", name)
		}
	}
}

// protect creates a budget that forbids the disruption of pods with a
// label. No controller computes the allowed disruptions, so they are none.
func (s *stand) protect(t *testing.T, namespace, app string) {
	t.Helper()
	s.Create(t, fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %[1]s, namespace: %[2]s}, "+
		"spec: {maxUnavailable: 0, selector: {matchLabels: {app: %[1]s}}}}", app, namespace))
}

func TestUsageIsTheSumOfThePodsAfterARestart(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, 2)
	s.createQuota(t, "tenant", "cpu: 6, memory: 12Gi", "cpu: 6, memory: 12Gi")
	running := s.start(t, "quota.yaml")
	s.place(t, "tenant", "runs-0", "runs-1", "runs-2", "runs-3", "succeeded", "failed")
	s.finish(t, "tenant", "succeeded", corev1.PodSucceeded)
	s.finish(t, "tenant", "failed", corev1.PodFailed)
	if err := running.Kill(); err != nil {
		t.Fatal(err)
	}
	s.start(t, "quota.yaml")
	s.expectRoom(t, "tenant", 2)
}

// finish ends a pod as kubelet would report it, once the pod runs:
// kwok sets a bound pod to Running, overwriting any earlier phase.
func (s *stand) finish(t *testing.T, namespace, name string, phase corev1.PodPhase) {
	t.Helper()
	s.Await(t, "the pod "+name+" to run", func() error {
		pod, err := s.Pod(t, namespace, name)
		if err != nil {
			return err
		}
		return cluster.Unless(pod.Status.Phase == corev1.PodRunning, "it is %s", pod.Status.Phase)
	})
	_, err := s.Client().CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(fmt.Sprintf(`{"status":{"phase":%q}}`, phase)), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// expectRoom checks that as many pods of one CPU are bound as the
// quota should have room for, and that one more is refused.
func (s *stand) expectRoom(t *testing.T, namespace string, room int) {
	t.Helper()
	for i := range room {
		s.place(t, namespace, fmt.Sprint("fits-", i))
	}
	s.CreatePod(t, newPod(namespace, "one-too-many", "1"))
	if why := s.AwaitPending(t, namespace, "one-too-many", ""); !strings.Contains(why, "ElasticQuota") {
		t.Errorf("one pod more is refused: %s, want it to be by the quota", why)
	}
}
