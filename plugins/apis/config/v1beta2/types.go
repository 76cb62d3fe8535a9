package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyScorePluginArgs are the arguments of the plugin MyScorePlugin.
type MyScorePluginArgs struct {
	metav1.TypeMeta `json:",inline"`

	// NodeLabel is the key of the node label that the plugin reads. A node without it is filtered out.
	// Default: disktype.
	NodeLabel *string `json:"nodeLabel,omitempty"`
	// PreferredValues are values of that label, the most preferred first: 1 to 100 of them, each once. The first
	// scores 100, those after it evenly less; a value that is not listed scores 0. Default: [ssd].
	// +listType=atomic
	PreferredValues []string `json:"preferredValues,omitempty"`
}
