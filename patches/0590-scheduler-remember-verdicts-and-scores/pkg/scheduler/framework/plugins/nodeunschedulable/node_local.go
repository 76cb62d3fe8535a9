// SPDX-License-Identifier: Apache-2.0

package nodeunschedulable

import (
	v1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ framework.NodeLocalPlugin = &NodeUnschedulable{}

// NodeLocalKey appends whether the pod tolerates nodes that are unschedulable.
func (pl *NodeUnschedulable) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	if v1helper.TolerationsTolerateTaint(pod.Spec.Tolerations, &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}) {
		key = append(key, 1)
	}
	return key, true
}
