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

// Score returns 0 to 100, the same for all nodes if the pod has no group.
func (pl *WorkloadTopology) Score(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	s, status := pl.state(cycleState, pod)
	if !status.IsSuccess() || s.round == 0 {
		return 0, status
	}
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	return pl.score(s.cycle, cycleState, nodeInfo), nil
}

// ScoreNodes scores many nodes. A scheduler with patch 0520 calls it instead of Score for each node.
func (pl *WorkloadTopology) ScoreNodes(cycleState *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	s, status := pl.state(cycleState, pod)
	if !status.IsSuccess() {
		return status
	}
	for i := range scores {
		scores[i].Score = 0
		if s.round > 0 {
			scores[i].Score = pl.score(s.cycle, cycleState, nodes[i])
		}
	}
	return nil
}

// score returns a node's score.
func (pl *WorkloadTopology) score(c *cycle, cycleState *framework.CycleState, nodeInfo *framework.NodeInfo) int64 {
	if pl.hot(cycleState, nodeInfo) {
		return 0
	}
	on := pl.index.nodes[nodeInfo.Node()]
	if on == nil {
		// The index knows all nodes of the snapshot.
		return combine(0, 0, 0)
	}
	return combine(nearness(on.numbers, pl.costs, pl.index.marks.sums, c.weight), spread(on.podsIn(c.round)), int64(pl.args.SpreadWeight))
}

// ScoreExtensions returns nil: scores are 0 to 100 already.
func (pl *WorkloadTopology) ScoreExtensions() framework.ScoreExtensions {
	return nil
}

// hot reports whether NodeLoad has a load above avoidAbove. A node without a known load is not hot.
func (pl *WorkloadTopology) hot(cycleState *framework.CycleState, nodeInfo *framework.NodeInfo) bool {
	if pl.args.AvoidAbove == nil {
		return false
	}
	load, known := nodeload.HighestLoad(cycleState, nodeInfo)
	return known && load > float64(*pl.args.AvoidAbove)
}
