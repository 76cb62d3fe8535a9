// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A measurement is a mean over a window, so a new pod is missing from it, at least in part. The missing part is in
// flight. It is not recorded: it is computed from the pods that the scheduler knows on a node, including assumed ones,
// and from their start times. So it does not depend on which scheduler bound a pod, and survives a restart; failed
// bindings, deleted pods and ended pods need no special case.

const (
	// notStarted is the start time of a pod that has not started.
	notStarted int64 = math.MaxInt64
	// Running is the end of a pod that has not ended.
	Running int64 = math.MaxInt64
	// settled is the start time of a pod that is no longer in flight.
	settled int64 = math.MinInt64
	// startingTime is how long a bound pod may take to start: large images take minutes.
	startingTime = 10 * time.Minute
)

// StartOf returns when a pod reached its full use, in nanoseconds since 1970: the start of its last container.
//
// A container that restarted within a window, in nanoseconds, was already in the measurements, so its first start
// counts, or if that is unknown, the pod's. After a pause of at least a window, for example after a restart of its
// node, the measurements no longer contain it, and the new start counts. A pod that has ended uses nothing, and is
// settled. So is a pod that was bound more than startingTime before now and has not started: its image may not exist.
// If it starts after all, that start counts. The shorter the window, the later the start.
func StartOf(pod *v1.Pod, window, now int64) int64 {
	status := &pod.Status
	switch status.Phase {
	case "", v1.PodPending:
		for i := range status.Conditions {
			condition := &status.Conditions[i]
			if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue &&
				!condition.LastTransitionTime.IsZero() && condition.LastTransitionTime.UnixNano() < now-int64(startingTime) {
				return settled
			}
		}
		return notStarted
	case v1.PodSucceeded, v1.PodFailed:
		return settled
	}
	start := settled
	for i := range status.ContainerStatuses {
		container := &status.ContainerStatuses[i]
		var started metav1.Time
		if state := &container.State; state.Running != nil {
			started = state.Running.StartedAt
		} else if state.Terminated != nil { // such as that of a pod that is being deleted
			started = state.Terminated.StartedAt
		}
		if started.IsZero() {
			continue
		}
		if ended := container.LastTerminationState.Terminated; container.RestartCount > 0 && ended != nil &&
			int64(started.Sub(ended.FinishedAt.Time)) <= window {
			if container.RestartCount > 1 || ended.StartedAt.IsZero() {
				continue
			}
			started = ended.StartedAt
		}
		if started := started.UnixNano(); started > start {
			start = started
		}
	}
	if start != settled {
		return start
	}
	// No container has a start time, or all of them restarted several times. Before the pod was initialized it used
	// little.
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type == v1.PodInitialized && condition.Status == v1.ConditionTrue && !condition.LastTransitionTime.IsZero() {
			return condition.LastTransitionTime.UnixNano()
		}
	}
	if status.StartTime != nil && !status.StartTime.IsZero() {
		return status.StartTime.UnixNano()
	}
	if !pod.CreationTimestamp.IsZero() {
		return pod.CreationTimestamp.UnixNano()
	}
	return settled
}

// waits reports whether a container waits, for example because it crashes. Then a pod that has started uses less than is
// estimated.
func waits(pod *v1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Waiting != nil {
			return true
		}
	}
	return false
}

// Lacking returns the share of a pod that is missing in a mean over the window that ends at the time at: the pod's part
// grows evenly from its start on, to 1 after a window. All that is left of a pod that has ended is too much: the share
// is negative. All times are in nanoseconds.
func Lacking(start, end, at, window int64) float64 {
	lacks := 0.0
	if start < at-window {
		start = at - window
	}
	if end == Running {
		lacks, end = 1, at
	} else if end > at {
		end = at
	}
	if start < end {
		lacks -= float64(end-start) / float64(window)
	}
	return lacks
}
