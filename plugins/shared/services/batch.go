// SPDX-License-Identifier: Apache-2.0

package services

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The patched framework (patch 0520) calls these methods once instead of Filter and Score for each node. They are the
// same as its interfaces framework.PreparedFilterPlugin and framework.BatchScorePlugin, which upstream's framework does
// not have.

// PreparedFilter is a Filter plugin that evaluates the pod once in a cycle.
type PreparedFilter interface {
	// PrepareFilter is called after all PreFilter plugins. It returns a function with the same result as Filter for
	// each node, or nil if Filter passes every node. The function may be called in parallel, and may return one status
	// for several nodes.
	PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(nodeInfo *framework.NodeInfo) *framework.Status
}

// BatchScorer is a Score plugin that scores many nodes in one call.
type BatchScorer interface {
	// ScoreNodes sets the Score of each entry to the result of Score for the node with the same index. It may be called
	// in parallel, each time with a part of the nodes.
	ScoreNodes(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status
}
