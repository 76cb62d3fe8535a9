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

// Score returns which share of the bytes that the pod reads is near to the node, in percent, weighted by how near. All
// nodes are equal for a pod that reads nothing, or nothing that any node holds.
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

// ScoreNodes sets the same for many nodes. A scheduler that can score so (patch 0520) calls it in place of Score, and
// has the nodes at hand.
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

// notBegun is of a configuration that names the plugin at score alone.
func notBegun() *framework.Status {
	return framework.NewStatus(framework.Error, Name+" scores only where it is enabled at preScore, too")
}

// ScoreExtensions returns nil: scores are from 0 to 100 as they are. The best node is not made 100, so that a pod whose
// data are far from all nodes that fit is not torn from the one that other plugins prefer.
func (pl *DataLocality) ScoreExtensions() framework.ScoreExtensions {
	return nil
}
