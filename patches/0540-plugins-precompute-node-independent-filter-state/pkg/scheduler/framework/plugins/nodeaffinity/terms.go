// SPDX-License-Identifier: Apache-2.0

package nodeaffinity

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Terms are node selector terms; a node must match at least one. They are parsed once for many nodes, and allocate
// nothing for each node. Results equal those of component-helpers' nodeaffinity.
type Terms []term

type term struct {
	labels labels.Selector // nil if there are no requirements
	fields []field
}

// field is a requirement on a node's field.
type field struct {
	key, value string
	in         bool
}

var operators = map[v1.NodeSelectorOperator]selection.Operator{
	v1.NodeSelectorOpIn:           selection.In,
	v1.NodeSelectorOpNotIn:        selection.NotIn,
	v1.NodeSelectorOpExists:       selection.Exists,
	v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	v1.NodeSelectorOpGt:           selection.GreaterThan,
	v1.NodeSelectorOpLt:           selection.LessThan,
}

// NewTerms returns false if a term is invalid, which API validation rules out.
func NewTerms(from []v1.NodeSelectorTerm) (Terms, bool) {
	terms := make(Terms, 0, len(from))
	for i := range from {
		if len(from[i].MatchExpressions) == 0 && len(from[i].MatchFields) == 0 {
			// No node matches it.
			continue
		}
		t, ok := newTerm(&from[i])
		if !ok {
			return nil, false
		}
		terms = append(terms, t)
	}
	return terms, true
}

func newTerm(from *v1.NodeSelectorTerm) (term, bool) {
	var t term
	if len(from.MatchExpressions) > 0 {
		t.labels = labels.NewSelector()
	}
	for _, expression := range from.MatchExpressions {
		operator, ok := operators[expression.Operator]
		if !ok {
			return t, false
		}
		requirement, err := labels.NewRequirement(expression.Key, operator, expression.Values)
		if err != nil {
			return t, false
		}
		t.labels = t.labels.Add(*requirement)
	}
	for _, requirement := range from.MatchFields {
		in := requirement.Operator == v1.NodeSelectorOpIn
		if !in && requirement.Operator != v1.NodeSelectorOpNotIn || len(requirement.Values) != 1 {
			return t, false
		}
		t.fields = append(t.fields, field{requirement.Key, requirement.Values[0], in})
	}
	return t, true
}

// Match reports whether a node matches at least one of the terms.
func (ts Terms) Match(node *v1.Node) bool {
	return ts.match(node.Name, node.Labels)
}

// MatchLabels reports whether a node with these labels matches at least one of the terms. Requirements on its name
// are taken as met.
func (ts Terms) MatchLabels(nodeLabels map[string]string) bool {
	return ts.match("", nodeLabels)
}

func (ts Terms) match(name string, nodeLabels map[string]string) bool {
	for i := range ts {
		if ts[i].match(name, nodeLabels) {
			return true
		}
	}
	return false
}

func (t *term) match(name string, nodeLabels map[string]string) bool {
	if t.labels != nil && !t.labels.Matches(labels.Set(nodeLabels)) {
		return false
	}
	if name == "" {
		return true
	}
	for _, f := range t.fields {
		value := ""
		if f.key == metav1.ObjectNameField {
			value = name
		}
		if (value == f.value) != f.in {
			return false
		}
	}
	return true
}

// requiredMatcher returns a function that reports whether a node matches the pod's node selector and required
// affinity. It returns false if a term is invalid.
func requiredMatcher(pod *v1.Pod) (func(*v1.Node) bool, bool) {
	var selector labels.Selector
	if len(pod.Spec.NodeSelector) > 0 {
		selector = labels.SelectorFromSet(pod.Spec.NodeSelector)
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return func(node *v1.Node) bool { return selector == nil || selector.Matches(labels.Set(node.Labels)) }, true
	}
	terms, ok := NewTerms(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	return func(node *v1.Node) bool {
		return (selector == nil || selector.Matches(labels.Set(node.Labels))) && terms.Match(node)
	}, ok
}
