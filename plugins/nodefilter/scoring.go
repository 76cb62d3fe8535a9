// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// preferring is a NodeFilter with rules that prefer nodes. One without is no score plugin: it would be asked about each
// node of each pod for nothing.
type preferring struct {
	*NodeFilter
}

var _ framework.ScorePlugin = &preferring{}

// preference is the weight of the rules that match a node in that of all rules that concern the pod, brought to 0–100
// and rounded to the nearest.
func preference(matching, all int64) int64 {
	if all == 0 {
		return 0
	}
	return (framework.MaxNodeScore*matching + all/2) / all
}

// Score says how much of what the rules prefer the node has.
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

// ScoreNodes sets the same for many nodes. A scheduler that can score so calls it in place of Score, and has the nodes at
// hand.
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

// ScoreExtensions returns nil: the scores are from 0 to 100 as they are.
func (pl *preferring) ScoreExtensions() framework.ScoreExtensions {
	return nil
}
