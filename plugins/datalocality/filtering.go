// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// stateKey is the key of the cycle's *removals, which every pod has if the plugin filters. Preemption filters with
// copies of the pod and of the state, so a verdict must not depend on the object of the pod.
const stateKey framework.StateKey = Name

// removals are the pods that serve the cycle's data and that preemption has removed in a simulation.
type removals struct {
	cycle *cycle
	gone  []removal
}

// removal is one such pod.
type removal struct {
	pod  *v1.Pod
	node *node
	held *dataset
}

// Clone returns a copy that preemption may change. Without data to read, nothing changes.
func (r *removals) Clone() framework.StateData {
	if len(r.cycle.datasets) == 0 {
		return r
	}
	return &removals{cycle: r.cycle, gone: append([]removal(nil), r.gone...)}
}

// removalsOf returns the removals that PreFilter wrote for the cycle, or an error if it was not called.
func removalsOf(state *framework.CycleState) (*removals, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, err
	}
	return data.(*removals), nil
}

// PreFilter begins the cycle if the plugin filters. It decides for the whole cycle which datasets are known: a dataset
// must not become unknown, and so be ignored, because preemption removes its last server in a simulation.
func (pl *DataLocality) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	if pl.within < 0 {
		return nil
	}
	c, status := pl.begin(state, pod)
	if !status.IsSuccess() {
		return status
	}
	state.Write(stateKey, &removals{cycle: c})
	return nil
}

// PreFilterExtensions returns the plugin itself if verdicts depend on pods.
func (pl *DataLocality) PreFilterExtensions() framework.PreFilterExtensions {
	if pl.within < 0 || len(pl.index.servers) == 0 {
		return nil
	}
	return pl
}

// RemovePod adds a removal if the pod serves data.
func (pl *DataLocality) RemovePod(_ context.Context, state *framework.CycleState, _ *v1.Pod, removed *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	r, err := removalsOf(state)
	if err != nil || len(r.cycle.datasets) == 0 {
		return nil
	}
	if held := pl.index.serving[removed.Pod]; held != nil {
		r.gone = append(r.gone, removal{removed.Pod, pl.index.nodes[nodeInfo.Node()], held})
	}
	return nil
}

// AddPod reverts the removal of a pod. Other added pods are nominated: they do not run yet, so they serve no data.
func (pl *DataLocality) AddPod(_ context.Context, state *framework.CycleState, _ *v1.Pod, added *framework.PodInfo, _ *framework.NodeInfo) *framework.Status {
	r, err := removalsOf(state)
	if err != nil {
		return nil
	}
	for i := range r.gone {
		if r.gone[i].pod == added.Pod {
			r.gone = append(r.gone[:i], r.gone[i+1:]...)
			break
		}
	}
	return nil
}

// Filter rejects a node unless all data of the pod are within the required level. Data that no node holds are ignored.
// Preemption can only remove data, so the rejection is unresolvable.
func (pl *DataLocality) Filter(_ context.Context, state *framework.CycleState, _ *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if pl.within < 0 {
		return nil
	}
	r, err := removalsOf(state)
	if err != nil {
		return framework.NewStatus(framework.Error, Name+" filters only if it is enabled at preFilter too")
	}
	if len(r.cycle.datasets) == 0 {
		return nil
	}
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	if pl.passes(r, node) {
		return nil
	}
	if !whatif.Is(state) {
		pl.counters.rejected.Inc()
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, pl.outside...)
}

// PrepareFilter returns a function with the results of Filter, or nil for a pod without data that some node holds. A
// scheduler with patch 0520 calls it after PreFilter, instead of Filter for each node.
func (pl *DataLocality) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	if pl.within < 0 {
		return nil
	}
	r, err := removalsOf(state)
	if err != nil {
		return func(nodeInfo *framework.NodeInfo) *framework.Status {
			return pl.Filter(context.Background(), state, pod, nodeInfo)
		}
	}
	if len(r.cycle.datasets) == 0 {
		return nil
	}
	counts := !whatif.Is(state)
	// All nodes share this status, which is never changed.
	outside := framework.NewStatus(framework.UnschedulableAndUnresolvable, pl.outside...)
	outside.SetFailedPlugin(Name)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		if pl.passes(r, nodeInfo.Node()) {
			return nil
		}
		if counts {
			pl.counters.rejected.Inc()
		}
		return outside
	}
}

// passes reports whether all of the cycle's datasets are within the required level of a node.
func (pl *DataLocality) passes(r *removals, node *v1.Node) bool {
	held, have := pl.index.held(node), set(0)
	for level := 0; level <= pl.within; level++ {
		have |= held[level]
	}
	if len(r.gone) > 0 {
		have = pl.without(r, pl.index.nodes[node], have)
	}
	return have == all(len(r.cycle.datasets))
}

// without returns the datasets that are still within the required level of a node after the removals.
func (pl *DataLocality) without(r *removals, n *node, have set) set {
	for i, held := range r.cycle.datasets {
		if bit := set(1) << uint(i); have&bit != 0 && r.takes(held) && !pl.stays(r, n, held) {
			have &^= bit
		}
	}
	return have
}

// takes reports whether a removed pod serves a dataset.
func (r *removals) takes(held *dataset) bool {
	for i := range r.gone {
		if r.gone[i].held == held {
			return true
		}
	}
	return false
}

// stays reports whether a dataset is still within the required level of a node.
func (pl *DataLocality) stays(r *removals, n *node, held *dataset) bool {
	for holder, reasons := range held.holders {
		for i := range r.gone {
			if r.gone[i].held == held && r.gone[i].node == holder {
				reasons--
			}
		}
		if reasons <= 0 {
			continue
		}
		for level := 0; level <= pl.within; level++ {
			if m := n.marks[level]; m != nil && m == holder.marks[level] {
				return true
			}
		}
	}
	return false
}
