// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// PreFilter begins the cycle: it takes the view that Filter and Score will go by.
func (pl *NodeLoad) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.cycle(state, pod)
	return nil
}

// PreFilterExtensions returns nil: Filter sees the pods that preemption adds and removes in the NodeInfo.
func (pl *NodeLoad) PreFilterExtensions() framework.PreFilterExtensions {
	return nil
}

// Filter rejects a node whose load is above a threshold. Preemption does not cool a node, so that is unresolvable.
//
// The pod itself does not count: it would be rejected for its own size, by idle nodes too, and could not even preempt.
// So a node passes its threshold by one pod at most. In Score the pod counts in full.
func (pl *NodeLoad) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	c := pl.cycle(state, pod)
	if len(c.filters) == 0 {
		return nil
	}
	r, why := pl.verdict(c, c.view.loads(nodeInfo))
	if why == "" {
		return nil
	}
	if !whatif.Is(state) {
		pl.counters.rejections[r].Inc()
		pl.reject(node.Name, r)
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, why)
}

// verdict says for which resource a node is rejected, and why; with an empty text it passes.
func (pl *NodeLoad) verdict(c *cycle, loads []load) (r int, why string) {
	for _, r := range c.filters {
		if c.blind[r] {
			continue
		}
		if why := pl.closed(r, &loads[r], c.oldest); why != "" {
			return r, why
		}
	}
	return -1, ""
}

// closed says why a load closes a node; empty if it does not. The texts never change: the scheduler writes them into
// the condition of a pod that waits, and writes to the API server whenever they are not those of the last attempt.
func (pl *NodeLoad) closed(r int, known *load, oldest int64) string {
	resource := &pl.resources[r]
	switch {
	case known.at < oldest:
		if pl.closedOnStale {
			return resource.unmeasured
		}
	case exceeds(known.now(), resource.threshold):
		return resource.hot
	}
	return ""
}
