// SPDX-License-Identifier: Apache-2.0

package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyScorePluginArgs are the arguments of the plugin MyScorePlugin.
type MyScorePluginArgs struct {
	metav1.TypeMeta `json:",inline"`

	// NodeLabel is the key of the node label that the plugin reads. Nodes without the label are filtered out. Default:
	// disktype.
	NodeLabel *string `json:"nodeLabel,omitempty"`
	// PreferredValues are 1 to 100 unique values of that label, the most preferred first. Before normalisation, a node
	// with the last value scores 1, each earlier value scores 1 more, and a value that is not listed scores 0. Default:
	// [ssd].
	// +listType=atomic
	PreferredValues []string `json:"preferredValues,omitempty"`
}

// setDefaults sets the defaults: nodes with fast disks, by the label in Kubernetes' own
// documentation.
func (args *MyScorePluginArgs) setDefaults() {
	defaultString(&args.NodeLabel, "disktype")
	if args.PreferredValues == nil {
		args.PreferredValues = []string{"ssd"}
	}
}
