// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/topology"
)

// The texts are constant, because the scheduler writes them into the condition of a pending pod.
const (
	reasonMaxPerNode = "node(s) had as many pods of the group as maxPerNode of WorkloadTopology allows"
	reasonWithin     = "node(s) were not near to a peer of the pod, as an edge of WorkloadTopology requires"
)

// PreFilter begins the cycle.
func (pl *WorkloadTopology) PreFilter(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod) *framework.Status {
	_, status := pl.state(cycleState, pod)
	return status
}

// PreFilterExtensions returns the plugin itself if it filters: preemption may add and remove pods of the group, or
// peers.
func (pl *WorkloadTopology) PreFilterExtensions() framework.PreFilterExtensions {
	if !pl.filters {
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
	if !status.IsSuccess() || nodeInfo.Node() == nil || other.DeletionTimestamp != nil {
		return status
	}
	on, group := pl.index.nodes[nodeInfo.Node()], pl.index.group(other)
	if on == nil {
		return nil
	}
	if group != "" && group == s.group {
		s.addOn(on, n)
	}
	if len(s.requirements) == 0 {
		return nil
	}
	pl.index.sides(other, group, func(e *edge, key peersKey) {
		if e.within < 0 {
			return
		}
		s.added(key, pl.index.levels).count(on.domains, int64(n))
	})
	return nil
}

// Filter rejects a node with maxPerNode pods of the group, or without a peer within the required level of an edge.
func (pl *WorkloadTopology) Filter(_ context.Context, cycleState *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if !pl.filters {
		return nil
	}
	s, status := pl.state(cycleState, pod)
	if !status.IsSuccess() {
		return status
	}
	return pl.verdict(s, pl.index.nodes[node])
}

// PrepareFilter returns a function with the results of Filter, or nil if no node can be rejected for the pod, even
// after preemption removes pods.
func (pl *WorkloadTopology) PrepareFilter(cycleState *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	if !pl.filters {
		return nil
	}
	s, status := pl.state(cycleState, pod)
	if !status.IsSuccess() {
		return func(*framework.NodeInfo) *framework.Status { return status }
	}
	if len(s.requirements) > 0 {
		return func(nodeInfo *framework.NodeInfo) *framework.Status {
			return pl.verdict(s, pl.index.nodes[nodeInfo.Node()])
		}
	}
	if s.pods == nil {
		return nil
	}
	// All nodes share this status, which is never changed.
	full := framework.NewStatus(framework.Unschedulable, reasonMaxPerNode)
	full.SetFailedPlugin(Name)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		if s.pods.full[nodeInfo.Node().Name] {
			return full
		}
		return nil
	}
}

// verdict returns a rejection of a node, or nil.
func (pl *WorkloadTopology) verdict(s *state, on *node) *framework.Status {
	for i := range s.requirements {
		if !pl.near(s, &s.requirements[i], on) {
			// Preemption on the node does not bring a peer near it.
			return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasonWithin)
		}
	}
	if most := pl.args.MaxPerNode; most != nil && s.group != "" && s.podsOn(on) >= *most {
		return framework.NewStatus(framework.Unschedulable, reasonMaxPerNode)
	}
	return nil
}

// near reports whether a node is in the domain of a peer at a level, or whether no peer has a domain at that level.
func (pl *WorkloadTopology) near(s *state, r *requirement, on *node) bool {
	var domain *topology.Domain
	if on != nil {
		domain = on.domains[r.level]
	}
	var in int64
	for _, key := range r.keys {
		var at int64
		for _, counted := range [...]*peers{pl.index.peers[key], s.peers[key]} {
			if counted != nil {
				in += counted.in[r.level]
				at += counted.at[domain]
			}
		}
		if at > 0 {
			return true
		}
	}
	return in <= 0
}
