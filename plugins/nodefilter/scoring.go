// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// preferring is a NodeFilter with rules that prefer nodes, or pull pods to a share. A NodeFilter without such rules is
// not a score plugin, which saves the calls of Score.
type preferring struct {
	embedded
	filter *NodeFilter
}

// embedded has the methods of NodeFilter that preferring shares, but not NodeLocalKey: the patched framework does not use
// that of an embedded plugin, which does not know what Score reads.
type embedded interface {
	framework.PreFilterPlugin
	framework.FilterPlugin
	framework.EnqueueExtensions
	Explain(state *framework.CycleState, pod *v1.Pod, nodes []string) string
}

var (
	_ framework.ScorePlugin = &preferring{}
	_ services.NodeLocal    = &preferring{}
)

// NodeLocalKey implements services.NodeLocal.
func (pl *preferring) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	return pl.filter.NodeLocalKey(pod, key)
}

// preference returns the weight of the rules that match a node, as a percentage of the weight of all rules that concern
// the pod, rounded to the nearest.
func preference(matching, all int64) int64 {
	if all == 0 {
		return 0
	}
	return (framework.MaxNodeScore*matching + all/2) / all
}

// pull returns the score of a node that some of the pod's shares admit, 0 to 100. Each share weighs three times as much
// as all preferences together, so that no preference outweighs a share.
func pull(admitted, shares, preference, preferences int64) int64 {
	if preferences > 0 {
		preferences = 1
	}
	return (framework.MaxNodeScore*3*admitted + preference*preferences) / (3*shares + preferences)
}

// Score returns the preference of the node, and the pull of shares to it.
func (pl *preferring) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	nodeInfo, err := pl.filter.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	scores := framework.NodeScoreList{{}}
	status := pl.ScoreNodes(state, pod, []*framework.NodeInfo{nodeInfo}, scores)
	return scores[0].Score, status
}

// ScoreNodes scores many nodes. A scheduler with patch 0520 calls it instead of Score for each node.
func (pl *preferring) ScoreNodes(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	about := pl.filter.about(state, pod)
	if len(about.scored) == 0 {
		return nil
	}
	standings, err := about.standingsIn(state)
	if err != nil {
		return framework.AsStatus(err)
	}
	for i, nodeInfo := range nodes {
		scores[i].Score = pl.score(about, standings, nodeInfo.Node())
	}
	return nil
}

func (pl *preferring) score(about *podRules, standings []standing, node *v1.Node) int64 {
	on, known := pl.filter.kept(about, node)
	var matching, admitted int64
	for _, rule := range about.scored {
		matches := known && on.has(rule) || !known && rule.matchesNode(node)
		switch {
		case rule.share == nil && matches:
			matching += rule.weight
		case rule.share != nil && rule.share.admits(standings[rule.share.place], matches):
			admitted++
		}
	}
	score := preference(matching, about.weight)
	if about.pulls > 0 {
		score = pull(admitted, about.pulls, score, about.weight)
	}
	return score
}

// ScoreExtensions returns nil: scores are 0 to 100 already.
func (pl *preferring) ScoreExtensions() framework.ScoreExtensions {
	return nil
}
