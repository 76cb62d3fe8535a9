// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	"k8s.io/utils/pointer"
)

// margin is the share of the capacity by which preemption must cool a node below a threshold: the next measurement may
// be a little higher, and must not evict more pods.
const margin = 0.01

// PreFilter begins the cycle with the view that Filter and Score use.
func (pl *NodeLoad) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.cycle(state, pod)
	return nil
}

// PreFilterExtensions returns nil unless preemption can resolve a rejection: otherwise a pod's use is not known, and
// its estimate is in the NodeInfo.
func (pl *NodeLoad) PreFilterExtensions() framework.PreFilterExtensions {
	if pl.args.LowerPriorityLoad != config.NodeLoadLowerPriorityPreemptible {
		return nil
	}
	return pl
}

// RemovePod notes a pod that preemption removes. Filter takes off what the node's measurements contain of it.
func (pl *NodeLoad) RemovePod(_ context.Context, state *framework.CycleState, pod *v1.Pod, removed *framework.PodInfo,
	_ *framework.NodeInfo) *framework.Status {
	c := *pl.cycle(state, pod)
	c.removed = append(c.removed[:len(c.removed):len(c.removed)], removed.Pod)
	state.Write(stateKey, &c)
	return nil
}

// AddPod reverts RemovePod. A pod that was not removed, such as a nominated one, is in the NodeInfo.
func (pl *NodeLoad) AddPod(_ context.Context, state *framework.CycleState, pod *v1.Pod, added *framework.PodInfo,
	_ *framework.NodeInfo) *framework.Status {
	c := *pl.cycle(state, pod)
	removed := c.removed
	c.removed = nil
	for _, other := range removed {
		if other.UID != added.Pod.UID {
			c.removed = append(c.removed, other)
		}
	}
	state.Write(stateKey, &c)
	return nil
}

// Filter rejects a node whose load is above a threshold. The rejection is unresolvable unless preemption would cool the
// node.
//
// The pod itself does not count: a large pod would be rejected even by idle nodes, and could not preempt. So a node can
// exceed its threshold by one pod. In Score the pod counts in full.
func (pl *NodeLoad) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if nodeInfo.Node() == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	c := pl.cycle(state, pod)
	if len(c.filters) == 0 {
		return nil
	}
	p, less := c.view.predict(nodeInfo), 0.0
	if len(c.removed) > 0 {
		p, less = &prediction{loads: p.without(math.MinInt32), lower: p.lower}, margin
		for _, removed := range c.removed {
			c.view.add(p, removed, true)
		}
	}
	if r, why := pl.verdict(c, p.loads, less); why != "" {
		return pl.rejection(c, state, pod, nodeInfo.Node().Name, p, r, why)
	}
	return nil
}

// rejection returns the status of a node that is closed for a reason; nil if it is open in the mode Ignored.
func (pl *NodeLoad) rejection(c *cycle, state *framework.CycleState, pod *v1.Pod, node string, p *prediction, r int, why string) *framework.Status {
	code, below := framework.UnschedulableAndUnresolvable, int32(math.MinInt32)
	if pl.args.LowerPriorityLoad != config.NodeLoadLowerPriorityCounts {
		below = pointer.Int32Deref(pod.Spec.Priority, 0)
		if _, why := pl.verdict(c, p.without(below), pl.margin()); why == "" {
			if pl.margin() == 0 {
				return nil
			}
			code, below = framework.Unschedulable, math.MinInt32
		}
	}
	if !whatif.Is(state) && len(c.removed) == 0 {
		pl.counters.rejections[r].Inc()
		pl.reject(node, r, below)
	}
	return framework.NewStatus(code, why)
}

// margin returns by how much a node must be below a threshold without the pods of a lower priority.
func (pl *NodeLoad) margin() float64 {
	if pl.PreFilterExtensions() == nil {
		return 0
	}
	return margin
}

// verdict returns the resource for which a node is rejected, and the reason; empty if it passes. The thresholds are
// lower by less.
func (pl *NodeLoad) verdict(c *cycle, loads []load, less float64) (r int, why string) {
	for _, r := range c.filters {
		if why := pl.closed(r, &loads[r], c.oldest, less); why != "" && !c.blind[r] {
			return r, why
		}
	}
	return -1, ""
}

// closed returns the reason why a load closes a node; empty if it does not. The texts are constant: the scheduler
// writes them to the condition of a pending pod, and sends an update whenever they differ from the last attempt's.
func (pl *NodeLoad) closed(r int, l *load, oldest int64, less float64) string {
	resource := &pl.resources[r]
	switch {
	case l.at < oldest:
		if pl.args.FilterOnStale == config.NodeLoadFilterClosed {
			return resource.unmeasured
		}
	case exceeds(l.measured+l.inFlight+less, resource.threshold):
		return resource.hot
	}
	return ""
}
