// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	"k8s.io/utils/pointer"
)

// margin is the share of the capacity by which preemption must cool a node below a threshold: the next measurement may be
// a little higher, and must not evict more pods.
const margin = 0.01

// PreFilter begins the cycle with the view that Filter and Score use.
func (pl *NodeLoad) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.cycle(state, pod)
	return nil
}

// PreFilterExtensions returns nil unless preemption can resolve a rejection: otherwise a pod's use is not known, and its
// estimate is in the NodeInfo.
func (pl *NodeLoad) PreFilterExtensions() framework.PreFilterExtensions {
	if pl.args.LowerPriorityLoad != config.NodeLoadLowerPriorityPreemptible {
		return nil
	}
	return pl
}

// RemovePod takes off what the node's measurement contains of a pod that preemption removes.
func (pl *NodeLoad) RemovePod(_ context.Context, state *framework.CycleState, pod *v1.Pod, removed *framework.PodInfo, _ *framework.NodeInfo) *framework.Status {
	c := *pl.cycle(state, pod)
	c.removed = append(c.removed[:len(c.removed):len(c.removed)], c.view.until(removed.Pod, leaving))
	state.Write(stateKey, &c)
	return nil
}

// AddPod reverts RemovePod. A pod that was not removed, such as a nominated one, is in the NodeInfo.
func (pl *NodeLoad) AddPod(_ context.Context, state *framework.CycleState, pod *v1.Pod, added *framework.PodInfo, _ *framework.NodeInfo) *framework.Status {
	c := *pl.cycle(state, pod)
	removed := c.removed
	c.removed = nil
	for _, of := range removed {
		if of.pod.UID != added.Pod.UID {
			c.removed = append(c.removed, of)
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
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	c := pl.cycle(state, pod)
	if len(c.filters) == 0 {
		return nil
	}
	loads := c.view.loads(nodeInfo)
	less := 0.0
	if len(c.removed) > 0 {
		less, loads = margin, append([]load(nil), loads...)
		for _, of := range c.removed {
			c.view.add(loads, of, 1)
		}
	}
	r, why := pl.verdict(c, loads, less)
	if why == "" {
		return nil
	}
	code := framework.UnschedulableAndUnresolvable
	if by := pl.args.LowerPriorityLoad; by != config.NodeLoadLowerPriorityCounts && pl.opens(c, pod, nodeInfo, loads) {
		if code = framework.Unschedulable; by == config.NodeLoadLowerPriorityIgnored {
			return nil
		}
	}
	if !whatif.Is(state) {
		pl.counters.rejections[r].Inc()
		pl.reject(node.Name, r)
	}
	return framework.NewStatus(code, why)
}

// opens reports whether a node would pass without the use of the pods of a lower priority, as far as it is measured.
func (pl *NodeLoad) opens(c *cycle, pod *v1.Pod, nodeInfo *framework.NodeInfo, loads []load) bool {
	less := 0.0
	if pl.PreFilterExtensions() != nil {
		less = margin
	}
	loads = append([]load(nil), loads...)
	for _, podInfo := range nodeInfo.Pods {
		if pointer.Int32Deref(podInfo.Pod.Spec.Priority, 0) < pointer.Int32Deref(pod.Spec.Priority, 0) {
			c.view.add(loads, c.view.runOf(podInfo.Pod), -1)
			c.view.add(loads, c.view.until(podInfo.Pod, leaving), 1)
		}
	}
	_, why := pl.verdict(c, loads, less)
	return why == ""
}

// verdict returns the resource for which a node is rejected, and the reason; empty if it passes. The thresholds are lower
// by less.
func (pl *NodeLoad) verdict(c *cycle, loads []load, less float64) (r int, why string) {
	for _, r := range c.filters {
		if c.blind[r] {
			continue
		}
		if why := pl.closed(r, &loads[r], c.oldest, less); why != "" {
			return r, why
		}
	}
	return -1, ""
}

// closed returns the reason why a load closes a node; empty if it does not. The texts are constant: the scheduler
// writes them to the condition of a pending pod, and sends an update whenever they differ from the last attempt's.
func (pl *NodeLoad) closed(r int, known *load, oldest int64, less float64) string {
	resource := &pl.resources[r]
	switch {
	case known.at < oldest:
		if pl.closedOnStale {
			return resource.unmeasured
		}
	case exceeds(known.now()+less, resource.threshold):
		return resource.hot
	}
	return ""
}
