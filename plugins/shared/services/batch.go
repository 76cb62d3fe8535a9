// SPDX-License-Identifier: Apache-2.0

package services

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The patched framework (patch 0520) asks plugins less often that have these methods. They are the same as its interfaces
// framework.PreparedFilterPlugin and framework.BatchScorePlugin, which upstream's does not have: there Filter and Score
// are called for each node.

// PreparedFilter is a Filter plugin that looks at the pod once in a cycle.
type PreparedFilter interface {
	// PrepareFilter is called after all PreFilter plugins. The function that it returns says of a node what Filter says;
	// nil says that Filter passes every node. Several goroutines may call the function at once. A status may be returned
	// for several nodes.
	PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(nodeInfo *framework.NodeInfo) *framework.Status
}

// BatchScorer is a Score plugin that scores many nodes in one call.
type BatchScorer interface {
	// ScoreNodes sets the Score of each entry to what Score returns for the node with the same index. Several goroutines
	// may call it at once, each with a part of the nodes.
	ScoreNodes(state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status
}
