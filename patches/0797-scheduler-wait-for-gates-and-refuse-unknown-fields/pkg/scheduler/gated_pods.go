// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// gated reports whether a pod has scheduling gates, and takes it out of the queue. The update that removes the last gate
// adds it: the queue adds each updated pod that it does not have.
func (sched *Scheduler) gated(pod *v1.Pod) bool {
	if found := laterfields.Pods.Of(pod.UID); found == nil || len(found.Gates) == 0 {
		return false
	}
	// It may be there if its gates were not known: they are found when the API server becomes newer.
	sched.SchedulingQueue.Delete(pod)
	return true
}
