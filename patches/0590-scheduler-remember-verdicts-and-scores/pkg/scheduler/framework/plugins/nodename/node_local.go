// SPDX-License-Identifier: Apache-2.0

package nodename

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ framework.NodeLocalPlugin = &NodeName{}

// NodeLocalKey appends the name of the node.
func (pl *NodeName) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	return append(key, pod.Spec.NodeName...), true
}
