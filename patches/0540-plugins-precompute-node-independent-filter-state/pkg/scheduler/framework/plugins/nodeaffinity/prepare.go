// SPDX-License-Identifier: Apache-2.0

package nodeaffinity

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var (
	_ framework.PreparedFilterPlugin = &NodeAffinity{}
	_ framework.BatchScorePlugin     = &NodeAffinity{}
)

// PrepareFilter skips pods that require no labels, and parses the pod's requirements once.
func (pl *NodeAffinity) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	affinity := pod.Spec.Affinity
	required := len(pod.Spec.NodeSelector) > 0 ||
		affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if !required && pl.addedNodeSelector == nil {
		return nil
	}
	matches, ok := requiredMatcher(pod)
	if !ok {
		return func(nodeInfo *framework.NodeInfo) *framework.Status {
			return pl.Filter(context.TODO(), state, pod, nodeInfo)
		}
	}
	enforced := framework.NewStatus(framework.UnschedulableAndUnresolvable, errReasonEnforced).WithFailedPlugin(Name)
	unmatched := framework.NewStatus(framework.UnschedulableAndUnresolvable, ErrReasonPod).WithFailedPlugin(Name)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		node := nodeInfo.Node()
		if pl.addedNodeSelector != nil && !pl.addedNodeSelector.Match(node) {
			return enforced
		}
		if !matches(node) {
			return unmatched
		}
		return nil
	}
}

// ScoreNodes sets each score to the sum of the weights of the matching terms.
func (pl *NodeAffinity) ScoreNodes(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	s, err := getPreScoreState(state)
	if err != nil {
		s = &preScoreState{}
		if s.preferredNodeAffinity, err = getPodPreferredNodeAffinity(pod); err != nil {
			return framework.AsStatus(err)
		}
	}
	for i, nodeInfo := range nodes {
		if pl.addedPrefSchedTerms != nil {
			scores[i].Score += pl.addedPrefSchedTerms.Score(nodeInfo.Node())
		}
		if s.preferredNodeAffinity != nil {
			scores[i].Score += s.preferredNodeAffinity.Score(nodeInfo.Node())
		}
	}
	return nil
}
