// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// stateKey is where a cycle keeps its *removals, if there is a filter. A pod that reads nothing has them too: preemption
// filters with copies of the pod and of the state, and the verdict must not depend on which object the pod is.
const stateKey framework.StateKey = Name

// removals are the pods that serve the cycle's data and that preemption takes for gone.
type removals struct {
	cycle *cycle
	gone  []removal
}

// removal is of one such pod.
type removal struct {
	pod  *v1.Pod
	node *node
	held *dataset
}

// Clone returns a copy that preemption may change. Where no data are read there is nothing to change.
func (r *removals) Clone() framework.StateData {
	if len(r.cycle.datasets) == 0 {
		return r
	}
	return &removals{cycle: r.cycle, gone: append([]removal(nil), r.gone...)}
}

// removalsOf returns what PreFilter wrote for the cycle, or an error where it was not called.
func removalsOf(state *framework.CycleState) (*removals, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, err
	}
	return data.(*removals), nil
}

// PreFilter begins the cycle, if the filter has a say in it. Which datasets are known is decided here for the whole of
// it: a dataset does not become unknown, and so of no account, because preemption tries to take its last server away.
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

// PreFilterExtensions returns the plugin itself where pods are a part of the verdict.
func (pl *DataLocality) PreFilterExtensions() framework.PreFilterExtensions {
	if pl.within < 0 || len(pl.index.servers) == 0 {
		return nil
	}
	return pl
}

// RemovePod notes that a pod which serves data is taken for gone.
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

// AddPod takes a removal back. Other pods that are added are nominated: they do not run, so they serve nothing yet.
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

// Filter rejects a node that has not all data of the pod within the level that the args require. Data that no node
// holds do not count. Preemption can take data away and bring none, so the rejection is unresolvable.
func (pl *DataLocality) Filter(_ context.Context, state *framework.CycleState, _ *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if pl.within < 0 {
		return nil
	}
	r, err := removalsOf(state)
	if err != nil {
		return framework.NewStatus(framework.Error, Name+" filters only where it is enabled at preFilter, too")
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

// PrepareFilter returns what says of a node what Filter says, and nil for a pod that has no data which some node holds. A
// scheduler that can prepare filters (patch 0520) calls it in place of Filter, after PreFilter.
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
	// One for all nodes, which no one changes.
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

// passes says whether a node has all of the cycle's datasets within the level.
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

// without returns which of the datasets a node still has within the level, when some pods are gone.
func (pl *DataLocality) without(r *removals, n *node, have set) set {
	for i, held := range r.cycle.datasets {
		if bit := set(1) << uint(i); have&bit != 0 && r.takes(held) && !pl.stays(r, n, held) {
			have &^= bit
		}
	}
	return have
}

// takes says whether a pod is gone that serves a dataset.
func (r *removals) takes(held *dataset) bool {
	for i := range r.gone {
		if r.gone[i].held == held {
			return true
		}
	}
	return false
}

// stays says whether a dataset is still near to a node.
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
