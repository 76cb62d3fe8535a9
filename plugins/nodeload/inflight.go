// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A measurement is a mean over a window, so a pod that has just come is not in it, or only in part. What it lacks is in
// flight. Nothing is written down about that: it is read off the pods that the scheduler knows to be on a node, those
// that it has only assumed among them, and off when they started. So it is the same for every scheduler that bound a
// pod, and after a restart; and a binding that fails, a pod that is deleted and one that has ended need no attention.

const (
	// notStarted is the start of a pod that is to come.
	notStarted int64 = math.MaxInt64
	// settled is the start of a pod that needs no more attention.
	settled int64 = math.MinInt64
	// startingTime is how long pods are awaited that have been bound: large images take minutes.
	startingTime = 10 * time.Minute
)

// startOf returns when a pod began to use what it will use, in nanoseconds since 1970: when the last of its containers
// was started. A container that was started again within a window, in nanoseconds, had its share in the measurements
// before, so its first start counts, or if that is not known, that of the pod; but after a pause of a whole window
// nothing of it is left in them, such as when its node was started again. A pod that has ended uses nothing, and is
// settled; and so is, at the time now, one that was bound more than startingTime ago and has not begun: its image may
// not exist, and if it begins after all, it is from then on that it counts. The shorter the window, the later the start.
func startOf(pod *v1.Pod, window, now int64) int64 {
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
		if container.State.Running == nil || container.State.Running.StartedAt.IsZero() {
			continue
		}
		started := container.State.Running.StartedAt
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
	// What made the pod running without saying when a container started, or has started all of them again and again.
	// Before it was initialized it used little.
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

// lacking returns the share of a pod, 0 to 1, that a mean over the window up to the time at does not have: it enters
// evenly from the pod's start on. All times are in nanoseconds.
func lacking(start, at, window int64) float64 {
	if start >= at {
		return 1
	}
	if start == settled || start <= at-window {
		return 0
	}
	return 1 - float64(at-start)/float64(window)
}
