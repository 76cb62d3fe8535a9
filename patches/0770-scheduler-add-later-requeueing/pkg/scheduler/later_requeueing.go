// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
)

func (sched *Scheduler) requeueAsLaterReleases() {
	sched.laterRequeueing = true
	if q, ok := sched.SchedulingQueue.(*internalqueue.PriorityQueue); ok {
		q.LaterRequeueing = true
	}
	if g, ok := sched.Algorithm.(*genericScheduler); ok {
		g.laterRequeueing = true
	}
	move := func(event framework.ClusterEvent) { sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(event, nil) }
	sched.Plugins.Each(func(_ string, plugin framework.Plugin) {
		if caching, ok := plugin.(interface {
			MoveAfterCaches(func(framework.ClusterEvent))
		}); ok {
			caching.MoveAfterCaches(move)
		}
	})
}

// nodeChange returns the event of a changed node, or nil if no pod may become schedulable. With later requeueing it is an
// event for each of the changes, and that of an added node: a pod that did not fit on the node when it was added, and so
// was not retried, may wait for plugins that only register that event.
func (sched *Scheduler) nodeChange(newNode, oldNode *v1.Node) *framework.ClusterEvent {
	event := nodeSchedulingPropertiesChange(newNode, oldNode)
	if event == nil || !sched.laterRequeueing {
		return event
	}
	all := *event
	all.ActionType |= framework.Add
	for action, changed := range map[framework.ActionType]bool{
		framework.UpdateNodeAllocatable: nodeAllocatableChanged(newNode, oldNode),
		framework.UpdateNodeLabel:       nodeLabelsChanged(newNode, oldNode),
		framework.UpdateNodeTaint:       nodeTaintsChanged(newNode, oldNode),
		framework.UpdateNodeCondition:   nodeConditionsChanged(newNode, oldNode),
	} {
		if changed {
			all.ActionType |= action
		}
	}
	return &all
}

// requeueAfterNodeDeletion moves pods that fit now that topology domains have fewer nodes.
func (sched *Scheduler) requeueAfterNodeDeletion() {
	if sched.laterRequeueing {
		sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.NodeDelete, nil)
	}
}

// requeueAfterPodUpdate moves pods that fit now that plugins count a bound pod differently: by other labels, or not at
// all because it ends.
func (sched *Scheduler) requeueAfterPodUpdate(oldPod, newPod *v1.Pod) {
	ends := oldPod.DeletionTimestamp == nil && newPod.DeletionTimestamp != nil
	if sched.laterRequeueing && (ends || !reflect.DeepEqual(oldPod.Labels, newPod.Labels)) {
		sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.AssignedPodUpdate, nil)
	}
}

// nominatedNode returns the node for which a pod of the queue is nominated, or "".
func (sched *Scheduler) nominatedNode(pod *v1.Pod) string {
	if q, ok := sched.SchedulingQueue.(*internalqueue.PriorityQueue); ok && sched.laterRequeueing {
		return q.NominatedNode(pod)
	}
	return ""
}

// requeueAfterNomination moves the pods for which another one, of at least their priority, no longer keeps room on a
// node; there is none if the name is empty.
func (sched *Scheduler) requeueAfterNomination(nominated *v1.Pod, node string) {
	if !sched.laterRequeueing || node == "" {
		return
	}
	priority := corev1helpers.PodPriority(nominated)
	sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.AssignedPodDelete, func(pod *v1.Pod) bool {
		return corev1helpers.PodPriority(pod) <= priority
	})
}
