// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
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
	if !sched.laterRequeueing {
		return
	}
	sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.NodeDelete, nil)
	// InterPodAffinity only registers that a node leaves its domains with another label.
	leaves := framework.ClusterEvent{Resource: framework.Node, ActionType: framework.UpdateNodeLabel, Label: internalqueue.NodeDelete.Label}
	sched.moveRejectedBy(leaves, names.InterPodAffinity)
}

// moveRejectedBy moves pods that an event may help and that one of the plugins rejected.
func (sched *Scheduler) moveRejectedBy(event framework.ClusterEvent, plugins ...string) {
	if q, ok := sched.SchedulingQueue.(*internalqueue.PriorityQueue); ok {
		q.MoveRejectedBy(event, plugins...)
	}
}

// requeueAfterPodUpdate moves pods that fit now that plugins count a bound pod differently: by other labels, or not at
// all because it ends. Only PodTopologySpread does not count a pod that ends, and nobody knows what an extender counts.
func (sched *Scheduler) requeueAfterPodUpdate(oldPod, newPod *v1.Pod) {
	switch {
	case !sched.laterRequeueing:
	case !reflect.DeepEqual(oldPod.Labels, newPod.Labels):
		sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.AssignedPodUpdate, nil)
	case oldPod.DeletionTimestamp == nil && newPod.DeletionTimestamp != nil:
		sched.moveRejectedBy(internalqueue.AssignedPodUpdate, names.PodTopologySpread, framework.ExtenderName)
	}
}

// nominatedNode returns the node for which a pod of the queue is nominated, or "".
func (sched *Scheduler) nominatedNode(pod *v1.Pod) string {
	if q, ok := sched.SchedulingQueue.(*internalqueue.PriorityQueue); ok && sched.laterRequeueing {
		return q.NominatedNode(pod)
	}
	return ""
}

// requeueAfterNomination moves the pods for which another pod, of at least their priority, no longer keeps room on a
// node; there is none if the name is empty.
func (sched *Scheduler) requeueAfterNomination(nominated *v1.Pod, node string) {
	if !sched.laterRequeueing || node == "" {
		return
	}
	priority := corev1helpers.PodPriority(nominated)
	sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(internalqueue.AssignedPodDelete, func(pod *v1.Pod) bool {
		return pod.UID != nominated.UID && corev1helpers.PodPriority(pod) <= priority
	})
}
