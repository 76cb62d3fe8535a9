// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
)

// TestPodsScheduledAfterFlush binds two pods after an event, and one that only the flush has moved.
func TestPodsScheduledAfterFlush(t *testing.T) {
	s := newRequeueing(t, false, false, false)
	count := func(name string) (sum uint64) {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == name {
					sum += uint64(metric.GetCounter().GetValue()) + metric.GetHistogram().GetSampleCount()
				}
			}
		}
		return sum
	}
	const flushed, bound = "scheduler_pod_scheduled_after_flush_total", "scheduler_pod_waiting_duration_seconds"
	for pod, event := range map[string]framework.ClusterEvent{
		"1": internalqueue.NodeAdd, "2": internalqueue.UnschedulableTimeout, "3": internalqueue.AssignedPodDelete,
	} {
		before := count(flushed)
		pods := count(bound)
		s.try(testPod(pod).Obj()) // There is no node.
		s.SchedulerCache.AddNode(testNode("a", "a").Obj())
		s.queue.MoveAllToActiveOrBackoffQueue(event, nil)
		s.scheduleOne(context.Background())
		if err := s.SchedulerCache.RemoveNode(testNode("a", "a").Obj()); err != nil {
			t.Fatal(err)
		}
		want := before
		if pod == "2" {
			want++
		}
		if err := wait.PollImmediate(time.Millisecond, time.Minute, func() (bool, error) {
			return count(bound) == pods+1 && count(flushed) == want, nil
		}); err != nil {
			t.Errorf("%s: %d pods were bound after a flush, want %d: %v", event.Label, count(flushed), want, err)
		}
	}
}
