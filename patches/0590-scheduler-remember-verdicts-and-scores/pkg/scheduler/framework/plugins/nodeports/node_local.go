// SPDX-License-Identifier: Apache-2.0

package nodeports

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ framework.NodeLocalPlugin = &NodePorts{}

// NodeLocalKey appends the host ports of the pod's containers.
func (pl *NodePorts) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	for i := range pod.Spec.Containers {
		ports := pod.Spec.Containers[i].Ports
		for j := range ports {
			if port := &ports[j]; port.HostPort > 0 {
				key = framework.AppendNumber(key, int64(port.HostPort))
				key = framework.AppendText(framework.AppendText(key, string(port.Protocol)), port.HostIP)
			}
		}
	}
	return key, true
}
