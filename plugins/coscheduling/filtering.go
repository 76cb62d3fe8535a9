// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// PreFilter rejects a pod of a gang if the scheduler does not know gangs.
func (pl *Coscheduling) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	if labelled(pod) && gangs.Of(state) == nil {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, unpatched)
	}
	return nil
}

// PreFilterExtensions returns nil: the pods of a node do not matter to Filter.
func (pl *Coscheduling) PreFilterExtensions() framework.PreFilterExtensions {
	return nil
}

// Filter rejects the nodes outside the domain of the gang.
func (pl *Coscheduling) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if cycle := domainOf(state, pod); cycle != nil && !cycle.Domain.Has(nodeInfo.Node()) {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, gangs.Outside)
	}
	return nil
}

// PrepareFilter implements services.PreparedFilter.
func (pl *Coscheduling) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	cycle := domainOf(state, pod)
	if cycle == nil {
		return nil
	}
	// All nodes share this status, which is never changed.
	rejected := framework.NewStatus(framework.UnschedulableAndUnresolvable, gangs.Outside)
	rejected.SetFailedPlugin(Name)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		if cycle.Domain.Has(nodeInfo.Node()) {
			return nil
		}
		return rejected
	}
}

// domainOf returns the cycle of a pod whose gang may not use all nodes, or nil.
func domainOf(state *framework.CycleState, pod *v1.Pod) *gangs.Cycle {
	if !labelled(pod) {
		return nil
	}
	if cycle := gangs.Of(state); cycle != nil && cycle.Domain.Key != "" {
		return cycle
	}
	return nil
}
