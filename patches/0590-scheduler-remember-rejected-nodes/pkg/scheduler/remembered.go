// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// rememberer is the framework's data of a cycle, with the rejections of earlier cycles.
type rememberer interface {
	Recall(ctx context.Context, state *framework.CycleState, nodes []*framework.NodeInfo, start int) (*framework.Rejected, []int)
	Remember(rejected *framework.Rejected, nodes []*framework.NodeInfo) bool
}

// mapped is the number of nodes up to which a search makes a map of statuses, which costs nothing then.
const mapped = 128

// recall takes the place of a search over all nodes. It reports whether it is known that filters reject all of them.
func (g *genericScheduler) recall(ctx context.Context, state *framework.CycleState, nodes []*framework.NodeInfo, diagnosis *framework.Diagnosis) bool {
	cycle, ok := state.Prepared().(rememberer)
	if !ok {
		return false
	}
	rejected, evaluated := cycle.Recall(ctx, state, nodes, g.nextStartNodeIndex%len(nodes))
	if rejected == nil {
		return false
	}
	state.SetSearch(rejected, nodes, evaluated)
	g.diagnose(diagnosis, rejected, nodes)
	return true
}

// remember keeps the rejections of a search that found no node. It reports whether the diagnosis has them.
func (g *genericScheduler) remember(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, diagnosis *framework.Diagnosis) bool {
	cycle, ok := state.Prepared().(rememberer)
	if !ok {
		return false
	}
	rejected := framework.NewRejected(pod, len(nodes))
	list := g.rejections.list[:g.rejections.count]
	for i := range list {
		if !rejected.Set((g.nextStartNodeIndex+list[i].index)%len(nodes), list[i].status) {
			return false
		}
	}
	if !cycle.Remember(rejected, nodes) {
		return false
	}
	state.SetSearch(rejected, nodes, nil)
	if len(nodes) <= mapped {
		return false
	}
	for i := range list {
		list[i] = rejection{}
	}
	g.diagnose(diagnosis, rejected, nodes)
	return true
}

// diagnose has a diagnosis without a map give the reasons for which filters reject all nodes.
func (g *genericScheduler) diagnose(diagnosis *framework.Diagnosis, rejected *framework.Rejected, nodes []*framework.NodeInfo) {
	diagnosis.NodeToStatusMap, diagnosis.Reasons = nil, rejected.Reasons()
	diagnosis.UnschedulablePlugins = diagnosis.UnschedulablePlugins.Union(rejected.Plugins())
	// The next search begins where this one did, and ended.
	g.nextStartNodeIndex %= len(nodes)
}
