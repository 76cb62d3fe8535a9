// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// noPreemption is the message for a node on which preemption is not tried.
const noPreemption = "node(s) were left out of preemption, because a coin of Chaos fell against a node"

// PreFilter begins the attempt.
func (pl *Chaos) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.disturbed(state, pod)
	return nil
}

// PreFilterExtensions returns the plugin itself, so that it can detect simulations of preemption.
func (pl *Chaos) PreFilterExtensions() framework.PreFilterExtensions {
	return pl
}

// AddPod does nothing: rejections do not depend on pods that are added or removed in a simulation.
func (pl *Chaos) AddPod(context.Context, *framework.CycleState, *v1.Pod, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return nil
}

// RemovePod marks the state as that of a simulation, because only preemption removes pods. The state is the
// simulation's own copy for a node, so no other call sees the mark.
func (pl *Chaos) RemovePod(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ *framework.PodInfo, _ *framework.NodeInfo) *framework.Status {
	if pl.isTarget(pod) {
		state.Write(simulationKey, simulation{})
	}
	return nil
}

const simulationKey framework.StateKey = Name + "/simulation"

// simulation is the mark.
type simulation struct{}

// Clone returns the mark itself.
func (s simulation) Clone() framework.StateData {
	return s
}

// disturbed returns the attempt of a cycle, or nil if Chaos must not disturb it. The first call in a cycle begins the
// attempt, and logs that it is spared.
func (pl *Chaos) disturbed(state *framework.CycleState, pod *v1.Pod) *attempt {
	if !pl.isTarget(pod) || whatif.Is(state) {
		return nil
	}
	current, begun := pl.attempts.of(state, pod)
	if begun && current.spared {
		pl.counters.spared.Inc()
		pl.log("Not disturbing the attempt", pod, current, "rejections", current.streak, "nominatedNode", pod.Status.NominatedNodeName)
	}
	if current.spared {
		return nil
	}
	return current
}

// Filter rejects nodes at random. The rejection is unresolvable, because preemption would not help on that node.
//
// Preemption must not make room on another node either, because the pod might have fitted on the rejected one: pods
// would be evicted because of Chaos, also pods of other namespaces. So preemption finds no node in an attempt in which
// a node was rejected. In any other attempt it works as without Chaos: nodes are not rejected in a simulation.
func (pl *Chaos) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if pl.args.RejectPercent == 0 || !pl.isTarget(pod) || whatif.Is(state) {
		return nil
	}
	// The state may be a copy, in which an attempt cannot begin. So without PreFilter there is no attempt.
	current := pl.attempts.read(state)
	if current == nil {
		pl.needsPreFilter.Do(func() {
			klog.ErrorS(nil, "No node is rejected, because the profile enables Filter but not PreFilter of this plugin; "+
				"next: enable it at multiPoint", "plugin", Name)
		})
		return nil
	}
	if current.spared {
		return nil
	}
	if _, err := state.Read(simulationKey); err == nil {
		if atomic.LoadUint32(&current.rejected) == 0 {
			return nil
		}
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, noPreemption)
	}
	if !current.rejects(nodeInfo.Node().Name, pl.args.RejectPercent) {
		return nil
	}
	if atomic.CompareAndSwapUint32(&current.rejected, 0, 1) {
		pl.counters.rejected.Inc()
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, pl.rejection)
}
