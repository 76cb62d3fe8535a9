// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestLaterFields has a pod with gates, one with a field that this scheduler does not know, and one without either.
func TestLaterFields(t *testing.T) {
	const refusal = "the pod's spec.field is known to Kubernetes 1.99 and later"
	pod := func(name string) *v1.Pod {
		return st.MakePod().Namespace("default").Name(name).UID(name).SchedulerName("default-scheduler").Priority(10).Obj()
	}
	laterfields.Pods.Set("gated", &laterfields.Found{Gates: []string{"one"}})
	laterfields.Pods.Set("gone", &laterfields.Found{Gates: []string{"one"}})
	laterfields.Pods.Set("refused", &laterfields.Found{Refusal: refusal})
	defer func() { laterfields.Pods = laterfields.Store{} }()
	client := clientsetfake.NewSimpleClientset(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{v1.ResourcePods: "10"}).Obj(),
		// Preemption would evict it.
		st.MakePod().Namespace("default").Name("victim").UID("victim").Node("node").Priority(0).Obj(),
		pod("gated"), pod("gone"), pod("refused"), pod("plain"),
	)
	bound := make(chan string, 10)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		if action.GetSubresource() == "binding" {
			bound <- action.(clienttesting.CreateAction).GetObject().(*v1.Binding).Name
		}
		return true, nil, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sched, factory := runScheduler(ctx, t, client)
	waitFor := func(what string, done func() bool) {
		t.Helper()
		if err := wait.PollImmediate(time.Millisecond, wait.ForeverTestTimeout, func() (bool, error) { return done(), nil }); err != nil {
			t.Fatal(what)
		}
	}
	if name := <-bound; name != "plain" {
		t.Fatalf("%s was bound first", name)
	}
	pods := client.CoreV1().Pods("default")
	refused := func() (*v1.PodCondition, records.PodRecord) {
		record, _ := sched.Records.Get("default", "refused")
		pod, _ := pods.Get(ctx, "refused", metav1.GetOptions{})
		for i := range pod.Status.Conditions {
			return &pod.Status.Conditions[i], record
		}
		return nil, record
	}
	waitFor("the refused pod has no condition", func() bool { condition, _ := refused(); return condition != nil })
	condition, record := refused()
	if condition.Message != "0/1 nodes are available: 1 "+refusal+"." || !strings.Contains(record.Summary, refusal) {
		t.Errorf("condition %q and record %q, want %q", condition.Message, record.Summary, refusal)
	}
	// Neither a node nor the end of a pod moves it.
	queue, alone := sched.SchedulingQueue.(*internalqueue.PriorityQueue), records.QueueLengths{Unschedulable: 1}
	waitFor("the refused pod is not alone in the queue, without a retry", func() bool { return queue.Lengths() == alone })
	queue.MoveAllToActiveOrBackoffQueue(internalqueue.NodeAdd, nil)
	queue.MoveAllToActiveOrBackoffQueue(internalqueue.AssignedPodDelete, nil)
	if got := queue.Lengths(); got != alone {
		t.Errorf("the queue has %+v after events, want %+v", got, alone)
	}

	// An update of a gated pod does not queue it, and that which removes its last gate does.
	update := func(name, version string) {
		pod := pod(name)
		pod.ResourceVersion, pod.Labels = version, map[string]string{"version": version}
		if _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor("the update has not come", func() bool {
			pod, err := factory.Core().V1().Pods().Lister().Pods("default").Get(name)
			return err == nil && pod.ResourceVersion == version
		})
	}
	update("gated", "2")
	if err := pods.Delete(ctx, "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor("a deleted pod is kept", func() bool { return laterfields.Pods.Of("gone") == nil })
	laterfields.Pods.Delete(types.UID("gated"))
	update("gated", "3")
	if name := <-bound; name != "gated" {
		t.Errorf("%s was bound, want the pod without a gate", name)
	}
	if _, err := pods.Get(ctx, "victim", metav1.GetOptions{}); err != nil {
		t.Error("the refused pod has preempted another: ", err)
	}
	for _, action := range client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetName() != "refused" {
			t.Errorf("the status of %s was written: %s", patch.GetName(), patch.GetPatch())
		}
	}
}
