// SPDX-License-Identifier: Apache-2.0

package config

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyScorePluginArgs are the arguments of the plugin MyScorePlugin.
type MyScorePluginArgs struct {
	metav1.TypeMeta

	// NodeLabel is the key of the node label that the plugin reads. A node without it is filtered out.
	NodeLabel string
	// PreferredValues are values of that label, the most preferred first: 1 to 100 of them, each once. A node's place
	// in the list is its score before normalisation; a value that is not listed scores 0.
	PreferredValues []string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExtensionPointLoggerArgs are the arguments of the plugin ExtensionPointLogger.
type ExtensionPointLoggerArgs struct {
	metav1.TypeMeta

	// SampleRate is the share of the pods that are logged, more than 0 and at most 1. Of a pod, all calls are logged or
	// none.
	SampleRate float64
	// Namespaces are the namespaces whose pods are logged; none means all.
	Namespaces []string
	// Redact replaces the names of pods, namespaces and nodes by keyed hashes, the same for the life of the process.
	Redact bool
	// QueueSort makes the plugin a queue sort plugin too, with the order of PrioritySort, which then must be disabled.
	// Of queue sort plugins there can only be one, the same in all profiles.
	QueueSort bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RandScoreArgs are the arguments of the plugin RandScore.
type RandScoreArgs struct {
	metav1.TypeMeta

	// Seed chooses the scores: with the same seed, the same pod has the same scores at the same attempt, counted by the
	// attempts in which nodes were scored.
	Seed int64
}

// FilterAction is what a rule does with what it matches.
type FilterAction string

const (
	// FilterAllow lets what matches pass.
	FilterAllow FilterAction = "Allow"
	// FilterDeny rejects what matches.
	FilterDeny FilterAction = "Deny"
	// FilterPrefer favours the nodes that match: NodeFilter alone has it.
	FilterPrefer FilterAction = "Prefer"
	// FilterShare bounds the share of the pods that is on the nodes that match: NodeFilter alone has it.
	FilterShare FilterAction = "Share"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodFilterArgs are the arguments of the plugin PodFilter.
type PodFilterArgs struct {
	metav1.TypeMeta

	// Rules are tried in order; the first one that matches a pod decides. 1 to 100 of them.
	Rules []PodFilterRule
	// DefaultAction decides over a pod that no rule matches.
	DefaultAction FilterAction
}

// PodFilterRule decides over pods. It matches a pod for which all of its conditions hold; it has at least one.
type PodFilterRule struct {
	// Name stands in the event of a pod that the rule rejects: a DNS label, each once.
	Name string
	// Action is what is done with a pod that matches.
	Action FilterAction
	// PodNames are patterns of path.Match, of which one must match the pod's name: * stands for any text, ? for any
	// character, and [a-f] or [^a-f] for one of some characters. None means any name.
	PodNames []string
	// Namespaces are patterns of the same kind for the pod's namespace.
	Namespaces []string
	// PodSelector must match the pod's labels.
	PodSelector *metav1.LabelSelector
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeFilterArgs are the arguments of the plugin NodeFilter.
type NodeFilterArgs struct {
	metav1.TypeMeta

	// Rules are tried in order; the first Allow or Deny that matches a pod and a node decides, unless a Share before it
	// rejects the node. 1 to 100 of them.
	Rules []NodeFilterRule
	// DefaultAction decides over a node that no Allow or Deny matches: one of these two.
	DefaultAction FilterAction
}

// NodeFilterRule decides over nodes, for all pods or for some. It matches if all of its conditions hold; it has at
// least one that concerns the node.
type NodeFilterRule struct {
	// Name stands in the event of a pod that finds no node: a DNS label, each once.
	Name string
	// Action is what is done with a node that matches: Allow and Deny decide, Prefer gives it a better score, and Share
	// bounds how many of the pods that the rule concerns are on such nodes.
	Action FilterAction
	// NodeNames are patterns of path.Match, of which one must match the node's name: * stands for any text, ? for any
	// character, and [a-f] or [^a-f] for one of some characters. None means any name.
	NodeNames []string
	// NodeSelector must match the node's labels.
	NodeSelector *metav1.LabelSelector
	// Namespaces are patterns for the namespace of the pods that the rule concerns; none means all.
	Namespaces []string
	// PodSelector must match the labels of the pods that the rule concerns.
	PodSelector *metav1.LabelSelector
	// Weight is how much a Prefer counts among those that concern a pod: 1 to 100. Only Prefer has it, and must.
	Weight int32
	// MinPercent and MaxPercent are the least and the most of the pods that the rule concerns, in percent, that are on
	// the nodes that match: 0 to 100. Only Share has them, and must have one.
	MinPercent *int32
	MaxPercent *int32
	// RestrictedLabels demands that the rule goes by node labels alone that no kubelet can set: all keys of its
	// NodeSelector begin with node-restriction.kubernetes.io/, and it has no NodeNames.
	// An Allow asks for them by In or Exists alone.
	RestrictedLabels bool
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
	metav1.TypeMeta

	// Count is what makes one node score higher than another.
	Count RunningImageCount
	// SizeWeight is by how many percent of its worth a match depends on the image's size, 0 to 100.
	SizeWeight int32
	// SpreadWeight is by how many percent of its worth a match depends on the share of the nodes that run the image,
	// 0 to 100: the fewer they are, the less it draws all pods to the same few nodes.
	SpreadWeight int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChaosArgs are the arguments of the plugin Chaos.
type ChaosArgs struct {
	metav1.TypeMeta

	// Namespaces are the namespaces whose pods are disturbed, by name: at least one, and never kube-system.
	Namespaces []string
	// Seed chooses what happens: with the same seed, the same happens to the same pod at the same attempt.
	Seed int64
	// DryRun says what would be done, in the log and in the metrics, and does nothing.
	DryRun bool
	// RejectPercent is the chance of a node to be rejected, 0 to 100. In an attempt with a rejection no pod is
	// preempted.
	RejectPercent int32
	// MaxConsecutiveRejections is after how many attempts in a row, in which it rejected nodes and the pod found none,
	// Chaos lets a pod's next attempt alone: 1 to 100. Attempts between them that failed without Chaos do not end the
	// row.
	MaxConsecutiveRejections int32
	// RandomScore gives each node the throw of a die from 0 to 100 as its score; without, all score 0.
	RandomScore bool
	// MaxPermitDelay is the longest random delay before a pod is bound, 0s to 10m; 0s is none.
	MaxPermitDelay metav1.Duration
	// RandomBindPercent is the chance of a pod to be bound to a random one of the nodes that were feasible for it,
	// instead of the best, 0 to 100. The plugin scores that node 100 and all others 0, so it needs more weight than all
	// other score plugins and extenders have together.
	RandomBindPercent int32
}

// NodeCostStrategy is which cost of a node counts.
type NodeCostStrategy string

const (
	// NodeCostCheapestNode counts the price of the whole node.
	NodeCostCheapestNode NodeCostStrategy = "CheapestNode"
	// NodeCostCheapestShare counts the price of what the pod takes of the node: the larger of its shares of the node's
	// allocatable CPU and memory.
	NodeCostCheapestShare NodeCostStrategy = "CheapestShare"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeCostArgs are the arguments of the plugin NodeCost. A node's price comes from its annotation, else from its label,
// else from the table. A node that has none counts as the median of those above 0.
type NodeCostArgs struct {
	metav1.TypeMeta

	// PriceAnnotation is the key of the node's annotation with its price per hour, a number such as 0.096 or 96m; empty
	// for none.
	PriceAnnotation string
	// PriceLabel is the key of a label with the same; empty for none.
	PriceLabel string
	// Prices are a table, of which the first row that matches a node counts: at most 1,000 rows.
	Prices []NodeCostPrice
	// InstanceTypeLabel, ZoneLabel and CapacityTypeLabel are the keys of the nodes' labels that the table speaks of.
	InstanceTypeLabel string
	ZoneLabel         string
	// CapacityTypeLabel depends on the provider, such as karpenter.sh/capacity-type. Needed if a row or Spot has
	// capacity types.
	CapacityTypeLabel string
	// Strategy is which cost of a node counts.
	Strategy NodeCostStrategy
	// Spot keeps nodes that may be taken away for pods that say that they can stand it; nil keeps none.
	Spot *NodeCostSpot
}

// NodeCostPrice is a row of the table of prices. It matches a node whose labels have all of the values that are given.
type NodeCostPrice struct {
	// InstanceType is the value of the label InstanceTypeLabel; empty for any, or none.
	InstanceType string
	// Zone is the value of the label ZoneLabel; empty for any, or none.
	Zone string
	// CapacityType is the value of the label CapacityTypeLabel; empty for any, or none.
	CapacityType string
	// PricePerHour is what such a node costs in an hour, 0 to 1,000,000,000, in any currency: the same for all nodes.
	// Needed; 0 is free.
	PricePerHour *resource.Quantity
}

// NodeCostSpot keeps nodes for some pods: all others score them 0, below any other node.
type NodeCostSpot struct {
	// CapacityTypes are the values of the label CapacityTypeLabel that such nodes have: 1 to 16 of them.
	CapacityTypes []string
	// TolerationKey is the key of a taint. A pod with a toleration of it, whatever its value and effect, may go to such
	// nodes. They need not have the taint.
	TolerationKey string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DataLocalityArgs are the arguments of the plugin DataLocality.
type DataLocalityArgs struct {
	metav1.TypeMeta

	// DatasetsAnnotation is the annotation of a pod that names the datasets it reads, with the bytes it reads of each:
	// "sales=120Gi,logs/2024=3Ti,ref".
	DatasetsAnnotation string
	// NodeAnnotation is the annotation of a node that names the datasets it holds; empty reads none.
	NodeAnnotation string
	// NodeLabelPrefix begins the labels of a node that say what it holds: what follows it in a label's key is the name
	// of a dataset, whatever the label's value; empty reads no labels.
	NodeLabelPrefix string
	// Servers are running pods that serve data: at most 16 kinds of them. The node of such a pod holds the dataset that
	// the pod's label names. Of several kinds that a pod is of, the first counts.
	Servers []DataLocalityServer
	// Levels are how near data can be, the nearest first: 1 to 8 of them, each key once.
	Levels []DataLocalityLevel
	// RequireWithin is the topology key of a level. The filter rejects a node which has not all of the pod's datasets
	// at this level or nearer, but for those that no node holds; empty rejects none.
	RequireWithin string
}

// DataLocalityServer is a kind of pods that serve data.
type DataLocalityServer struct {
	// Namespaces are those of the pods; none means all.
	Namespaces []string
	// Selector must match the pods' labels; none means all pods with the label.
	Selector *metav1.LabelSelector
	// DatasetLabel is the label of the pods whose value is the name of the dataset.
	DatasetLabel string
}

// DataLocalityLevel says what a byte counts that is in the same domain of a topology key.
type DataLocalityLevel struct {
	// TopologyKey is a label of nodes. Nodes with the same value are in the same domain.
	TopologyKey string
	// Percent is what a byte counts at this level, 0 to 100, less than at the level before.
	Percent int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLoadArgs are the arguments of the plugin NodeLoad.
type NodeLoadArgs struct {
	metav1.TypeMeta

	// Source is what is asked for measurements.
	Source NodeLoadSource
	// Prometheus is where the measurements come from, with the source Prometheus.
	Prometheus NodeLoadPrometheus
	// RefreshInterval is the time between two requests for measurements, 1s to 10m.
	RefreshInterval metav1.Duration
	// MaxSampleAge is how old a measurement may be to count, more than RefreshInterval and at most 1h.
	MaxSampleAge metav1.Duration
	// NodeMatch says which node a series is about, unless its resource has a NodeMatch of its own.
	NodeMatch NodeLoadNodeMatch
	// Resources are what is measured: 1 to 16 of them, each name once, and at least one with a weight or a threshold.
	Resources []NodeLoadResource
	// Fallback is how a node is scored by a resource of which it has no measurement.
	Fallback NodeLoadFallback
	// FilterOnStale is what the filter does with a node that has no measurement of a resource with a threshold, while
	// enough other nodes have one.
	FilterOnStale NodeLoadFilterOnStale
	// MinFreshNodesPercent is the share of nodes, 0 to 100, that must have measurements of a resource; with fewer of
	// them no node is filtered or scored by it.
	MinFreshNodesPercent int32
	// ExemptDaemonSets lets the filter pass the pods of DaemonSets.
	ExemptDaemonSets bool
	// ExemptPriorityAbove lets the filter pass pods of a higher priority than this; nil exempts none.
	ExemptPriorityAbove *int32
}

// NodeLoadSource is what is asked for measurements.
type NodeLoadSource string

const (
	// NodeLoadSourcePrometheus is Prometheus, or what answers its HTTP API.
	NodeLoadSourcePrometheus NodeLoadSource = "Prometheus"
	// NodeLoadSourceMetricsServer is the resource metrics API, metrics.k8s.io, of the cluster's own API server: cpu and
	// memory.
	NodeLoadSourceMetricsServer NodeLoadSource = "MetricsServer"
)

// NodeLoadPrometheus is how to reach a server that answers Prometheus' HTTP API.
type NodeLoadPrometheus struct {
	// Endpoints are URLs of servers with the same data, http or https: 1 to 8 of them, tried in order. They hold no
	// user and no password, no query and no fragment; a path is a prefix of the API's.
	Endpoints []string
	// Timeout bounds a request, 100ms to 1m.
	Timeout metav1.Duration
	// TLS is how to trust a server, and to be trusted by it. Only for https.
	TLS NodeLoadTLS
	// BearerTokenFile is the absolute path of a file with a token to send, read again when it changes.
	BearerTokenFile string
	// Headers are sent with every request, such as the tenant's name. At most 16.
	Headers []NodeLoadHeader
}

// NodeLoadTLS are files in PEM form, read again when they change, by their absolute paths.
type NodeLoadTLS struct {
	// CAFile has the certificates of the authorities to trust instead of the system's.
	CAFile string
	// CertFile and KeyFile are the client's certificate and its key: both or none.
	CertFile string
	KeyFile  string
	// ServerName is the name in the server's certificate, if it is not that of the endpoint.
	ServerName string
	// InsecureSkipVerify trusts any server. Not allowed together with CAFile.
	InsecureSkipVerify bool
}

// NodeLoadHeader is a header of a request. It has a value or a file with one.
type NodeLoadHeader struct {
	// Name is the header's name; not one of those that the client sets itself.
	Name string
	// Value is its value. It can be read by all who can read the configuration, which the scheduler logs at -v=2:
	// secrets are for ValueFile, and Authorization, Cookie and Proxy-Authorization take no Value.
	Value string
	// ValueFile is the absolute path of a file with the value, read again when it changes.
	ValueFile string
}

// NodeLoadMatchBy is what a node is known by in Prometheus.
type NodeLoadMatchBy string

const (
	// NodeLoadMatchAuto is any of the following. A series that means one node by one and another by another counts for
	// neither.
	NodeLoadMatchAuto NodeLoadMatchBy = "Auto"
	// NodeLoadMatchName is the node's name.
	NodeLoadMatchName NodeLoadMatchBy = "Name"
	// NodeLoadMatchInternalIP is any address of the type InternalIP.
	NodeLoadMatchInternalIP NodeLoadMatchBy = "InternalIP"
	// NodeLoadMatchHostname is any address of the type Hostname, or the label kubernetes.io/hostname.
	NodeLoadMatchHostname NodeLoadMatchBy = "Hostname"
	// NodeLoadMatchProviderID is spec.providerID, or what follows its last slash.
	NodeLoadMatchProviderID NodeLoadMatchBy = "ProviderID"
)

// NodeLoadNodeMatch says which node a series is about.
type NodeLoadNodeMatch struct {
	// Label is the label of the series that says it. A port at the end of its value does not count.
	Label string
	// By is what of the node the label's value is.
	By NodeLoadMatchBy
}

// NodeLoadUnit is the unit of what a query returns.
type NodeLoadUnit string

const (
	// NodeLoadRatio is a share of the capacity, 1 for all of it.
	NodeLoadRatio NodeLoadUnit = "Ratio"
	// NodeLoadPercent is a share of the capacity, 100 for all of it.
	NodeLoadPercent NodeLoadUnit = "Percent"
	// NodeLoadAbsolute is in the unit of the capacity: cores, bytes, bytes per second.
	NodeLoadAbsolute NodeLoadUnit = "Absolute"
)

// NodeLoadStrategy is how a predicted load becomes a score.
type NodeLoadStrategy string

const (
	// NodeLoadLeastUsed scores 100 for an idle node and 0 for a full one.
	NodeLoadLeastUsed NodeLoadStrategy = "LeastUsed"
	// NodeLoadTargetUtilization scores best at the target: nodes are filled up to it, and not above.
	NodeLoadTargetUtilization NodeLoadStrategy = "TargetUtilization"
	// NodeLoadRisk scores by mean and standard deviation: a load that varies counts more.
	NodeLoadRisk NodeLoadStrategy = "Risk"
)

// NodeLoadResource is something that nodes have and that is measured.
type NodeLoadResource struct {
	// Name is a letter and then letters, digits and hyphens, the last one no hyphen: at most 54 characters, so that the
	// node's annotation for Capacity is a valid key. Of cpu, memory, network, diskIO and gpu everything else is known
	// and need not be given.
	Name string
	// Query is an instant query in PromQL that returns one series a node, with the label NodeMatch.Label.
	Query string
	// TimestampQuery returns for each node the time, in seconds since 1970, of the newest raw sample that Query is
	// about. Without it a measurement's age is not known: what has none does not count. Given if and only if Query is.
	TimestampQuery string
	// DeviationQuery returns for each node the standard deviation of Query, in the same unit. Needed by the strategy
	// Risk if Query is given.
	DeviationQuery string
	// NodeMatch says which node a series of this resource is about, where another exporter labels its series
	// differently.
	NodeMatch *NodeLoadNodeMatch
	// Unit is the unit of Query's and DeviationQuery's values. What NodeLoad asks by itself is a Ratio.
	Unit NodeLoadUnit
	// Capacity is what a node has of it, more than 0: cores, bytes, bytes per second. The node's annotation
	// node-load.scheduler/capacity-NAME counts more; without both it is the node's capacity of Estimator.Resource.
	// Without any, pods that are to come cannot be accounted for, and Absolute values do not count.
	Capacity *resource.Quantity
	// Window is the time over which Query takes its mean, 10s to 1h: the time a new pod takes to show fully.
	Window metav1.Duration
	// Threshold is the load in percent of the capacity, 1 to 100, above which a node takes no more pods: what is
	// measured and what is in flight, without the pod itself; nil filters nothing.
	Threshold *int32
	// Weight is the resource's weight in the node's score, 0 to 100; 0 takes no part.
	Weight int32
	// Strategy is how the predicted load becomes a score.
	Strategy NodeLoadStrategy
	// Target is the load in percent, 1 to 99, that TargetUtilization fills nodes to.
	Target int32
	// Margin is what Risk multiplies the deviation with, 0 to 10.
	Margin float64
	// Sensitivity is Risk's: the deviation's share of the capacity is taken to the power of 1/Sensitivity. More than 0,
	// at most 10.
	Sensitivity float64
	// Estimator says what a pod is expected to use, until it shows in the measurements.
	Estimator NodeLoadEstimator
}

// NodeLoadEstimateBy is what of a container says how much it will use.
type NodeLoadEstimateBy string

const (
	// NodeLoadEstimateRequests is what it requests.
	NodeLoadEstimateRequests NodeLoadEstimateBy = "Requests"
	// NodeLoadEstimateLimits is its limit, or what it requests if that is more or if it has no limit.
	NodeLoadEstimateLimits NodeLoadEstimateBy = "Limits"
)

// NodeLoadEstimator estimates a pod's use as round(request or limit x Factor / 100), at most its limit; summed over the
// containers.
type NodeLoadEstimator struct {
	// Resource is the resource whose requests and limits are read; empty reads none. A resource with a prefix, such as
	// nvidia.com/gpu, concerns only pods that ask for it.
	Resource v1.ResourceName
	// By is what of a container counts.
	By NodeLoadEstimateBy
	// Factor is in percent, 1 to 1000.
	Factor int32
	// Default is what a container uses that declares nothing, at least 0.
	Default resource.Quantity
	// Annotation is the key of a pod annotation whose quantity replaces the estimate; empty reads none.
	Annotation string
}

// NodeLoadFallback is how a node is scored by a resource without a measurement. While other nodes have one, it never
// scores more than a node at their mean would.
type NodeLoadFallback string

const (
	// NodeLoadFallbackRequests takes the requests of the node's pods for its load.
	NodeLoadFallbackRequests NodeLoadFallback = "Requests"
	// NodeLoadFallbackNeutral scores 50.
	NodeLoadFallbackNeutral NodeLoadFallback = "Neutral"
)

// NodeLoadFilterOnStale is what is done with a node that has no measurement.
type NodeLoadFilterOnStale string

const (
	// NodeLoadFilterOpen lets it pass.
	NodeLoadFilterOpen NodeLoadFilterOnStale = "Open"
	// NodeLoadFilterClosed filters it out.
	NodeLoadFilterClosed NodeLoadFilterOnStale = "Closed"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadTopologyArgs are the arguments of the plugin WorkloadTopology.
type WorkloadTopologyArgs struct {
	metav1.TypeMeta

	// GroupBy are 1 to 8 keys of pod labels. Pods of a namespace that have the same values of all of them are a group:
	// a job. A pod without one of them is in no group.
	GroupBy []string
	// Levels are 1 to 8 levels of the cluster's topology, from near to far.
	Levels []WorkloadTopologyLevel
	// Edges say which pods talk to each other: at most 32.
	Edges []WorkloadTopologyEdge
	// PeersAnnotation is the key of a pod annotation that replaces the edges that the pod is scored by: roles of its
	// group with weights, as in "taskmanager=10,jobmanager=1". Empty reads none.
	PeersAnnotation string
	// RoleLabel is the label whose value is a pod's role in its group, for that annotation.
	RoleLabel string
	// MaxPerNode is how many pods of a group a node takes, 1 to 1000: a filter; nil is no limit.
	MaxPerNode *int32
	// SpreadWeight is by how many percent the score is for nodes with few pods of the group, 0 to 100; the rest is for
	// nodes near to peers.
	SpreadWeight int32
	// AvoidAbove is the load in percent of the capacity, 1 to 100, above which a node scores 0, by what the plugin
	// NodeLoad of the same profile knows; nil looks at no load.
	AvoidAbove *int32
}

// WorkloadTopologyLevel is a level of the cluster's topology.
type WorkloadTopologyLevel struct {
	// TopologyKey is the label of nodes whose value is the node's domain at this level.
	TopologyKey string
	// Cost is what it costs to talk to a peer in the same domain of this level, and of no nearer one: 0 to 99, more
	// than at the level before. A peer in no common domain costs 100.
	Cost int32
}

// WorkloadTopologyScope is where the pods of an edge are.
type WorkloadTopologyScope string

const (
	// WorkloadTopologyGroup: both are of the same group.
	WorkloadTopologyGroup WorkloadTopologyScope = "Group"
	// WorkloadTopologyNamespace: both are in the same namespace.
	WorkloadTopologyNamespace WorkloadTopologyScope = "Namespace"
	// WorkloadTopologyCluster: both are anywhere.
	WorkloadTopologyCluster WorkloadTopologyScope = "Cluster"
)

// WorkloadTopologyEdge is between the pods that two selectors match, in both directions.
type WorkloadTopologyEdge struct {
	// From and To select the pods of the two sides; nil selects all. With another scope than Group, both are needed.
	From *metav1.LabelSelector
	To   *metav1.LabelSelector
	// Weight is how much two pods have to say to each other, 0 to 100; 0 only filters.
	Weight int32
	// Scope is where both pods are.
	Scope WorkloadTopologyScope
	// Within is the topology key of a level: a filter. A node must be in the same domain of this level as one of the
	// pod's peers that are placed, if there are any. Empty filters nothing.
	Within string
}
