// SPDX-License-Identifier: Apache-2.0

package queue

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internal/heap"
)

// Take removes pods from all parts of the queue for an attempt that decides them together with first, which was popped;
// first may be nil. All of them get the same numbers of attempts. While one of them backs off after such an attempt, it
// removes none and returns false, and first backs off with it.
func (p *PriorityQueue) Take(first *framework.QueuedPodInfo, pods []*v1.Pod) ([]*framework.QueuedPodInfo, bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	attempts, late := 0, 0
	if first != nil {
		attempts, late = first.Attempts, first.Late
	}
	var taken []*framework.QueuedPodInfo
	for _, pod := range pods {
		info, active := p.find(pod)
		if info == nil {
			continue
		}
		if !active && info.Together && p.isPodBackingoff(info) {
			if first != nil {
				first.Together, first.Attempts, first.Timestamp = true, info.Attempts, info.Timestamp
				first.UnschedulablePlugins = info.UnschedulablePlugins
				p.podBackoffQ.Add(first)
			}
			return nil, false
		}
		if info.Attempts >= attempts {
			attempts = info.Attempts + 1
		}
		if info.Late > late {
			late = info.Late
		}
		taken = append(taken, info)
	}
	for _, info := range taken {
		info.Attempts, info.Late = attempts, late
		p.activeQ.Delete(info)
		p.podBackoffQ.Delete(info)
		p.unschedulableQ.delete(info.Pod)
	}
	if first != nil {
		first.Attempts, first.Late = attempts, late
	}
	p.schedulingCycle++
	return taken, true
}

// find returns a pod of the queue, and whether it is active.
func (p *PriorityQueue) find(pod *v1.Pod) (info *framework.QueuedPodInfo, active bool) {
	for _, part := range []*heap.Heap{p.activeQ, p.podBackoffQ} {
		if found, exists, _ := part.Get(newQueuedPodInfoForLookup(pod)); exists {
			return found.(*framework.QueuedPodInfo), part == p.activeQ
		}
	}
	return p.unschedulableQ.get(pod), false
}

// NominatedNode returns the node for which a pod is nominated, or "".
func (p *PriorityQueue) NominatedNode(pod *v1.Pod) string {
	npm, ok := p.PodNominator.(*nominator)
	if !ok {
		return pod.Status.NominatedNodeName
	}
	npm.RLock()
	defer npm.RUnlock()
	return npm.nominatedPodToNode[pod.UID]
}
