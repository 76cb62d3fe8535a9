// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
)

// PreScore begins the cycle if PreFilter did not.
func (pl *WorkloadTopology) PreScore(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	_, status := pl.state(cycleState, pod)
	return status
}

// Score returns 0 to 100; the same for all nodes of a pod that has no group and no peers.
func (pl *WorkloadTopology) Score(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	c, ok := pl.last.Load().(*cycle)
	if !ok || c.pod != pod {
		s, status := pl.state(cycleState, pod)
		if !status.IsSuccess() {
			return 0, status
		}
		c = s.cycle
	}
	if c.round == 0 {
		return 0, nil
	}
	if pl.args.AvoidAbove != nil && pl.hot(cycleState, nodeName) {
		return 0, nil
	}
	return pl.score(c, pl.index.nodes[nodeName]), nil
}

// score returns the score of a node that is not hot. One that came after the cycle began is as one without labels.
func (pl *WorkloadTopology) score(c *cycle, on *node) int64 {
	near := pl.nearness(c, on)
	if pl.args.SpreadWeight == 0 {
		return combine(near, 0, 0)
	}
	return combine(near, spread(c.on[on]), int64(pl.args.SpreadWeight))
}

func (pl *WorkloadTopology) nearness(c *cycle, on *node) int64 {
	if on == nil {
		return nearness(nil, pl.costs, c.round, c.weight)
	}
	return nearness(on.domains, pl.costs, c.round, c.weight)
}

// ScoreExtensions returns nil: the scores need not be known together.
func (pl *WorkloadTopology) ScoreExtensions() framework.ScoreExtensions {
	return nil
}

// hot says whether NodeLoad knows of a load above the one to avoid. What is not known is not hot.
func (pl *WorkloadTopology) hot(cycleState *framework.CycleState, nodeName string) bool {
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return false
	}
	load, known := nodeload.HighestLoad(cycleState, nodeInfo)
	return known && load > float64(*pl.args.AvoidAbove)
}
