// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/clock"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestTake has a pod in each part of the queue. They are taken together, and back off together.
func TestTake(t *testing.T) {
	fake := clock.NewFakeClock(time.Now())
	q := NewTestQueue(context.Background(), newDefaultQueueSort(), WithClock(fake))
	var pods []*v1.Pod
	for i := 0; i < 4; i++ {
		pod := st.MakePod().Name(fmt.Sprint("pod-", i)).UID(fmt.Sprint(i)).Obj()
		pods = append(pods, pod)
		if err := q.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	pop := func() types.UID {
		info, err := q.Pop()
		if err != nil {
			t.Fatal(err)
		}
		q.AddUnschedulableIfNotPresent(info, q.SchedulingCycle())
		return info.Pod.UID
	}
	// One waits for an event, one backs off, and two are active.
	unschedulable, backsOff := pop(), pop()
	_ = unschedulable
	for _, info := range q.unschedulableQ.podInfoMap {
		if info.Pod.UID == backsOff {
			q.Activate(map[string]*v1.Pod{"": info.Pod})
			q.activeQ.Delete(info)
			q.podBackoffQ.Add(info)
		}
	}
	first, err := q.Pop()
	if err != nil {
		t.Fatal(err)
	}
	taken, ok := q.Take(first, pods)
	if !ok || len(taken) != 3 || len(q.PendingPods()) != 0 {
		t.Fatalf("%d pods are taken, and %d stay, want 3 and 0", len(taken), len(q.PendingPods()))
	}
	for _, info := range append(taken, first) {
		if info.Attempts != 2 {
			t.Errorf("pod %s has %d attempts, want 2", info.Pod.Name, info.Attempts)
		}
	}
	// They fail. A pod that comes before their backoff ends waits with them.
	for _, info := range taken {
		info.Together = true
		if err := q.AddUnschedulableIfNotPresent(info, q.SchedulingCycle()); err != nil {
			t.Fatal(err)
		}
	}
	late := st.MakePod().Name("late").UID("late").Obj()
	if err := q.Add(late); err != nil {
		t.Fatal(err)
	}
	if first, err = q.Pop(); err != nil || first.Pod.UID != "late" {
		t.Fatalf("the next pod is %v, %v, want late", first, err)
	}
	if taken, ok := q.Take(first, pods); ok || len(taken) > 0 {
		t.Errorf("%d pods are taken in their backoff", len(taken))
	}
	if wait := q.getBackoffTime(first).Sub(fake.Now()); wait != 2*time.Second {
		t.Errorf("the late pod backs off for %v, want 2s like the others", wait)
	}
	fake.Step(2 * time.Second)
	q.flushBackoffQCompleted()
	if first, err = q.Pop(); err != nil || first.Pod.UID != "late" {
		t.Fatalf("the next pod is %v, %v, want late", first, err)
	}
	if taken, ok := q.Take(first, pods); !ok || len(taken) != 3 {
		t.Errorf("%d pods are taken after their backoff, want 3", len(taken))
	}
}
