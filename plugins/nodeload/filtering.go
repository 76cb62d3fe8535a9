// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// PreFilter begins the cycle with the view that Filter and Score use.
func (pl *NodeLoad) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.cycle(state, pod)
	return nil
}

// PreFilterExtensions returns nil: the pods that preemption adds and removes are in the NodeInfo.
func (pl *NodeLoad) PreFilterExtensions() framework.PreFilterExtensions {
	return nil
}

// Filter rejects a node whose load is above a threshold. Preemption does not cool a node, so the rejection is
// unresolvable.
//
// The pod itself does not count: a large pod would be rejected even by idle nodes, and could not preempt. So a node can
// exceed its threshold by one pod. In Score the pod counts in full.
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

// verdict returns the resource for which a node is rejected, and the reason; empty if it passes.
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

// closed returns the reason why a load closes a node; empty if it does not. The texts are constant: the scheduler
// writes them to the condition of a pending pod, and sends an update whenever they differ from the last attempt's.
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
