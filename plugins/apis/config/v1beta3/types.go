// SPDX-License-Identifier: Apache-2.0

package v1beta3

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyScorePluginArgs are the arguments of the plugin MyScorePlugin.
type MyScorePluginArgs struct {
	metav1.TypeMeta `json:",inline"`

	// NodeLabel is the key of the node label that the plugin reads. A node without it is filtered out. Default:
	// disktype.
	NodeLabel *string `json:"nodeLabel,omitempty"`
	// PreferredValues are values of that label, the most preferred first: 1 to 100 of them, each once. A node's place
	// in the list is its score before normalisation; a value that is not listed scores 0. Default: [ssd].
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
	// FilterPrefer favours the nodes that match: NodeFilter alone has it.
	FilterPrefer FilterAction = "Prefer"
	// FilterShare bounds the share of the pods that is on the nodes that match: NodeFilter alone has it.
	FilterShare FilterAction = "Share"
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
	// PodNames are patterns of path.Match, of which one must match the pod's name: * stands for any text, ? for any
	// character, and [a-f] or [^a-f] for one of some characters. None means any name.
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

	// Rules are tried in order; the first Allow or Deny that matches a pod and a node decides, unless a Share before it
	// rejects the node. 1 to 100 of them.
	// +listType=map
	// +listMapKey=name
	Rules []NodeFilterRule `json:"rules,omitempty"`
	// DefaultAction decides over a node that no Allow or Deny matches: one of these two. Default: Allow.
	DefaultAction FilterAction `json:"defaultAction,omitempty"`
}

// NodeFilterRule decides over nodes, for all pods or for some. It matches if all of its conditions hold; it has at
// least one that concerns the node.
type NodeFilterRule struct {
	// Name stands in the event of a pod that finds no node: a DNS label, each once.
	Name string `json:"name"`
	// Action is what is done with a node that matches: Allow and Deny decide, Prefer gives it a better score, and Share
	// bounds how many of the pods that the rule concerns are on such nodes.
	Action FilterAction `json:"action"`
	// NodeNames are patterns of path.Match, of which one must match the node's name: * stands for any text, ? for any
	// character, and [a-f] or [^a-f] for one of some characters. None means any name.
	// +listType=atomic
	NodeNames []string `json:"nodeNames,omitempty"`
	// NodeSelector must match the node's labels.
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
	// Namespaces are patterns for the namespace of the pods that the rule concerns; none means all.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// PodSelector must match the labels of the pods that the rule concerns.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// Weight is how much a Prefer counts among those that concern a pod: 1 to 100. Only Prefer has it, and must.
	Weight int32 `json:"weight,omitempty"`
	// MinPercent and MaxPercent are the least and the most of the pods that the rule concerns, in percent, that are on
	// the nodes that match: 0 to 100. Only Share has them, and must have one.
	MinPercent *int32 `json:"minPercent,omitempty"`
	MaxPercent *int32 `json:"maxPercent,omitempty"`
	// RestrictedLabels demands that the rule goes by node labels alone that no kubelet can set: all keys of its
	// NodeSelector begin with node-restriction.kubernetes.io/, and it has no NodeNames. An Allow asks
	// for them by In or Exists alone. Default: false.
	RestrictedLabels bool `json:"restrictedLabels,omitempty"`
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
	// 0 to 100: the fewer they are, the less it draws all pods to the same few nodes. Default:
	// 100.
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
	// RejectPercent is the chance of a node to be rejected, 0 to 100. In an attempt with a rejection no pod is
	// preempted. Default: 0.
	RejectPercent *int32 `json:"rejectPercent,omitempty"`
	// MaxConsecutiveRejections is after how many attempts in a row, in which it rejected nodes and the pod found none,
	// Chaos lets a pod's next attempt alone: 1 to 100. Attempts between them that failed without Chaos do not end the
	// row. Default: 3.
	MaxConsecutiveRejections *int32 `json:"maxConsecutiveRejections,omitempty"`
	// RandomScore gives each node the throw of a die from 0 to 100 as its score; without, all score 0. Default: false.
	RandomScore *bool `json:"randomScore,omitempty"`
	// MaxPermitDelay is the longest random delay before a pod is bound, 0s to 10m; 0s is none. Default: 0s.
	MaxPermitDelay *metav1.Duration `json:"maxPermitDelay,omitempty"`
	// RandomBindPercent is the chance of a pod to be bound to a random one of the nodes that were feasible for it,
	// instead of the best, 0 to 100. The plugin scores that node 100 and all others 0, so it needs more weight than all
	// other score plugins and extenders have together. Default: 0.
	RandomBindPercent *int32 `json:"randomBindPercent,omitempty"`
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
	metav1.TypeMeta `json:",inline"`

	// PriceAnnotation is the key of the node's annotation with its price per hour, a number such as 0.096 or 96m; empty
	// for none. Default: node-cost.scheduler/price-per-hour.
	PriceAnnotation *string `json:"priceAnnotation,omitempty"`
	// PriceLabel is the key of a label with the same; empty for none. Default: empty.
	PriceLabel *string `json:"priceLabel,omitempty"`
	// Prices are a table, of which the first row that matches a node counts: at most 1,000 rows.
	// +listType=atomic
	Prices []NodeCostPrice `json:"prices,omitempty"`
	// InstanceTypeLabel is the key of the nodes' label with the instance type, as the table has it.
	// Default: node.kubernetes.io/instance-type.
	InstanceTypeLabel *string `json:"instanceTypeLabel,omitempty"`
	// ZoneLabel is the key of the label with the zone. Default: topology.kubernetes.io/zone.
	ZoneLabel *string `json:"zoneLabel,omitempty"`
	// CapacityTypeLabel depends on the provider, such as karpenter.sh/capacity-type. Needed if a row or Spot has
	// capacity types. Default: empty.
	CapacityTypeLabel *string `json:"capacityTypeLabel,omitempty"`
	// Strategy is which cost of a node counts. Default: CheapestShare.
	Strategy NodeCostStrategy `json:"strategy,omitempty"`
	// Spot keeps nodes that may be taken away for pods that say that they can stand it; nil keeps none.
	Spot *NodeCostSpot `json:"spot,omitempty"`
}

