// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// reasonMaxPerNode is constant, because the scheduler writes it into the condition of a pending pod.
const reasonMaxPerNode = "node(s) had as many pods of the group as maxPerNode of WorkloadTopology allows"

// PreFilter begins the cycle.
func (pl *WorkloadTopology) PreFilter(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod) *framework.Status {
	_, status := pl.state(cycleState, pod)
	return status
}

// PreFilterExtensions returns the plugin itself if it filters: preemption may add and remove pods of the group.
func (pl *WorkloadTopology) PreFilterExtensions() framework.PreFilterExtensions {
	if pl.args.MaxPerNode == nil {
		return nil
	}
	return pl
}

// AddPod counts a pod as if it were on a node.
func (pl *WorkloadTopology) AddPod(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, added *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	return pl.assume(cycleState, pod, added.Pod, nodeInfo, 1)
}

// RemovePod counts a pod as if it were not on a node.
func (pl *WorkloadTopology) RemovePod(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, removed *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	return pl.assume(cycleState, pod, removed.Pod, nodeInfo, -1)
}

func (pl *WorkloadTopology) assume(cycleState *framework.CycleState, pod, other *v1.Pod, nodeInfo *framework.NodeInfo, n int32) *framework.Status {
	s, status := pl.state(cycleState, pod)
	if !status.IsSuccess() || s.name == "" || other.DeletionTimestamp != nil || pl.index.groupOf(other) != s.name {
		return status
	}
	if on := pl.index.nodes[nodeInfo.Node()]; on != nil {
		s.on[on] += n
	}
	return nil
}

// Filter rejects a node with maxPerNode pods of the group.
func (pl *WorkloadTopology) Filter(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if pl.args.MaxPerNode == nil {
		return nil
	}
	s, status := pl.state(cycleState, pod)
	if status.IsSuccess() && s.name != "" && s.podsOn(pl.index.nodes[node]) >= *pl.args.MaxPerNode {
		return framework.NewStatus(framework.Unschedulable, reasonMaxPerNode)
	}
	return status
}

// PrepareFilter returns a function with the results of Filter, or nil if no node can be rejected for the pod, even
// after preemption removes pods.
func (pl *WorkloadTopology) PrepareFilter(cycleState *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	if pl.args.MaxPerNode == nil {
		return nil
	}
	s, status := pl.state(cycleState, pod)
	if !status.IsSuccess() {
		return func(*framework.NodeInfo) *framework.Status { return status }
	}
	if s.group == nil {
		return nil
	}
	// All nodes share this status, which is never changed.
	full := framework.NewStatus(framework.Unschedulable, reasonMaxPerNode)
	full.SetFailedPlugin(Name)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		if s.group.full[nodeInfo.Node().Name] {
			return full
		}
		return nil
	}
}
