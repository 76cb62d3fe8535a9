// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// HasNoVictims reports whether a node has no pods of lower priority. It copies nothing.
func (pl *DefaultPreemption) HasNoVictims(pod *v1.Pod, nodeInfo *framework.NodeInfo) bool {
	priority := corev1helpers.PodPriority(pod)
	for _, podInfo := range nodeInfo.Pods {
		if corev1helpers.PodPriority(podInfo.Pod) < priority {
			return false
		}
	}
	return true
}

// NoVictims returns the status of such a node.
func (pl *DefaultPreemption) NoVictims(pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	message := fmt.Sprintf("No victims found on node %v for preemptor pod %v", nodeInfo.Node().Name, pod.Name)
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, message)
}
