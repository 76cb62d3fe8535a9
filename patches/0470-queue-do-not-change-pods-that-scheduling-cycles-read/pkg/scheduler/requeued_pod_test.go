// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// A failed cycle reads its QueuedPodInfo after it has put the pod back. So the queue, which changes its own, must have
// another one.
func TestQueueDoesNotShareTheQueuedPodInfoOfAFailedCycle(t *testing.T) {
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
	client := fake.NewSimpleClientset(pod)
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	if err := pods.Informer().GetStore().Add(pod); err != nil {
		t.Fatal(err)
	}
	queue := &queueThatTakesBack{}
	fail := MakeDefaultErrorFunc(client, pods.Lister(), queue, nil)

	cycle := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(pod), Attempts: 3}
	fail(cycle, errors.New("no reason"))

	if queue.taken == nil || queue.taken.Pod.UID != pod.UID || queue.taken.Attempts != 3 {
		t.Fatalf("the queue has %+v, want the pod with its attempts", queue.taken)
	}
	if queue.taken == cycle {
		t.Error("the queue has the object that the cycle still reads")
	}
}

// queueThatTakesBack only takes back the pod of a failed cycle.
type queueThatTakesBack struct {
	internalqueue.SchedulingQueue
	taken *framework.QueuedPodInfo
}

func (q *queueThatTakesBack) SchedulingCycle() int64 { return 1 }

func (q *queueThatTakesBack) AddUnschedulableIfNotPresent(pInfo *framework.QueuedPodInfo, _ int64) error {
	q.taken = pInfo
	return nil
}
