package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyScorePluginArgs are the arguments of the plugin MyScorePlugin.
type MyScorePluginArgs struct {
	metav1.TypeMeta `json:",inline"`

	// NodeLabel is the key of the node label that the plugin reads. A node without it is filtered out. Default: disktype.
	NodeLabel *string `json:"nodeLabel,omitempty"`
	// PreferredValues are values of that label, the most preferred first: 1 to 100 of them, each once. A node's place in
	// the list is its score before normalisation; a value that is not listed scores 0. Default: [ssd].
	// +listType=atomic
	PreferredValues []string `json:"preferredValues,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExtensionPointLoggerArgs are the arguments of the plugin ExtensionPointLogger.
type ExtensionPointLoggerArgs struct {
	metav1.TypeMeta `json:",inline"`

	// SampleRate is the share of the pods that are logged, more than 0 and at most 1. Of a pod, all calls are logged or
	// none. Default: 1.
	SampleRate *float64 `json:"sampleRate,omitempty"`
	// Namespaces are the namespaces whose pods are logged; none means all.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Redact replaces the names of pods, namespaces and nodes by keyed hashes, the same for the life of the process.
	// Default: false.
	Redact *bool `json:"redact,omitempty"`
	// QueueSort makes the plugin a queue sort plugin too, with the order of PrioritySort, which then must be disabled.
	// Of queue sort plugins there can only be one, the same in all profiles. Default: false.
	QueueSort *bool `json:"queueSort,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RandScoreArgs are the arguments of the plugin RandScore.
type RandScoreArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Seed chooses the scores: with the same seed, the same pod has the same scores at the same attempt, counted by the
	// attempts in which nodes were scored. Default: 0.
	Seed *int64 `json:"seed,omitempty"`
}

// FilterAction is what a rule does with what it matches.
type FilterAction string

const (
	// FilterAllow lets what matches pass.
	FilterAllow FilterAction = "Allow"
	// FilterDeny rejects what matches.
	FilterDeny FilterAction = "Deny"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodFilterArgs are the arguments of the plugin PodFilter.
type PodFilterArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Rules are tried in order; the first one that matches a pod decides. 1 to 100 of them.
	// +listType=map
	// +listMapKey=name
	Rules []PodFilterRule `json:"rules,omitempty"`
	// DefaultAction decides over a pod that no rule matches. Default: Allow.
	DefaultAction FilterAction `json:"defaultAction,omitempty"`
}

// PodFilterRule decides over pods. It matches a pod for which all of its conditions hold; it has at least one.
type PodFilterRule struct {
	// Name stands in the event of a pod that the rule rejects: a DNS label, each once.
	Name string `json:"name"`
	// Action is what is done with a pod that matches.
	Action FilterAction `json:"action"`
	// PodNames are patterns, in which * stands for any text and ? for any character: one of them must match the pod's
	// name. None means any name.
	// +listType=atomic
	PodNames []string `json:"podNames,omitempty"`
	// Namespaces are patterns of the same kind for the pod's namespace.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// PodSelector must match the pod's labels.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeFilterArgs are the arguments of the plugin NodeFilter.
type NodeFilterArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Rules are tried in order; the first one that matches a pod and a node decides. 1 to 100 of them.
	// +listType=map
	// +listMapKey=name
	Rules []NodeFilterRule `json:"rules,omitempty"`
	// DefaultAction decides over a node that no rule matches. Default: Allow.
	DefaultAction FilterAction `json:"defaultAction,omitempty"`
}

// NodeFilterRule decides over nodes, for all pods or for some. It matches if all of its conditions hold; it has at least
// one that concerns the node.
type NodeFilterRule struct {
	// Name stands in the event of a pod that finds no node: a DNS label, each once.
	Name string `json:"name"`
	// Action is what is done with a node that matches.
	Action FilterAction `json:"action"`
	// NodeNames are patterns, in which * stands for any text and ? for any character: one of them must match the node's
	// name. None means any name.
	// +listType=atomic
	NodeNames []string `json:"nodeNames,omitempty"`
	// NodeSelector must match the node's labels.
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
	// Namespaces are patterns for the namespace of the pods that the rule concerns; none means all.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// PodSelector must match the labels of the pods that the rule concerns.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// RunningImageCount is what RunningImageLocality counts.
type RunningImageCount string

const (
	// CountImages counts an image of the incoming pod once for each node that runs it.
	CountImages RunningImageCount = "Images"
	// CountContainers counts every running container that uses an image of the incoming pod.
	CountContainers RunningImageCount = "Containers"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RunningImageLocalityArgs are the arguments of the plugin RunningImageLocality.
type RunningImageLocalityArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Count is what makes one node score higher than another. Default: Images.
	Count RunningImageCount `json:"count,omitempty"`
	// SizeWeight is by how many percent of its worth a match depends on the image's size, 0 to 100. Default: 0.
	SizeWeight *int32 `json:"sizeWeight,omitempty"`
	// SpreadWeight is by how many percent of its worth a match depends on the share of the nodes that run the image,
	// 0 to 100: the fewer they are, the less it draws all pods to the same few nodes. Default: 0.
	SpreadWeight *int32 `json:"spreadWeight,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChaosArgs are the arguments of the plugin Chaos.
type ChaosArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Namespaces are the namespaces whose pods are disturbed, by name: at least one, and never kube-system.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Seed chooses what happens: with the same seed, the same happens to the same pod at the same attempt. Default: 0.
	Seed *int64 `json:"seed,omitempty"`
	// DryRun says what would be done, in the log and in the metrics, and does nothing. Default: false.
	DryRun *bool `json:"dryRun,omitempty"`
	// RejectPercent is the chance of a node to be rejected, 0 to 100. In an attempt with a rejection no pod is preempted.
	// Default: 0.
	RejectPercent *int32 `json:"rejectPercent,omitempty"`
	// MaxConsecutiveRejections is after how many attempts in a row, in which it rejected nodes and the pod found none,
	// Chaos lets a pod's next attempt alone: 1 to 100. Attempts between them that failed without Chaos do not end the row.
	// Default: 3.
	MaxConsecutiveRejections *int32 `json:"maxConsecutiveRejections,omitempty"`
	// RandomScore gives each node the throw of a die from 0 to 100 as its score; without, all score 0. Default: false.
	RandomScore *bool `json:"randomScore,omitempty"`
	// MaxPermitDelay is the longest random delay before a pod is bound, 0s to 10m; 0s is none. A pod that is bound to a random
	// node is not delayed. Default: 0s.
	MaxPermitDelay *metav1.Duration `json:"maxPermitDelay,omitempty"`
	// RandomBindPercent is the chance of a pod to be bound to a random one of the nodes that were feasible for it,
	// instead of the best, 0 to 100. Default: 0.
	RandomBindPercent *int32 `json:"randomBindPercent,omitempty"`
}
