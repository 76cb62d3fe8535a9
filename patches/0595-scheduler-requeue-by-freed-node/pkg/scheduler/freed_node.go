// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// WithRequeueByFreedNode makes the end of a pod requeue only those pods that its node may take, of those that the nodes
// alone rejected.
func WithRequeueByFreedNode(enabled bool) Option {
	return func(o *schedulerOptions) {
		o.requeueByFreedNode = enabled
	}
}

// nodeFilter returns what judges freed nodes for a pod that no node fits, after preemption; nil if each end of a pod may
// help it.
func (sched *Scheduler) nodeFilter(state *framework.CycleState) *framework.NodeFilter {
	cycle, ok := state.Prepared().(interface {
		NodeFilter(*framework.Search) *framework.NodeFilter
	})
	if !sched.requeueByFreedNode || !ok {
		return nil
	}
	return cycle.NodeFilter(state.Search())
}

// freedNode returns the node of a pod that the cache has removed; nil if it is not known.
func (sched *Scheduler) freedNode(ended *v1.Pod) *framework.FreedNode {
	cache, ok := sched.SchedulerCache.(interface {
		ConfirmedPods(name string) (*v1.Node, []*framework.PodInfo)
	})
	if !sched.requeueByFreedNode || !ok {
		return nil
	}
	if node, pods := cache.ConfirmedPods(ended.Spec.NodeName); node != nil {
		return framework.NewFreedNode(node, pods)
	}
	return nil
}
