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
	for _, info := range p.unschedulableQ.podInfoMap {
		// A pod that is added helps InterPodAffinity only with such a term, and PodTopologySpread only in its namespace.
		plugins := info.UnschedulablePlugins.Difference(sets.NewString(names.InterPodAffinity))
		if info.Pod.Namespace != pod.Namespace {
			plugins.Delete(names.PodTopologySpread)
		}
		rejected := &framework.QueuedPodInfo{PodInfo: info.PodInfo, UnschedulablePlugins: plugins}
		if !matches[info] && p.podMatchesEvent(rejected, event) {
			matching = append(matching, info)
		}
	}
	return matching
}

// fitsElsewhere reports whether another label of a node may help a pod on other nodes, whether or not the pod fits on
// that node: it may remove the node from a topology domain.
func (p *PriorityQueue) fitsElsewhere(info *framework.QueuedPodInfo, event framework.ClusterEvent) bool {
	return p.LaterRequeueing && event.Resource == framework.Node && event.ActionType&framework.UpdateNodeLabel != 0 &&
		info.UnschedulablePlugins.HasAny(names.PodTopologySpread, names.InterPodAffinity)
}
