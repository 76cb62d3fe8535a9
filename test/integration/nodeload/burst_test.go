// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
)

// Half of the nodes are a little busier than the others, by less than a pod, and stay it: what is measured tells
// nothing of the pods that come. Two profiles of one scheduler differ in nothing but what they expect of a pod: what it
// requests, or nothing.
func burst(t *testing.T) {
	const pods = 500
	s := newStand(t, &shared)
	busier := s.nodes[:nodeCount/2]
	s.exporters.load(0.12, busier...)
	with, without := cpuThatStays(time.Hour), cpuThatStays(time.Hour)
	with["estimator"] = object{"resource": "cpu", "factor": 100, "default": "250m"}
	// Of a resource that is none of Kubernetes' nothing is expected of a pod unless an estimator says so.
	without["name"] = "unaccounted"
	scheduler := s.startScheduler(t, "kube-scheduler", s.configuration(t, "burst",
		profile("with", s.args(time.Second, 5*time.Minute, with)), profile("without", s.args(time.Second, 5*time.Minute, without))))
	s.await(t, "all nodes to be measured for both", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		measured := func(node string, percent float64) bool { return percent > 11 == slices.Contains(busier, node) }
		return errors.Join(page.loads("with", "cpu", measured), page.loads("without", "unaccounted", measured))
	})

	spread := func(profile string) (least, most int) {
		on := s.place(t, s.newPods(pods, profile, "2"))
		least = pods
		for _, node := range s.nodes {
			least, most = min(least, on[node]), max(most, on[node])
		}
		t.Logf("profile %q: %d pods on %d nodes, %d to %d on each", profile, pods, nodeCount, least, most)
		return least, most
	}
	// Even is two or three on each; ±1 of that would be one to four, but two or three is what there is to reach.
	if least, most := spread("with"); least < pods/nodeCount || most > pods/nodeCount+1 {
		t.Errorf("between %d and %d pods are on each node, want %d or %d", least, most, pods/nodeCount, pods/nodeCount+1)
	}

	s.removePods(t, scheduler)
	if least, most := spread("without"); most-least <= 2 {
		t.Errorf("between %d and %d pods are on each node though none was accounted for: so it is not the accounting that spreads them",
			least, most)
	}
}

// removePods deletes all pods, and waits until the scheduler knows of none.
func (s *stand) removePods(t *testing.T, schedulers ...*localcluster.Scheduler) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	s.await(t, "all pods to be gone", func() error {
		// On a busy machine one request may end before all are deleted.
		if err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).DeleteCollection(t.Context(), now, metav1.ListOptions{}); err != nil {
			return err
		}
		if left := len(s.pods(t)); left > 0 {
			return fmt.Errorf("%d are left", left)
		}
		for _, scheduler := range schedulers {
			m, err := s.metrics(scheduler)
			if err != nil {
				return err
			}
			if left := m.sumOf("scheduler_scheduler_cache_size", "type=pods"); left > 0 {
				return fmt.Errorf("the scheduler still counts %v", left)
			}
		}
		return nil
	})
}
