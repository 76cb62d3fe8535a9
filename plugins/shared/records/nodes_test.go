// SPDX-License-Identifier: Apache-2.0

package records

import (
	"reflect"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestNodeInTheLastAttempts(t *testing.T) {
	r := newRecorder(DefaultOptions)
	unschedulable(r, podNamed("waits"), []int{7, 1}, rejectedBy("Fit", "Insufficient cpu"), rejectedBy("Taints", "a taint"))
	// Only the last attempt counts.
	unschedulable(r, podNamed("pod"), []int{1}, rejectedBy("Fit", "Insufficient cpu"))
	for _, name := range []string{"pod", "bound"} {
		p := podNamed(name)
		a := r.Begin(framework.NewCycleState(), p, "default-scheduler", 4)
		a.Rank(framework.NodeScoreList{{Name: "a", Score: 90}, {Name: "node-0-0", Score: 50}, {Name: "b", Score: 90}, {Name: "c", Score: 50}}, "a")
		chosen := "a"
		if name == "bound" {
			chosen = "node-0-0"
		}
		r.End(a, p, chosen, 4, 4, nil)
		r.Bound(p)
	}

	got := r.Node("node-0-0")
	if len(got.Rejected) != 1 || got.Rejected[0].Name != "waits" || got.Rejected[0].Plugin != "Fit" || got.Rejected[0].Nodes != 7 {
		t.Errorf("it rejected %+v", got.Rejected)
	}
	var scored []NodeScored
	for _, s := range got.Scored {
		s.PodAttempt = PodAttempt{Name: s.Name}
		scored = append(scored, s)
	}
	want := []NodeScored{
		{PodAttempt: PodAttempt{Name: "bound"}, Rank: 3, Of: 4, Total: 50, Highest: 90, Chosen: true},
		{PodAttempt: PodAttempt{Name: "pod"}, Rank: 3, Of: 4, Total: 50, Highest: 90},
	}
	if !reflect.DeepEqual(scored, want) {
		t.Errorf("it was scored\n%+v, want\n%+v", scored, want)
	}
	if len(got.Pods) != 1 || got.Pods[0].Name != "bound" {
		t.Errorf("it has the pods %+v", got.Pods)
	}
	if last := r.Node("node-0-6"); last.Rejected != nil {
		t.Errorf("%d nodes are named, and this one is not: %+v", sampleNodes, last.Rejected)
	}
	if best := r.Node("b"); len(best.Scored) != 2 || best.Scored[0].Rank != 1 {
		t.Errorf("one of two best nodes: %+v", best.Scored)
	}
}
