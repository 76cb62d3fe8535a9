// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// NodeFilter returns what judges nodes for the cycle's pod after an attempt that found no node. It is nil unless local
// filters alone rejected each node, also without the pods of lower priority that preemption could have removed: then
// nothing but a change of a node can make it take the pod.
func (c *cycle) NodeFilter(search *framework.Search) *framework.NodeFilter {
	policy := c.pod.Spec.PreemptionPolicy
	preempts := policy == nil || *policy != v1.PreemptNever
	// Without a nominated pod, a node that was evaluated with it might have been a candidate.
	if search == nil || preempts && !search.NoCandidates || len(c.withNominated) > 0 {
		return nil
	}
	for _, pl := range c.framework.postFilterPlugins {
		if !isDefaultPreemption(pl) {
			return nil
		}
	}
	m, kind := &c.framework.memory, c.kind()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.kinds[kind]
	if known == nil {
		return nil
	}
	if known.filter == nil {
		filter, err := c.framework.localFilter(kind)
		if err != nil {
			return nil
		}
		known.filter = &framework.NodeFilter{Priority: corev1helpers.PodPriority(c.pod), Fits: func(node *framework.NodeInfo) bool {
			return filter(node).IsSuccess()
		}}
	}
	return known.filter
}
