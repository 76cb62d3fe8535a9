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

// NodeLocal is a Filter or Score plugin whose results depend on the pod, its arguments and one NodeInfo alone. The patched
// framework (patch 0590) remembers them, and evaluates a node again only after it has changed.
type NodeLocal interface {
	// NodeLocalKey appends to key everything that Filter and Score read besides the NodeInfo of the node: of the pod, and
	// of what is the same for all nodes. It returns false for a pod that does not qualify. If two keys are equal, the
	// results for a node that has not changed must be equal too, in any cycle: so Filter and Score must not read other
	// nodes, a clock, measurements, listers, random numbers or a counter. They are not called for a result that is
	// remembered, so their logs, metrics and records do not contain it. The tests of a plugin with this method must call
	// nodelocal.Test.
	NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool)
}
