// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PreScore begins the cycle, unless PreFilter has done so.
func (pl *DataLocality) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	if r, err := removalsOf(state); err == nil && r.cycle == pl.current {
		return nil
	}
	_, status := pl.begin(state, pod)
	return status
}

// Score returns the share of the pod's bytes near the node, in percent, weighted by level. It is 0 for a pod without
// data, or with data that no node holds.
func (pl *DataLocality) Score(_ context.Context, _ *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	if pl.current.pod != pod {
		return 0, notBegun()
	}
	if pl.current.total == 0 {
		return 0, nil
	}
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(fmt.Errorf("getting node %q from snapshot: %w", nodeName, err))
	}
	return pl.score(pl.current, nodeInfo.Node()), nil
}

// ScoreNodes scores many nodes. A scheduler with patch 0520 calls it instead of Score for each node.
func (pl *DataLocality) ScoreNodes(_ *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	c := pl.current
	if c.pod != pod {
		return notBegun()
	}
	for i, nodeInfo := range nodes {
		scores[i].Score = pl.score(c, nodeInfo.Node())
	}
	return nil
}

func (pl *DataLocality) score(c *cycle, node *v1.Node) int64 {
	if c.total == 0 {
		return 0
	}
	held := pl.index.held(node)
	at := nearest(&held, c.bytes)
	return score(&at, pl.percents, c.total)
}

// notBegun returns the status for a configuration that enables the plugin at score and not at preScore.
func notBegun() *framework.Status {
	return framework.NewStatus(framework.Error, Name+" scores only if it is enabled at preScore too")
}

// ScoreExtensions returns nil: scores are 0 to 100 already. The best node is not scaled to 100, so that a pod whose
// data are far from all feasible nodes goes to the node that other plugins prefer.
func (pl *DataLocality) ScoreExtensions() framework.ScoreExtensions {
	return nil
}
