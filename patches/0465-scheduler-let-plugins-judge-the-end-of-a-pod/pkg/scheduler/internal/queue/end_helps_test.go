// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestEndHelps has pods that wait for plugins that can and cannot tell whether the end of a pod helps.
func TestEndHelps(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ends := framework.ClusterEvent{Resource: framework.Pod, ActionType: framework.Delete}
	for _, tt := range []struct {
		ended *v1.Pod
		want  sets.String
	}{
		{st.MakePod().Name("other").Obj(), sets.NewString("any", "both", "error")},
		{st.MakePod().Name("peer").Obj(), sets.NewString("any", "both", "error", "tells")},
		{nil, sets.NewString("any", "both", "error", "tells")},
	} {
		q := NewTestQueue(ctx, newDefaultQueueSort(), WithClusterEventMap(map[framework.ClusterEvent]sets.String{ends: sets.NewString("Any", "Tells")}))
		q.EndHelps = func(plugin string, ended, pending *v1.Pod) bool { return plugin != "Tells" || ended.Name == "peer" && pending.Name == "tells" }
		for name, plugins := range map[string][]string{"any": {"Any"}, "tells": {"Tells"}, "both": {"Tells", "Any"}, "unregistered": {"None"}, "error": nil} {
			info := q.newQueuedPodInfo(st.MakePod().Name(name).UID(name).Obj(), plugins...)
			if err := q.AddUnschedulableIfNotPresent(info, q.SchedulingCycle()); err != nil {
				t.Fatal(err)
			}
		}
		event := AssignedPodDelete
		event.EndedPod = tt.ended
		q.MoveAllToActiveOrBackoffQueue(event, nil)
		moved := sets.NewString()
		for _, pod := range q.PendingPods() {
			moved.Insert(pod.Name)
		}
		for _, waiting := range q.unschedulableQ.podInfoMap {
			moved.Delete(waiting.Pod.Name)
		}
		if !moved.Equal(tt.want) {
			t.Errorf("after the end of %v, %v are retried, want %v", tt.ended, moved.List(), tt.want.List())
		}
	}
}
