// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

const (
	// duringAttempt is the event of a pod that is retried because the cluster changed during its attempt.
	duringAttempt = "AnEventDuringTheAttempt"
	// podUpdate is the event of a pod that is retried because the pod itself changed.
	podUpdate = "PodUpdate"
)

// Visit calls visit for each pod in the queue, with the end of its backoff. visit must not retain its arguments.
func (p *PriorityQueue) Visit(visit func(where records.Where, info *framework.QueuedPodInfo, until time.Time)) {
	p.lock.RLock()
	defer p.lock.RUnlock()
	for _, item := range p.activeQ.List() {
		visit(records.InActive, item.(*framework.QueuedPodInfo), time.Time{})
	}
	for _, item := range p.podBackoffQ.List() {
		info := item.(*framework.QueuedPodInfo)
		visit(records.InBackoff, info, p.getBackoffTime(info))
	}
	for _, info := range p.unschedulableQ.podInfoMap {
		visit(records.InUnschedulable, info, time.Time{})
	}
}

// Lengths returns the number of pods in each part of the queue.
func (p *PriorityQueue) Lengths() records.QueueLengths {
	p.lock.RLock()
	defer p.lock.RUnlock()
	return records.QueueLengths{
		Active: p.activeQ.Len(), Backoff: p.podBackoffQ.Len(), Unschedulable: len(p.unschedulableQ.podInfoMap),
	}
}
