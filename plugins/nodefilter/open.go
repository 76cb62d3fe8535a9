// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// findClosed finds, for each Share that may reject nodes, whether any node of the rule, and any other node, is open to
// the pod. Mostly it has seen one of each after a few nodes.
func (pl *NodeFilter) findClosed(c *cycle) {
	for _, rule := range c.about.rules {
		if rule.share == nil {
			continue
		}
		now := &c.standings[rule.share.place]
		now.closedInside, now.closedOutside = true, true
		for node, on := range pl.population.nodes {
			closed := &now.closedOutside
			if on.has(rule) {
				closed = &now.closedInside
			}
			if *closed && isOpen(node, c.about.pod) && !pl.denies(c.about, on) {
				*closed = false
			}
			if !now.closedInside && !now.closedOutside {
				break
			}
		}
	}
}

// denies reports whether an Allow or Deny rejects a node.
func (pl *NodeFilter) denies(about *podRules, on matches) bool {
	for _, rule := range about.rules {
		if rule.share == nil && on.has(rule) {
			return rule.verdict.Denies()
		}
	}
	return pl.rules.otherwise.Denies()
}

// isOpen reports whether a node accepts such a pod if it has room: whether it is not cordoned, being deleted or known
// not to be ready, and the pod tolerates its taints. The pod's own selectors do not matter, because they must not
// override a share.
func isOpen(node *v1.Node, pod *v1.Pod) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil {
		return false
	}
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == v1.NodeReady && condition.Status != v1.ConditionTrue {
			return false
		}
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(node.Spec.Taints, pod.Spec.Tolerations, func(taint *v1.Taint) bool {
		return taint.Effect == v1.TaintEffectNoSchedule || taint.Effect == v1.TaintEffectNoExecute
	})
	return !untolerated
}
