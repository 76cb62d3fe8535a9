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

const (
	// maxLoggedNodes bounds the list of nodes in one line of a dry run's log.
	maxLoggedNodes = 20
	// noPreemption is the message for a node on which preemption might have made room.
	noPreemption = "node(s) were left out of preemption, because a coin of Chaos fell against a node"
)

// PreFilter begins the attempt.
func (pl *Chaos) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.disturbed(state, pod)
	return nil
}

// PreFilterExtensions returns the plugin itself, which so knows the simulations of preemption.
func (pl *Chaos) PreFilterExtensions() framework.PreFilterExtensions {
	return pl
}

// AddPod does nothing: pods that come or go in a simulation change no coin.
func (pl *Chaos) AddPod(context.Context, *framework.CycleState, *v1.Pod, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return nil
}

// RemovePod marks the state as that of a simulation: only preemption removes pods, to try whether the pod would fit
// without them. The state is the simulation's own copy, one for each node, so no other call sees the mark.
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

// disturbed returns the attempt that a cycle is if Chaos may disturb it, else nil. The first call in a cycle begins the
// attempt, and says what the coins are, or that it is left alone.
func (pl *Chaos) disturbed(state *framework.CycleState, pod *v1.Pod) *attempt {
	if !pl.isTarget(pod) || whatif.Is(state) {
		return nil
	}
	current, begun := pl.attempts.of(state, pod)
	if begun && current.spared {
		pl.counters.spared.Inc()
		pl.log("Attempt is left alone", pod, current, "rejections", current.streak, "nominatedNode", pod.Status.NominatedNodeName)
	} else if begun && pl.args.DryRun && pl.args.RejectPercent > 0 {
		pl.logCoins(pod, current)
	}
	if current.spared {
		return nil
	}
	return current
}

// logCoins lists the nodes whose coins fall against them, as many as fit in a line. Some of them might not be asked
// about: another plugin may reject them first, or enough others be found.
func (pl *Chaos) logCoins(pod *v1.Pod, current *attempt) {
	all, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		klog.ErrorS(err, "Listing the nodes failed, so those that a dry run rejects are not logged", "plugin", Name, "pod", klog.KObj(pod))
		return
	}
	var listed []string
	rejected := 0
	for _, nodeInfo := range all {
		if !current.rejects(nodeInfo.Node().Name, pl.args.RejectPercent) {
			continue
		}
		rejected++
		if rejected <= maxLoggedNodes {
			listed = append(listed, nodeInfo.Node().Name)
		}
	}
	pl.log("Nodes are rejected", pod, current, "nodes", listed, "rejected", rejected, "of", len(all))
}

// Filter rejects the nodes whose coin falls against them. Preemption would not help there: the rejection is
// unresolvable.
//
// Nor may preemption make room on another node, for the pod might have fitted on the one that was rejected: pods would
// be evicted because of Chaos, pods of other namespaces among them. So it finds no node at all in an attempt in which a
// node was rejected. In any other attempt it does what it does without Chaos: no coin is flipped in a simulation.
func (pl *Chaos) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if pl.args.RejectPercent == 0 || !pl.isTarget(pod) || whatif.Is(state) {
		return nil
	}
	// The state may be a copy, in which an attempt cannot be begun. Without PreFilter there is none.
	current := pl.attempts.read(state)
	if current == nil {
		pl.needsPreFilter.Do(func() {
			klog.ErrorS(nil, "No node is rejected, because the profile enables Filter and not PreFilter of this plugin; "+
				"next: enable it at multiPoint", "plugin", Name)
		})
		return nil
	}
	if current.spared {
		return nil
	}
	if _, err := state.Read(simulationKey); err == nil {
		if pl.args.DryRun || atomic.LoadUint32(&current.rejected) == 0 {
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
	if pl.args.DryRun {
		return nil
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, pl.rejection)
}
