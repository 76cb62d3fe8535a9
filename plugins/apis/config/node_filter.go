// SPDX-License-Identifier: Apache-2.0

package config

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeFilterArgs are the arguments of the plugin NodeFilter.
type NodeFilterArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Rules are 1 to 100 rules, evaluated in order. The first Allow or Deny that matches a pod and a node decides,
	// unless an earlier Share rejects the node.
	// +listType=map
	// +listMapKey=name
	Rules []NodeFilterRule `json:"rules,omitempty"`
	// DefaultAction, Allow or Deny, applies to nodes that match no Allow or Deny. Default: Allow.
	DefaultAction FilterAction `json:"defaultAction,omitempty"`
}

// NodeFilterRule matches nodes that meet all of its conditions, for all pods or for some. At least one condition on the
// node is required.
type NodeFilterRule struct {
	// Name appears in the events of pods that fit no node. It is a DNS label, unique among the rules.
	Name string `json:"name"`
	// Action applies to matching nodes: Allow passes them, Deny rejects them, Prefer gives them a better score, and
	// Share limits how many of the pods that the rule applies to are on such nodes.
	Action FilterAction `json:"action"`
	// NodeNames are patterns of path.Match, one of which must match the node's name: * matches any text, ? matches any
	// character, and [a-f] or [^a-f] matches one character that is in the range or not. Empty matches any name.
	// +listType=atomic
	NodeNames []string `json:"nodeNames,omitempty"`
	// NodeSelector must match the node's labels.
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
	// Namespaces are patterns for the namespaces of the pods that the rule applies to. Empty matches all namespaces.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// PodSelector must match the labels of the pods that the rule applies to.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// Weight is the weight of a Prefer relative to the others that apply to a pod, 1 to 100. Prefer requires it, and
	// other actions do not allow it.
	Weight int32 `json:"weight,omitempty"`
	// MinPercent and MaxPercent limit the percentage of pods on matching nodes, 0 to 100, among the pods that the rule
	// applies to and that have the same controlling owner, or none. Share requires at least one of them, and other
	// actions do not allow them.
	MinPercent *int32 `json:"minPercent,omitempty"`
	MaxPercent *int32 `json:"maxPercent,omitempty"`
	// WhenUnsatisfiable is the effect of a Share on nodes where one more pod would violate its limits: DoNotSchedule
	// rejects them while a node that would not is open, ScheduleAnyway gives them a lower score. Other actions do not
	// allow it. Empty is ScheduleAnyway.
	WhenUnsatisfiable v1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
	// RestrictedLabels requires that the rule selects nodes only by labels that no kubelet can set: all keys of its
	// NodeSelector begin with node-restriction.kubernetes.io/, and it has no NodeNames. An Allow must use the operator
	// In or Exists for them. Default: false.
	RestrictedLabels bool `json:"restrictedLabels,omitempty"`
}

// setDefaults sets the defaults: nodes without a matching rule are allowed.
func (args *NodeFilterArgs) setDefaults() {
	if args.DefaultAction == "" {
		args.DefaultAction = FilterAllow
	}
}
