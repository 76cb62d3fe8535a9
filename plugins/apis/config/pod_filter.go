// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FilterAction is the action of a rule on a match.
type FilterAction string

const (
	// FilterAllow passes a match.
	FilterAllow FilterAction = "Allow"
	// FilterDeny rejects a match.
	FilterDeny FilterAction = "Deny"
	// FilterPrefer gives matching nodes a better score. Only NodeFilter supports it.
	FilterPrefer FilterAction = "Prefer"
	// FilterShare limits the percentage of pods that are on matching nodes. Only NodeFilter supports it.
	FilterShare FilterAction = "Share"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodFilterArgs are the arguments of the plugin PodFilter.
type PodFilterArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Rules are 1 to 100 rules, evaluated in order. The first rule that matches a pod decides.
	// +listType=map
	// +listMapKey=name
	Rules []PodFilterRule `json:"rules,omitempty"`
	// DefaultAction applies to pods that match no rule. Default: Allow.
	DefaultAction FilterAction `json:"defaultAction,omitempty"`
}

// PodFilterRule matches pods that meet all of its conditions. At least one is required.
type PodFilterRule struct {
	// Name appears in the events of pods that the rule rejects. It is a DNS label, unique among the rules.
	Name string `json:"name"`
	// Action applies to matching pods.
	Action FilterAction `json:"action"`
	// PodNames are patterns of path.Match, one of which must match the pod's name: * matches any text, ? matches any
	// character, and [a-f] or [^a-f] matches one character that is in the range or not. Empty matches any name.
	// +listType=atomic
	PodNames []string `json:"podNames,omitempty"`
	// Namespaces are patterns of the same form for the pod's namespace. Empty matches any namespace.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// PodSelector must match the pod's labels.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// setDefaults sets the defaults: pods without a matching rule are allowed.
func (args *PodFilterArgs) setDefaults() {
	if args.DefaultAction == "" {
		args.DefaultAction = FilterAllow
	}
}
