// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// Constraints may have fields of later releases: minDomains, nodeAffinityPolicy and nodeTaintsPolicy. A constraint that
// has one is treated as Kubernetes 1.37 does, and one without as 1.23 does. The pods are counted without the index.

// laterSpread has the later fields of a constraint.
type laterSpread struct {
	laterfields.Spread
	// FewDomains is true if fewer domains count than minDomains.
	FewDomains bool
}

func (l *laterSpread) isSet() bool { return l.Spread != laterfields.Spread{} }

const honor, ignore = "Honor", "Ignore"

// addLater sets the later fields of the pod's own constraints with an action.
func addLater(constraints []topologySpreadConstraint, pod *v1.Pod, action v1.UnsatisfiableConstraintAction) {
	found := laterfields.Pods.Of(pod.UID)
	if found == nil {
		return
	}
	next := 0
	for i, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != action {
			continue
		}
		if i < len(found.Spread) {
			constraints[next].Later.Spread = found.Spread[i]
		}
		// An empty selector, which matches all pods, counts none in 1.37. Only a hard constraint counts the pod itself.
		if c := &constraints[next]; c.Later.isSet() && action == v1.ScheduleAnyway && c.Selector.Empty() {
			c.Selector = labels.Nothing()
		}
		next++
	}
}

func anyLater(constraints []topologySpreadConstraint) bool {
	for i := range constraints {
		if constraints[i].Later.isSet() {
			return true
		}
	}
	return false
}

// counts reports whether a node and its pods count for a constraint. Without policies, they do on nodes that match the
// pod's node selector and affinity; errors of parsing are ignored.
func (c *topologySpreadConstraint) counts(pod *v1.Pod, node *v1.Node, required nodeaffinity.RequiredNodeAffinity) bool {
	if c.Later.NodeAffinityPolicy != ignore {
		if match, _ := required.Match(node); !match {
			return false
		}
	}
	if c.Later.NodeTaintsPolicy != honor {
		return true
	}
	_, untolerated := v1helper.FindMatchingUntoleratedTaint(node.Spec.Taints, pod.Spec.Tolerations, func(t *v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
	})
	return !untolerated
}

// leavesOut reports whether the pods of a node do not count for a hard constraint with later fields, although others of
// its domain do. In 1.23, the pods of all nodes of a domain count.
func (c *topologySpreadConstraint) leavesOut(all []topologySpreadConstraint, pod *v1.Pod, node *v1.Node,
	required nodeaffinity.RequiredNodeAffinity) bool {
	return c.Later.isSet() && (c.Selector.Empty() || !nodeLabelsMatchSpreadConstraints(node.Labels, all) ||
		!c.counts(pod, node, required))
}

// updateLater does what updateWithPod does, for constraints of which one has later fields.
func (s *preFilterState) updateLater(updated, preemptor *v1.Pod, node *v1.Node, delta int32) {
	if !nodeLabelsMatchSpreadConstraints(node.Labels, s.Constraints) {
		return
	}
	required := nodeaffinity.GetRequiredNodeAffinity(preemptor)
	for i := range s.Constraints {
		c := &s.Constraints[i]
		if c.Selector.Matches(labels.Set(updated.Labels)) && c.counts(preemptor, node, required) {
			value := node.Labels[c.TopologyKey]
			count := s.TpPairToMatchNum[topologyPair{c.TopologyKey, value}]
			*count += delta
			s.TpKeyToCriticalPaths[c.TopologyKey].update(value, *count)
		}
	}
}

// findFewDomains compares the domains that count with minDomains, which is 1 by default. AddPod and RemovePod change the
// pods in them, and not their number.
func (s *preFilterState) findFewDomains() {
	for i := range s.Constraints {
		c, domains := &s.Constraints[i], int32(0)
		if !c.Later.isSet() {
			continue
		}
		for pair := range s.TpPairToMatchNum {
			if pair.key == c.TopologyKey {
				domains++
			}
		}
		c.Later.FewDomains = domains < c.Later.MinDomains || domains == 0
	}
}
