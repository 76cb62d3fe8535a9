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
	"k8s.io/apimachinery/pkg/util/wait"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestRecords schedules a pod that fits, one that fits nowhere and one that PreFilter rejects with the default profile.
func TestRecords(t *testing.T) {
	cpu := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount, v1.ResourcePods: "10"}
	}
	client := clientsetfake.NewSimpleClientset(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		st.MakeNode().Name("small").Capacity(cpu("1")).Obj(),
		st.MakeNode().Name("large-1").Capacity(cpu("4")).Obj(),
		st.MakeNode().Name("large-2").Capacity(cpu("8")).Obj(),
		st.MakeNode().Name("tainted").Capacity(cpu("8")).Taints([]v1.Taint{{Key: "only", Effect: v1.TaintEffectNoSchedule}}).Obj(),
		st.MakePod().Namespace("default").Name("fits").UID("fits").SchedulerName("default-scheduler").Req(map[v1.ResourceName]string{v1.ResourceCPU: "2"}).Obj(),
		st.MakePod().Namespace("default").Name("large").UID("large").SchedulerName("default-scheduler").Req(map[v1.ResourceName]string{v1.ResourceCPU: "100"}).Obj(),
		st.MakePod().Namespace("default").Name("claims").UID("claims").SchedulerName("default-scheduler").PVC("none").Obj(),
	)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		return action.GetSubresource() == "binding", nil, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	made := func(options ...Option) *Scheduler {
		factory := NewInformerFactory(client, 0)
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
		sched, err := New(client, factory, nil, profile.NewRecorderFactory(broadcaster), ctx.Done(), options...)
		if err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		return sched
	}
	if off := made(WithRecords(records.Options{})); off.Records != nil {
		t.Error("there is a recorder although records are disabled")
	}
	sched := made()
	go sched.Run(ctx)
	for name, want := range map[string]struct {
		result  records.Result
		summary string
	}{
		"fits":   {records.Bound, "It is bound to node large-"},
		"large":  {records.Unschedulable, "None of 4 nodes fits; 3: Insufficient cpu; 1: node(s) had taint {only: }, that the pod didn't tolerate."},
		"claims": {records.Unschedulable, `It is rejected before any node is evaluated: persistentvolumeclaim "none" not found.`},
	} {
		var got records.PodRecord
		err := wait.PollImmediate(10*time.Millisecond, wait.ForeverTestTimeout, func() (bool, error) {
			got, _ = sched.Records.Get("default", name)
			return got.Result == want.result, nil
		})
		if err != nil || !strings.HasPrefix(got.Summary, want.summary) {
			t.Errorf("%s: %+v, want %s: %s", name, got, want.result, want.summary)
		}
		if name != "fits" || len(got.Attempts) != 1 {
			continue
		}
		attempt := got.Attempts[0]
		if attempt.Nodes != 4 || attempt.Evaluated != 4 || attempt.Feasible != 2 || len(attempt.Rejections) != 2 || len(attempt.Scores) != 2 {
			t.Errorf("the attempt of the pod that fits: %+v", attempt)
		}
		for _, scores := range attempt.Scores {
			sum, normalized := int64(0), false
			for _, plugin := range scores.Plugins {
				sum += plugin.Weighted
				normalized = normalized || plugin.Raw != plugin.Normalized
				if plugin.Weighted != plugin.Normalized*plugin.Weight {
					t.Errorf("%s on %s: %+v", plugin.Name, scores.Node, plugin)
				}
			}
			if sum == 0 || sum != scores.Total || scores.Extenders != 0 || !normalized {
				t.Errorf("%s: the weighted scores sum to %d of a total of %d; any score is normalized: %v", scores.Node, sum, scores.Total, normalized)
			}
		}
	}
}
