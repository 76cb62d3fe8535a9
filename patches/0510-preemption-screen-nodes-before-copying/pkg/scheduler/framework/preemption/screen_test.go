// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"reflect"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestPotentialNodes(t *testing.T) {
	var nodes []*framework.NodeInfo
	for _, name := range []string{"a", "b", "c"} {
		nodeInfo := framework.NewNodeInfo()
		nodeInfo.SetNode(st.MakeNode().Name(name).Obj())
		nodes = append(nodes, nodeInfo)
	}
	unschedulable, unresolvable := framework.NewStatus(framework.Unschedulable), framework.NewStatus(framework.UnschedulableAndUnresolvable)
	for name, m := range map[string]framework.NodeToStatusMap{
		"no status":         nil,
		"all unschedulable": {"a": unschedulable, "b": unschedulable, "c": unschedulable},
		"one unresolvable":  {"a": unschedulable, "b": unresolvable},
		"all unresolvable":  {"a": unresolvable, "b": unresolvable, "c": unresolvable},
	} {
		t.Run(name, func(t *testing.T) {
			want, _ := nodesWherePreemptionMightHelp(nodes, m)
			if got := potentialNodesOf(nodes, m); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
