// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExtensionPointLoggerArgs are the arguments of the plugin ExtensionPointLogger.
type ExtensionPointLoggerArgs struct {
	metav1.TypeMeta `json:",inline"`

	// SampleRate is the fraction of pods that are logged, more than 0 and at most 1. Either all calls for a pod are
	// logged, or none. Default: 1.
	SampleRate *float64 `json:"sampleRate,omitempty"`
	// Namespaces are the namespaces whose pods are logged. Empty means all.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Redact replaces the names of pods, namespaces and nodes with keyed hashes, which stay the same until the process
	// exits. Default: false.
	Redact bool `json:"redact"`
	// QueueSort makes the plugin a queue sort plugin too, with the order of PrioritySort. PrioritySort must then be
	// disabled, because only one queue sort plugin is allowed, the same in all profiles. Default: false.
	QueueSort bool `json:"queueSort"`
}

// setDefaults sets the defaults: every pod is logged, with its name.
func (args *ExtensionPointLoggerArgs) setDefaults() {
	defaultFloat64(&args.SampleRate, 1)
}
