// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// laterFields stands for the name of a plugin in the status of a pod that is not placed because of a later field. No
// event of the cluster helps such a pod.
const laterFields = "LaterFields"

// gated is the reason for a pod with scheduling gates. It is not in the queue, but dry runs may ask for it.
const gated = "the pod has scheduling gates"

// refuse returns the status of a pod that is not placed because of a later field, or nil.
func refuse(pod *v1.Pod) *framework.Status {
	if pod == nil {
		return nil
	}
	found := laterfields.Pods.Of(pod.UID)
	switch {
	case found == nil:
		return nil
	case found.Refusal != "":
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, found.Refusal).WithFailedPlugin(laterFields)
	case len(found.Gates) > 0:
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, gated).WithFailedPlugin(laterFields)
	}
	return nil
}
