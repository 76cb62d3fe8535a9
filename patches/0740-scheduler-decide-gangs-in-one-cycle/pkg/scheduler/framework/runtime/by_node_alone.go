// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ByNodeAlone reports whether all filters of a cycle that has filtered no node yet only read the pod, the node, and pods
// that are nominated for it.
func (c *cycle) ByNodeAlone(state *framework.CycleState, pod *v1.Pod) bool {
	shared := c.framework.NodeState(state, pod)
	return shared != nil && shared.RejectionsHold()
}
