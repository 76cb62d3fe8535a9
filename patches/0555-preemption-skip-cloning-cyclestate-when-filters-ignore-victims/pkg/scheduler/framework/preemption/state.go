// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nodeStater is a Handle that can avoid cloning the CycleState.
type nodeStater interface {
	NodeState(state *framework.CycleState, pod *v1.Pod) *framework.CycleState
}

// stateCloner returns a function that returns the state for each node: a clone, or a shared state if no plugin would
// see the difference.
func (ev *Evaluator) stateCloner(pod *v1.Pod) func() *framework.CycleState {
	if ev.search != nil {
		if handle, ok := ev.Handler.(nodeStater); ok {
			if state := handle.NodeState(ev.State, pod); state != nil {
				return func() *framework.CycleState { return state }
			}
		}
	}
	return ev.State.Clone
}
