// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// preferring is a NodeFilter with rules that prefer nodes. A NodeFilter without such rules is not a score plugin, which
// saves the calls of Score.
type preferring struct {
	*NodeFilter
}

var _ framework.ScorePlugin = &preferring{}

// preference returns the weight of the rules that match a node, as a percentage of the weight of all rules that concern
// the pod, rounded to the nearest.
func preference(matching, all int64) int64 {
	if all == 0 {
		return 0
	}
	return (framework.MaxNodeScore*matching + all/2) / all
}

// Score returns the preference of the node.
func (pl *preferring) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	about := pl.about(state, pod)
	if len(about.preferred) == 0 {
		return 0, nil
	}
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	return pl.score(about, nodeInfo.Node()), nil
}

// ScoreNodes scores many nodes. A scheduler with patch 0520 calls it instead of Score for each node.
func (pl *preferring) ScoreNodes(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	about := pl.about(state, pod)
	if len(about.preferred) == 0 {
		return nil
	}
	for i, nodeInfo := range nodes {
		scores[i].Score = pl.score(about, nodeInfo.Node())
	}
	return nil
}

func (pl *preferring) score(about *podRules, node *v1.Node) int64 {
	on, known := pl.kept(about, node)
	var matching int64
	for _, rule := range about.preferred {
		if known && on.has(rule) || !known && rule.matchesNode(node) {
			matching += rule.weight
		}
	}
	return preference(matching, about.weight)
}

// ScoreExtensions returns nil: scores are 0 to 100 already.
func (pl *preferring) ScoreExtensions() framework.ScoreExtensions {
	return nil
}