// NodeCostPrice is a row of the table of prices. It matches a node whose labels have all of the values that are given.
type NodeCostPrice struct {
	// InstanceType is the value of the label InstanceTypeLabel; empty for any, or none.
	InstanceType string `json:"instanceType,omitempty"`
	// Zone is the value of the label ZoneLabel; empty for any, or none.
	Zone string `json:"zone,omitempty"`
	// CapacityType is the value of the label CapacityTypeLabel; empty for any, or none.
	CapacityType string `json:"capacityType,omitempty"`
	// PricePerHour is what such a node costs in an hour, 0 to 1,000,000,000, in any currency: the same for all nodes.
	// Needed; 0 is free.
	PricePerHour *resource.Quantity `json:"pricePerHour,omitempty"`
}

// NodeCostSpot keeps nodes for some pods: all others score them 0, below any other node.
type NodeCostSpot struct {
	// CapacityTypes are the values of the label CapacityTypeLabel that such nodes have: 1 to 16 of them.
	// +listType=set
	CapacityTypes []string `json:"capacityTypes,omitempty"`
	// TolerationKey is the key of a taint. A pod with a toleration of it, whatever its value and effect, may go to such
	// nodes. They need not have the taint.
	TolerationKey string `json:"tolerationKey"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DataLocalityArgs are the arguments of the plugin DataLocality.
type DataLocalityArgs struct {
	metav1.TypeMeta `json:",inline"`

	// DatasetsAnnotation is the annotation of a pod that names the datasets it reads, with the bytes it reads of each:
	// "sales=120Gi,logs/2024=3Ti,ref". Default: data-locality.scheduler/datasets.
	DatasetsAnnotation *string `json:"datasetsAnnotation,omitempty"`
	// NodeAnnotation is the annotation of a node that names the datasets it holds; empty reads none. Default:
	// data-locality.scheduler/datasets.
	NodeAnnotation *string `json:"nodeAnnotation,omitempty"`
	// NodeLabelPrefix begins the labels of a node that say what it holds: what follows it in a label's key is the name
	// of a dataset, whatever the label's value; empty reads no labels. Default: "".
	NodeLabelPrefix *string `json:"nodeLabelPrefix,omitempty"`
	// Servers are running pods that serve data: at most 16 kinds of them. The node of such a pod holds the dataset that
	// the pod's label names. Of several kinds that a pod is of, the first counts.
	// +listType=atomic
	Servers []DataLocalityServer `json:"servers,omitempty"`
	// Levels are how near data can be, the nearest first: 1 to 8 of them, each key once. Default:
	// kubernetes.io/hostname with 100 percent and topology.kubernetes.io/zone with 50.
	// +listType=map
	// +listMapKey=topologyKey
	Levels []DataLocalityLevel `json:"levels,omitempty"`
	// RequireWithin is the topology key of a level. The filter rejects a node which has not all of the pod's datasets
	// at this level or nearer, but for those that no node holds; empty rejects none. Default: "".
	RequireWithin *string `json:"requireWithin,omitempty"`
}

// DataLocalityServer is a kind of pods that serve data.
type DataLocalityServer struct {
	// Namespaces are those of the pods; none means all.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector must match the pods' labels; none means all pods with the label.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// DatasetLabel is the label of the pods whose value is the name of the dataset.
	DatasetLabel string `json:"datasetLabel"`
}

// DataLocalityLevel says what a byte counts that is in the same domain of a topology key.
type DataLocalityLevel struct {
	// TopologyKey is a label of nodes. Nodes with the same value are in the same domain.
	TopologyKey string `json:"topologyKey"`
	// Percent is what a byte counts at this level, 0 to 100, less than at the level before.
	Percent int32 `json:"percent"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLoadArgs are the arguments of the plugin NodeLoad.
type NodeLoadArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Source is what is asked for measurements. Default: Prometheus.
	Source NodeLoadSource `json:"source,omitempty"`
	// Prometheus is where the measurements come from, with the source Prometheus.
	Prometheus NodeLoadPrometheus `json:"prometheus,omitempty"`
	// RefreshInterval is the time between two requests for measurements, 1s to 10m. Default: 30s.
	RefreshInterval *metav1.Duration `json:"refreshInterval,omitempty"`
	// MaxSampleAge is how old a measurement may be to count, more than RefreshInterval and at most 1h. Default: 3m.
	MaxSampleAge *metav1.Duration `json:"maxSampleAge,omitempty"`
	// NodeMatch says which node a series is about, unless its resource has a NodeMatch of its own.
	NodeMatch NodeLoadNodeMatch `json:"nodeMatch,omitempty"`
	// Resources are what is measured: 1 to 16 of them, each name once, and at least one with a weight or a threshold.
	// Default: cpu and memory.
	// +listType=map
	// +listMapKey=name
	Resources []NodeLoadResource `json:"resources,omitempty"`
	// Fallback is how a node is scored by a resource of which it has no measurement. Default: Requests.
	Fallback NodeLoadFallback `json:"fallback,omitempty"`
	// FilterOnStale is what the filter does with a node that has no measurement of a resource with a threshold, while
	// enough other nodes have one. Default: Open.
	FilterOnStale NodeLoadFilterOnStale `json:"filterOnStale,omitempty"`
	// MinFreshNodesPercent is the share of nodes, 0 to 100, that must have measurements of a resource; with fewer of
	// them no node is filtered or scored by it. Default: 50.
	MinFreshNodesPercent *int32 `json:"minFreshNodesPercent,omitempty"`
	// ExemptDaemonSets lets the filter pass the pods of DaemonSets. Default: true.
	ExemptDaemonSets *bool `json:"exemptDaemonSets,omitempty"`
	// ExemptPriorityAbove lets the filter pass pods of a higher priority than this. Default: 1999999999, so that
	// system-critical pods pass; 2147483647 exempts none.
	ExemptPriorityAbove *int32 `json:"exemptPriorityAbove,omitempty"`
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
	// +listType=set
	Endpoints []string `json:"endpoints,omitempty"`
	// Timeout bounds a request, 100ms to 1m. Default: 10s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// TLS is how to trust a server, and to be trusted by it. Only for https.
	TLS NodeLoadTLS `json:"tls,omitempty"`
	// BearerTokenFile is the absolute path of a file with a token to send, read again when it changes.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// Headers are sent with every request, such as the tenant's name. At most 16.
	// +listType=map
	// +listMapKey=name
	Headers []NodeLoadHeader `json:"headers,omitempty"`
}

