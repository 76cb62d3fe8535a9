// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// A scheduling cycle reads the PodInfo that it has popped, and the nominator the one that was nominated, without the
// queue's lock. So an update must not change either of them.
func TestUpdateLeavesPodInfosOfOthersAlone(t *testing.T) {
	for name, waits := range map[string]func(*PriorityQueue, *framework.QueuedPodInfo) error{
		"active":  func(q *PriorityQueue, p *framework.QueuedPodInfo) error { return q.activeQ.Add(p) },
		"backoff": func(q *PriorityQueue, p *framework.QueuedPodInfo) error { return q.podBackoffQ.Add(p) },
		"unschedulable": func(q *PriorityQueue, p *framework.QueuedPodInfo) error {
			q.unschedulableQ.addOrUpdate(p)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			old := st.MakePod().Namespace("ns").Name("p").UID("p").NominatedNodeName("node").Obj()
			q := NewTestQueueWithObjects(ctx, newDefaultQueueSort(), []runtime.Object{old})
			queued := q.newQueuedPodInfo(old)
			if err := waits(q, queued); err != nil {
				t.Fatal(err)
			}
			q.AddNominatedPod(queued.PodInfo, nil)
			cycle := queued.PodInfo
			nominated := q.PodNominator.(*nominator).nominatedPods["node"][0]

			updated := old.DeepCopy()
			updated.Labels = map[string]string{"updated": "yes"}
			if err := q.Update(old, updated); err != nil {
				t.Fatal(err)
			}

			if cycle.Pod != old || nominated.Pod != old {
				t.Error("the update changed a PodInfo that others read without the queue's lock")
			}
			for who, pods := range map[string][]*v1.Pod{
				"the queue": q.PendingPods(), "the nominator": {q.NominatedPodsForNode("node")[0].Pod},
			} {
				if len(pods) != 1 || pods[0].Labels["updated"] != "yes" {
					t.Errorf("%s has %v, want the updated pod", who, pods)
				}
			}
		})
	}
}
