// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestNoVictims compares the screening with a full selection of victims.
func TestNoVictims(t *testing.T) {
	running := func(priorities ...int32) (pods []*v1.Pod) {
		for _, priority := range priorities {
			pods = append(pods, st.MakePod().Priority(priority).Obj())
		}
		return pods
	}
	for name, test := range map[string]struct {
		pods []*v1.Pod
		says bool
	}{
		"an empty node":             {nil, true},
		"pods of more priority":     {running(20, 11), true},
		"pods of the same priority": {running(10), true},
		"one of less priority":      {running(20, 10, 9), false},
		"a pod without priority":    {[]*v1.Pod{st.MakePod().Obj()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := framework.NewNodeInfo(test.pods...)
			node.SetNode(st.MakeNode().Name("n").Obj())
			generation := node.Generation
			pod := st.MakePod().Name("p").Priority(10).Obj()
			pl := &DefaultPreemption{}
			none := pl.HasNoVictims(pod, node)
			if none != test.says {
				t.Fatalf("HasNoVictims returned %v", none)
			}
			if node.Generation != generation {
				t.Error("the node was changed")
			}
			if !none {
				return
			}
			_, _, want := pl.SelectVictimsOnNode(context.Background(), nil, pod, node.Clone(), nil)
			if got := pl.NoVictims(pod, node); !got.Equal(want) {
				t.Errorf("got %v, want that of SelectVictimsOnNode: %v", got, want)
			}
		})
	}
}
