// SPDX-License-Identifier: Apache-2.0

package queue

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// NodeDelete is the event of a node that was deleted.
var NodeDelete = framework.ClusterEvent{Resource: framework.Node, ActionType: framework.Delete, Label: "NodeDelete"}

// afterError is the event of a pod that is retried because its attempt ended with an error, or with a preemption.
const afterError = "TheErrorOfTheAttempt"

// failed reports whether a pod is retried after its backoff, because no event may follow the end of its attempt.
func (p *PriorityQueue) failed(info *framework.QueuedPodInfo) bool {
	failed := p.LaterRequeueing && info.Failed
	if info.Failed = false; failed {
		info.WokenBy = afterError
	}
	return failed
}

// podsToMoveFor returns the pods that an added pod may help: those with an affinity term that matches it, and with
// LaterRequeueing also those that plugins rejected which count other pods.
func (p *PriorityQueue) podsToMoveFor(pod *v1.Pod, event framework.ClusterEvent) []*framework.QueuedPodInfo {
	matching := p.getUnschedulablePodsWithMatchingAffinityTerm(pod)
	if !p.LaterRequeueing {
		return matching
	}
	matches := make(map[*framework.QueuedPodInfo]bool, len(matching))
	for _, info := range matching {
		matches[info] = true
	}
	helped := p.helpedBy(event)
	for _, info := range p.unschedulableQ.podInfoMap {
		if matches[info] {
			continue
		}
		for plugin := range info.UnschedulablePlugins {
			// PodTopologySpread only counts pods of the same namespace.
			if helped.Has(plugin) && (plugin != names.PodTopologySpread || info.Pod.Namespace == pod.Namespace) {
				matching = append(matching, info)
				break
			}
		}
	}
	return matching
}

// helpedBy returns what may no longer reject a pod after the event of an added one. InterPodAffinity is left out: a
// pod that is added helps it only with a matching term.
func (p *PriorityQueue) helpedBy(added framework.ClusterEvent) sets.String {
	helped := sets.NewString(framework.ExtenderName)
	for event, plugins := range p.clusterEventMap {
		if event.IsWildCard() || event.Resource == added.Resource && event.ActionType&added.ActionType != 0 {
			helped = helped.Union(plugins)
		}
	}
	return helped.Delete(names.InterPodAffinity)
}

// MoveRejectedBy moves pods that an event may help and that one of the plugins rejected.
func (p *PriorityQueue) MoveRejectedBy(event framework.ClusterEvent, plugins ...string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	var rejected []*framework.QueuedPodInfo
	for _, info := range p.unschedulableQ.podInfoMap {
		if info.UnschedulablePlugins.HasAny(plugins...) {
			rejected = append(rejected, info)
		}
	}
	p.movePodsToActiveOrBackoffQueue(rejected, event)
}

// fitsElsewhere reports whether another label of a node may help a pod on other nodes, whether or not the pod fits on
// that node: it may remove the node from a topology domain.
func (p *PriorityQueue) fitsElsewhere(info *framework.QueuedPodInfo, event framework.ClusterEvent) bool {
	return p.LaterRequeueing && event.Resource == framework.Node && event.ActionType&framework.UpdateNodeLabel != 0 &&
		info.UnschedulablePlugins.HasAny(names.PodTopologySpread, names.InterPodAffinity)
}
