// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChaosArgs are the arguments of the plugin Chaos.
type ChaosArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Namespaces are the names of the namespaces whose pods are disturbed: at least one, and never kube-system.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Seed determines all random choices: with the same seed, a pod gets the same ones at the same attempt. Default: 0.
	Seed int64 `json:"seed"`
	// RejectPercent is the probability that a node is rejected, in percent, 0 to 100. An attempt with a rejection
	// preempts no pod. Default: 0.
	RejectPercent int32 `json:"rejectPercent"`
	// MaxConsecutiveRejections is the number of consecutive attempts of a pod, 1 to 100, that may fail after Chaos
	// rejected nodes. Chaos does not disturb the next attempt. Attempts in between that fail without Chaos do not reset
	// the count. Default: 3.
	MaxConsecutiveRejections *int32 `json:"maxConsecutiveRejections,omitempty"`
	// RandomScore gives each node a random score from 0 to 100. Without it, all nodes score 0. Default: false.
	RandomScore bool `json:"randomScore"`
	// RandomBindPercent is the probability that a pod is bound to a random feasible node instead of the best, in
	// percent, 0 to 100. The plugin scores that node 100 and all others 0, so its weight must be higher than the sum of
	// the weights of all other score plugins and extenders. Default: 0.
	RandomBindPercent int32 `json:"randomBindPercent"`
}

// setDefaults sets the defaults: nothing is disturbed. The namespaces have no default.
func (args *ChaosArgs) setDefaults() {
	defaultInt32(&args.MaxConsecutiveRejections, 3)
}