// NodeLoadTLS are files in PEM form, read again when they change, by their absolute paths.
type NodeLoadTLS struct {
	// CAFile has the certificates of the authorities to trust instead of the system's.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the client's certificate and its key: both or none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate, if it is not that of the endpoint.
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify trusts any server. Not allowed together with CAFile. Default: false.
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
}

// NodeLoadHeader is a header of a request. It has a value or a file with one.
type NodeLoadHeader struct {
	// Name is the header's name; not one of those that the client sets itself.
	Name string `json:"name"`
	// Value is its value. It can be read by all who can read the configuration, which the scheduler logs at -v=2:
	// secrets are for ValueFile, and Authorization, Cookie and Proxy-Authorization take no Value.
	Value string `json:"value,omitempty"`
	// ValueFile is the absolute path of a file with the value, read again when it changes.
	ValueFile string `json:"valueFile,omitempty"`
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
	// Label is the label of the series that says it. A port at the end of its value does not count. Default: instance.
	Label string `json:"label,omitempty"`
	// By is what of the node the label's value is. Default: Auto.
	By NodeLoadMatchBy `json:"by,omitempty"`
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
	Name string `json:"name"`
	// Query is an instant query in PromQL that returns one series a node, with the label NodeMatch.Label. Default: of
	// cpu, memory, network, diskIO and gpu, a query of raw series of node_exporter and DCGM over Window; others must
	// give one.
	Query string `json:"query,omitempty"`
	// TimestampQuery returns for each node the time, in seconds since 1970, of the newest raw sample that Query is
	// about. Without it a measurement's age is not known: what has none does not count. Given if and only if Query is.
	TimestampQuery string `json:"timestampQuery,omitempty"`
	// DeviationQuery returns for each node the standard deviation of Query, in the same unit. Needed by the strategy
	// Risk if Query is given.
	DeviationQuery string `json:"deviationQuery,omitempty"`
	// NodeMatch says which node a series of this resource is about, where another exporter labels its series
	// differently. Default of each of its fields: that of the args.
	NodeMatch *NodeLoadNodeMatch `json:"nodeMatch,omitempty"`
	// Unit is the unit of Query's and DeviationQuery's values. What NodeLoad asks by itself is a Ratio. Default: Ratio,
	// with the source MetricsServer Absolute.
	Unit NodeLoadUnit `json:"unit,omitempty"`
	// Capacity is what a node has of it, more than 0: cores, bytes, bytes per second. The node's annotation
	// node-load.scheduler/capacity-NAME counts more; without both it is the node's capacity of Estimator.Resource.
	// Without any, pods that are to come cannot be accounted for, and Absolute values do not count. Default: of diskIO,
	// unless Absolute, 1: a busy second a second.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Window is the time over which Query takes its mean, 10s to 1h: the time a new pod takes to show fully. Default:
	// 5m.
	Window *metav1.Duration `json:"window,omitempty"`
	// Threshold is the load in percent of the capacity, 1 to 100, above which a node takes no more pods: what is
	// measured and what is in flight, without the pod itself. Without it nothing is filtered.
	Threshold *int32 `json:"threshold,omitempty"`
	// Weight is the resource's weight in the node's score, 0 to 100; 0 takes no part. Default: 1.
	Weight *int32 `json:"weight,omitempty"`
	// Strategy is how the predicted load becomes a score. Default: LeastUsed.
	Strategy NodeLoadStrategy `json:"strategy,omitempty"`
	// Target is the load in percent, 1 to 99, that TargetUtilization fills nodes to. Default: 40.
	Target *int32 `json:"target,omitempty"`
	// Margin is what Risk multiplies the deviation with, 0 to 10. Default: 1.
	Margin *float64 `json:"margin,omitempty"`
	// Sensitivity is Risk's: the deviation's share of the capacity is taken to the power of 1/Sensitivity. More than 0,
	// at most 10. Default: 1.
	Sensitivity *float64 `json:"sensitivity,omitempty"`
	// Estimator says what a pod is expected to use, until it shows in the measurements.
	Estimator NodeLoadEstimator `json:"estimator,omitempty"`
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
	// nvidia.com/gpu, concerns only pods that ask for it. Default: cpu of cpu, memory of memory, nvidia.com/gpu of gpu.
	Resource v1.ResourceName `json:"resource,omitempty"`
	// By is what of a container counts. Default: Requests.
	By NodeLoadEstimateBy `json:"by,omitempty"`
	// Factor is in percent, 1 to 1000. Default: 85 of the resource cpu, 70 of memory, 100 of others.
	Factor *int32 `json:"factor,omitempty"`
	// Default is what a container uses that declares nothing, at least 0. Default: 250m of the resource cpu, 200M of
	// memory, 0 of others.
	Default *resource.Quantity `json:"default,omitempty"`
	// Annotation is the key of a pod annotation whose quantity replaces the estimate; empty reads none.
	Annotation string `json:"annotation,omitempty"`
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
	metav1.TypeMeta `json:",inline"`

	// GroupBy are 1 to 8 keys of pod labels. Pods of a namespace that have the same values of all of them are a group:
	// a job. A pod without one of them is in no group. Default: [app].
	// +listType=set
	GroupBy []string `json:"groupBy,omitempty"`
	// Levels are 1 to 8 levels of the cluster's topology, from near to far. Default: hosts at 0, zones at 10 and
	// regions at 50.
	// +listType=atomic
	Levels []WorkloadTopologyLevel `json:"levels,omitempty"`
	// Edges say which pods talk to each other: at most 32. Default: one between all pods of a group; an empty list is
	// none.
	// +listType=atomic
	Edges []WorkloadTopologyEdge `json:"edges,omitempty"`
	// PeersAnnotation is the key of a pod annotation that replaces the edges that the pod is scored by: roles of its
	// group with weights, as in "taskmanager=10,jobmanager=1". Empty reads none. Default:
	// workload-topology.scheduler/peers.
	PeersAnnotation *string `json:"peersAnnotation,omitempty"`
	// RoleLabel is the label whose value is a pod's role in its group, for that annotation. Default: component.
	RoleLabel string `json:"roleLabel,omitempty"`
	// MaxPerNode is how many pods of a group a node takes, 1 to 1000: a filter; nil is no limit. Default: none.
	MaxPerNode *int32 `json:"maxPerNode,omitempty"`
	// SpreadWeight is by how many percent the score is for nodes with few pods of the group, 0 to 100; the rest is for
	// nodes near to peers. Default: 0.
	SpreadWeight *int32 `json:"spreadWeight,omitempty"`
	// AvoidAbove is the load in percent of the capacity, 1 to 100, above which a node scores 0, by what the plugin
	// NodeLoad of the same profile knows; nil looks at no load. Default: none.
	AvoidAbove *int32 `json:"avoidAbove,omitempty"`
}

// WorkloadTopologyLevel is a level of the cluster's topology.
type WorkloadTopologyLevel struct {
	// TopologyKey is the label of nodes whose value is the node's domain at this level.
	TopologyKey string `json:"topologyKey"`
	// Cost is what it costs to talk to a peer in the same domain of this level, and of no nearer one: 0 to 99, more
	// than at the level before. A peer in no common domain costs 100.
	Cost int32 `json:"cost"`
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
	From *metav1.LabelSelector `json:"from,omitempty"`
	To   *metav1.LabelSelector `json:"to,omitempty"`
	// Weight is how much two pods have to say to each other, 0 to 100; 0 only filters. Default: 1.
	Weight *int32 `json:"weight,omitempty"`
	// Scope is where both pods are. Default: Group.
	Scope WorkloadTopologyScope `json:"scope,omitempty"`
	// Within is the topology key of a level: a filter. A node must be in the same domain of this level as one of the
	// pod's peers that are placed, if there are any. Empty filters nothing.
	Within string `json:"within,omitempty"`
}
