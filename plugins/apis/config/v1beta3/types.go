// SPDX-License-Identifier: Apache-2.0

package v1beta3

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

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
	Redact *bool `json:"redact,omitempty"`
	// QueueSort makes the plugin a queue sort plugin too, with the order of PrioritySort. PrioritySort must then be
	// disabled, because only one queue sort plugin is allowed, the same in all profiles. Default: false.
	QueueSort *bool `json:"queueSort,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RandScoreArgs are the arguments of the plugin RandScore.
type RandScoreArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Seed determines the scores: with the same seed, a pod gets the same scores at the same attempt. Only attempts in
	// which nodes are scored are counted. Default: 0.
	Seed *int64 `json:"seed,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodFilterArgs are the arguments of the plugin PodFilter.
type PodFilterArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Rules are 1 to 100 rules, evaluated in order. The first rule that matches a pod decides.
	// +listType=map
	// +listMapKey=name
	Rules []PodFilterRule `json:"rules,omitempty"`
	// DefaultAction applies to pods that match no rule. Default: Allow.
	DefaultAction config.FilterAction `json:"defaultAction,omitempty"`
}

// PodFilterRule matches pods that meet all of its conditions. At least one is required.
type PodFilterRule struct {
	// Name appears in the events of pods that the rule rejects. It is a DNS label, unique among the rules.
	Name string `json:"name"`
	// Action applies to matching pods.
	Action config.FilterAction `json:"action"`
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
	DefaultAction config.FilterAction `json:"defaultAction,omitempty"`
}

// NodeFilterRule matches nodes that meet all of its conditions, for all pods or for some. At least one condition on the
// node is required.
type NodeFilterRule struct {
	// Name appears in the events of pods that fit no node. It is a DNS label, unique among the rules.
	Name string `json:"name"`
	// Action applies to matching nodes: Allow passes them, Deny rejects them, Prefer gives them a better score, and
	// Share limits how many of the pods that the rule applies to are on such nodes.
	Action config.FilterAction `json:"action"`
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

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RunningImageLocalityArgs are the arguments of the plugin RunningImageLocality.
type RunningImageLocalityArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Count selects what is counted for a node's score. Default: Images.
	Count config.RunningImageCount `json:"count,omitempty"`
	// SizeWeight is the percentage of a match's value that depends on the image's size, 0 to 100. Default: 0.
	SizeWeight *int32 `json:"sizeWeight,omitempty"`
	// SpreadWeight is the percentage of a match's value that depends on the share of nodes that run the image, 0 to
	// 100. The value is lower if fewer nodes run the image, so that these do not attract all pods. Default: 100.
	SpreadWeight *int32 `json:"spreadWeight,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChaosArgs are the arguments of the plugin Chaos.
type ChaosArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Namespaces are the names of the namespaces whose pods are disturbed: at least one, and never kube-system.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Seed determines all random choices: with the same seed, a pod gets the same ones at the same attempt. Default: 0.
	Seed *int64 `json:"seed,omitempty"`
	// RejectPercent is the probability that a node is rejected, in percent, 0 to 100. An attempt with a rejection
	// preempts no pod. Default: 0.
	RejectPercent *int32 `json:"rejectPercent,omitempty"`
	// MaxConsecutiveRejections is the number of consecutive attempts of a pod, 1 to 100, that may fail after Chaos
	// rejected nodes. Chaos does not disturb the next attempt. Attempts in between that fail without Chaos do not reset
	// the count. Default: 3.
	MaxConsecutiveRejections *int32 `json:"maxConsecutiveRejections,omitempty"`
	// RandomScore gives each node a random score from 0 to 100. Without it, all nodes score 0. Default: false.
	RandomScore *bool `json:"randomScore,omitempty"`
	// RandomBindPercent is the probability that a pod is bound to a random feasible node instead of the best, in
	// percent, 0 to 100. The plugin scores that node 100 and all others 0, so its weight must be higher than the sum of
	// the weights of all other score plugins and extenders. Default: 0.
	RandomBindPercent *int32 `json:"randomBindPercent,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CoschedulingArgs are the arguments of the plugin Coscheduling.
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`

	// PermitWaitingTimeSeconds is not used, because no pod waits for its gang on a node. It is here for configurations
	// of the plugin in sigs.k8s.io/scheduler-plugins. At least 0. Default: 60.
	PermitWaitingTimeSeconds *int64 `json:"permitWaitingTimeSeconds,omitempty"`
	// DeniedPGExpirationTimeSeconds is not used either. At least 0. Default: none.
	DeniedPGExpirationTimeSeconds *int64 `json:"deniedPGExpirationTimeSeconds,omitempty"`
	// RequiredTopologyKey is the key of a node label that has the same value on all nodes of a gang. The annotation
	// coscheduling.scheduler/required-topology-key of a PodGroup overrides it. Default: none.
	RequiredTopologyKey string `json:"requiredTopologyKey,omitempty"`
	// PreferredTopologyKey is the key of a node label that has the same value on all nodes of a gang if possible. The
	// annotation coscheduling.scheduler/preferred-topology-key of a PodGroup overrides it. Default: none.
	PreferredTopologyKey string `json:"preferredTopologyKey,omitempty"`
	// AttemptTimeout limits an attempt to place a gang, in which no other pod is scheduled: 1ms to 10s. Default: 1s.
	AttemptTimeout *metav1.Duration `json:"attemptTimeout,omitempty"`
	// Reservation is for how long a failed attempt keeps the nodes that it found from other pods with the same or a
	// lower priority: 0s to 1h. 0s keeps none. Default: 0s.
	Reservation *metav1.Duration `json:"reservation,omitempty"`
	// GiveUpHalfGangsAfter is the time after which the pods of a gang are evicted if fewer than its minMember have
	// nodes, while others wait: 0s to 24h. 0s never evicts. Default: 0s.
	GiveUpHalfGangsAfter *metav1.Duration `json:"giveUpHalfGangsAfter,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeCostArgs are the arguments of the plugin NodeCost. A node's price is taken from its annotation, its label or the
// table, in this order. A node without a price is scored with the median of the prices above 0.
type NodeCostArgs struct {
	metav1.TypeMeta `json:",inline"`

	// PriceAnnotation is the key of the node annotation with the price per hour, a number such as 0.096 or 96m. Empty
	// reads no annotation. Default: node-cost.scheduler/price-per-hour.
	PriceAnnotation *string `json:"priceAnnotation,omitempty"`
	// PriceLabel is the key of the node label with the price per hour. Empty reads no label. Default: empty.
	PriceLabel *string `json:"priceLabel,omitempty"`
	// Prices is a price table of at most 1,000 rows. The first row that matches a node sets its price.
	// +listType=atomic
	Prices []NodeCostPrice `json:"prices,omitempty"`
	// InstanceTypeLabel is the key of the node label with the instance type that the table matches. Default:
	// node.kubernetes.io/instance-type.
	InstanceTypeLabel *string `json:"instanceTypeLabel,omitempty"`
	// ZoneLabel is the key of the node label with the zone. Default: topology.kubernetes.io/zone.
	ZoneLabel *string `json:"zoneLabel,omitempty"`
	// CapacityTypeLabel depends on the provider, for example karpenter.sh/capacity-type. It is required if a row or
	// Spot has capacity types. Default: empty.
	CapacityTypeLabel *string `json:"capacityTypeLabel,omitempty"`
	// Strategy selects the cost by which a node is scored. Default: CheapestShare.
	Strategy config.NodeCostStrategy `json:"strategy,omitempty"`
	// Spot keeps interruptible nodes for pods that tolerate interruptions; nil disables it.
	Spot *NodeCostSpot `json:"spot,omitempty"`
}

// NodeCostPrice is a row of the price table. It matches nodes whose labels have all of the given values.
type NodeCostPrice struct {
	// InstanceType is the value of the label InstanceTypeLabel. Empty matches any value, and nodes without the label.
	InstanceType string `json:"instanceType,omitempty"`
	// Zone is the value of the label ZoneLabel. Empty matches any value, and nodes without the label.
	Zone string `json:"zone,omitempty"`
	// CapacityType is the value of the label CapacityTypeLabel. Empty matches any value, and nodes without the label.
	CapacityType string `json:"capacityType,omitempty"`
	// PricePerHour is the price of such a node per hour, 0 to 1,000,000,000, in any currency that is the same for all
	// nodes. It is required; 0 means free.
	PricePerHour *resource.Quantity `json:"pricePerHour,omitempty"`
}

// NodeCostSpot keeps nodes for some pods. For all other pods they score 0, lower than any other node.
type NodeCostSpot struct {
	// CapacityTypes are 1 to 16 values of the label CapacityTypeLabel of such nodes.
	// +listType=set
	CapacityTypes []string `json:"capacityTypes,omitempty"`
	// TolerationKey is the key of a taint. Such nodes are for pods that tolerate this taint, with any value and effect.
	// The nodes need not have the taint.
	TolerationKey string `json:"tolerationKey"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DataLocalityArgs are the arguments of the plugin DataLocality.
type DataLocalityArgs struct {
	metav1.TypeMeta `json:",inline"`

	// DatasetsAnnotation is the key of the pod annotation that lists the datasets that the pod reads, with the number
	// of bytes of each: "sales=120Gi,logs/2024=3Ti,ref". Default: data-locality.scheduler/datasets.
	DatasetsAnnotation *string `json:"datasetsAnnotation,omitempty"`
	// NodeAnnotation is the key of the node annotation that lists the datasets on the node. Empty reads no annotation.
	// Default: data-locality.scheduler/datasets.
	NodeAnnotation *string `json:"nodeAnnotation,omitempty"`
	// NodeLabelPrefix is the prefix of the node labels that name the datasets on the node. The name of a dataset is the
	// rest of a label's key; the value is ignored. Empty reads no labels. Default: "".
	NodeLabelPrefix *string `json:"nodeLabelPrefix,omitempty"`
	// Servers are at most 16 kinds of running pods that serve data. The node of such a pod has the dataset that the
	// pod's label names. The first kind that matches a pod applies.
	// +listType=atomic
	Servers []DataLocalityServer `json:"servers,omitempty"`
	// Levels are 1 to 8 distances of data from a node, the nearest first, with unique keys. Default:
	// kubernetes.io/hostname with 100 percent and topology.kubernetes.io/zone with 50.
	// +listType=map
	// +listMapKey=topologyKey
	Levels []DataLocalityLevel `json:"levels,omitempty"`
	// RequireWithin is the topology key of a level. The filter rejects nodes that do not have all of the pod's datasets
	// at this level or nearer. It ignores datasets that no node has. Empty disables the filter. Default: "".
	RequireWithin *string `json:"requireWithin,omitempty"`
}

// DataLocalityServer selects pods that serve data.
type DataLocalityServer struct {
	// Namespaces are the namespaces of the pods. Empty means all.
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector must match the pods' labels; nil selects all pods with the label.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// DatasetLabel is the key of the pod label whose value is the name of the dataset.
	DatasetLabel string `json:"datasetLabel"`
}

// DataLocalityLevel sets the value of data that is in the same domain of a topology key as the node.
type DataLocalityLevel struct {
	// TopologyKey is the key of a node label. Nodes with the same value are in the same domain.
	TopologyKey string `json:"topologyKey"`
	// Percent is the value of a byte at this level, 0 to 100, lower than at the previous level.
	Percent int32 `json:"percent"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLoadArgs are the arguments of the plugin NodeLoad.
type NodeLoadArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Source selects the source of measurements. Default: Prometheus.
	Source config.NodeLoadSource `json:"source,omitempty"`
	// Prometheus configures the source Prometheus.
	Prometheus NodeLoadPrometheus `json:"prometheus,omitempty"`
	// RefreshInterval is the time between two requests for measurements, 1s to 10m. Default: 30s.
	RefreshInterval *metav1.Duration `json:"refreshInterval,omitempty"`
	// MaxSampleAge is the maximum age of measurements that are used, more than RefreshInterval and at most 1h. Default:
	// 3m.
	MaxSampleAge *metav1.Duration `json:"maxSampleAge,omitempty"`
	// NodeMatch maps series to nodes, for resources without their own NodeMatch.
	NodeMatch NodeLoadNodeMatch `json:"nodeMatch,omitempty"`
	// Resources are 1 to 16 measured resources with unique names. At least one must have a weight or a threshold.
	// Default: cpu and memory.
	// +listType=map
	// +listMapKey=name
	Resources []NodeLoadResource `json:"resources,omitempty"`
	// Fallback selects how a node is scored by a resource that has no measurement of the node. Default: Requests.
	Fallback config.NodeLoadFallback `json:"fallback,omitempty"`
	// FilterOnStale selects how the filter treats a node without a measurement of a resource that has a threshold,
	// while enough other nodes have one. Default: Open.
	FilterOnStale config.NodeLoadFilterOnStale `json:"filterOnStale,omitempty"`
	// MinFreshNodesPercent is the share of nodes, 0 to 100, that must have measurements of a resource. With fewer, the
	// resource filters no node, and all nodes are scored by Fallback. Default: 50.
	MinFreshNodesPercent *int32 `json:"minFreshNodesPercent,omitempty"`
	// ExemptDaemonSets exempts the pods of DaemonSets from the filter. Default: true.
	ExemptDaemonSets *bool `json:"exemptDaemonSets,omitempty"`
	// ExemptPriorityAbove exempts pods of a higher priority than this from the filter; 2147483647 exempts none.
	// Default: 1999999999, which exempts system-critical pods.
	ExemptPriorityAbove *int32 `json:"exemptPriorityAbove,omitempty"`
	// LowerPriorityLoad selects how the filter treats the load of pods of a lower priority than the pod. Other values
	// than Counts need a resource with a threshold and a PodQuery. Default: Counts.
	LowerPriorityLoad config.NodeLoadLowerPriorityLoad `json:"lowerPriorityLoad,omitempty"`
}

// NodeLoadPrometheus configures the connection to a server with Prometheus' HTTP API.
type NodeLoadPrometheus struct {
	// Endpoints are 1 to 8 URLs of servers with the same data, http or https, tried in order. They contain no user,
	// password, query or fragment; a path is a prefix of the API's paths.
	// +listType=set
	Endpoints []string `json:"endpoints,omitempty"`
	// Timeout limits each request, 100ms to 1m. Default: 10s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// TLS configures the certificates of the server and of the client. Only for https.
	TLS NodeLoadTLS `json:"tls,omitempty"`
	// BearerTokenFile is the absolute path of a file with the bearer token to send. It is reloaded when it changes.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// Headers are at most 16 headers that are sent with every request, for example the tenant's name.
	// +listType=map
	// +listMapKey=name
	Headers []NodeLoadHeader `json:"headers,omitempty"`
	// Matchers are at most 16 matchers that select the series of this cluster, in every selector of NodeLoad's own
	// queries. They do not change the queries of Resources.
	// +listType=atomic
	Matchers []NodeLoadMatcher `json:"matchers,omitempty"`
}

// NodeLoadMatcher is a label matcher of PromQL.
type NodeLoadMatcher struct {
	// Label is the name of a label.
	Label string `json:"label"`
	// Operator compares the label with Value: =, !=, =~ or !~.
	Operator config.NodeLoadMatchOperator `json:"operator"`
	// Value is the text or the regular expression, in RE2's syntax and without quotes.
	Value string `json:"value"`
}

// NodeLoadTLS has the absolute paths of PEM files, which are reloaded when they change.
type NodeLoadTLS struct {
	// CAFile contains the CA certificates to trust instead of the system's.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the client's certificate and its key: both or neither.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate, if it differs from the host of the endpoint.
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify disables the verification of the server's certificate. Not allowed together with CAFile.
	// Default: false.
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
}

// NodeLoadHeader is a header of a request. It has either a value or a file with one.
type NodeLoadHeader struct {
	// Name is the header's name. Headers that the client sets itself are not allowed.
	Name string `json:"name"`
	// Value is the header's value. Everyone who can read the configuration can read it, and the scheduler logs the
	// configuration at -v=2. Use ValueFile for secrets; Authorization, Cookie and Proxy-Authorization do not allow
	// Value.
	Value string `json:"value,omitempty"`
	// ValueFile is the absolute path of a file with the value. It is reloaded when it changes.
	ValueFile string `json:"valueFile,omitempty"`
}

// NodeLoadNodeMatch maps a series to a node.
type NodeLoadNodeMatch struct {
	// Label is the label of the series that identifies the node. A port at the end of its value is ignored. Default:
	// instance.
	Label string `json:"label,omitempty"`
	// By is the property of the node that equals the label's value. Default: Auto.
	By config.NodeLoadMatchBy `json:"by,omitempty"`
}

// NodeLoadResource is a measured resource of nodes.
type NodeLoadResource struct {
	// Name begins with a letter, continues with letters, digits and hyphens, and does not end with a hyphen. It has at
	// most 54 characters, so that the key of the node annotation for Capacity is valid. For cpu, memory, network,
	// diskIO and gpu, all other fields have defaults.
	Name string `json:"name"`
	// Query is an instant query in PromQL that returns one series for each node, with the label NodeMatch.Label.
	// Default for cpu, memory, network, diskIO and gpu: a query of raw series of node_exporter and DCGM over Window.
	// Other resources require a query.
	Query string `json:"query,omitempty"`
	// TimestampQuery returns for each node the time of the newest raw sample that Query uses, in seconds since 1970. It
	// is required with Query, and not allowed without. A measurement without a timestamp has no known age and is
	// ignored.
	TimestampQuery string `json:"timestampQuery,omitempty"`
	// DeviationQuery returns for each node the standard deviation of Query, in the same unit. The strategy Risk
	// requires it if Query is given.
	DeviationQuery string `json:"deviationQuery,omitempty"`
	// PodQuery is an instant query in PromQL that returns the use of each pod, with the labels namespace and pod, as a
	// mean over Window, in cores, bytes, or another unit of the capacity. Empty: the use of pods is not measured.
	PodQuery string `json:"podQuery,omitempty"`
	// PodTimestampQuery is the TimestampQuery of PodQuery, for each pod. It is required with PodQuery, and not allowed
	// without.
	PodTimestampQuery string `json:"podTimestampQuery,omitempty"`
	// NodeMatch maps series of this resource to nodes, if its exporter labels them differently. Default of each of its
	// fields: that of NodeMatch in the arguments.
	NodeMatch *NodeLoadNodeMatch `json:"nodeMatch,omitempty"`
	// Unit is the unit of the values of Query and DeviationQuery. NodeLoad's own queries return a Ratio. Default:
	// Absolute with the source MetricsServer, otherwise Ratio.
	Unit config.NodeLoadUnit `json:"unit,omitempty"`
	// Capacity is the capacity of a node, more than 0: cores, bytes, bytes per second. The node's annotation
	// node-load.scheduler/capacity-NAME overrides it. Without both, it is the node's capacity of Estimator.Resource.
	// Without any, the load of new pods cannot be predicted, and Absolute values are ignored. Default for diskIO unless
	// the unit is Absolute: 1, which means one busy second per second.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Window is the time over which Query averages, 10s to 1h. The load of a new pod is fully visible after this time.
	// Default: 5m.
	Window *metav1.Duration `json:"window,omitempty"`
	// Threshold is the load in percent of the capacity, 1 to 100, above which a node takes no more pods. The load
	// consists of the measured load and of the pods in flight, without the pod itself. Unset disables the filter.
	Threshold *int32 `json:"threshold,omitempty"`
	// Weight is the resource's weight in the node's score, 0 to 100. 0 excludes the resource from the score. Default:
	// 1.
	Weight *int32 `json:"weight,omitempty"`
	// Strategy selects how the predicted load is converted to a score. Default: LeastUsed.
	Strategy config.NodeLoadStrategy `json:"strategy,omitempty"`
	// Target is the load in percent, 1 to 99, up to which TargetUtilization fills nodes. Default: 40.
	Target *int32 `json:"target,omitempty"`
	// Margin is the factor by which Risk multiplies the deviation, 0 to 10. Default: 1.
	Margin *float64 `json:"margin,omitempty"`
	// Sensitivity is for Risk, which raises the deviation's share of the capacity to the power of 1/Sensitivity. More
	// than 0, at most 10. Default: 1.
	Sensitivity *float64 `json:"sensitivity,omitempty"`
	// Estimator estimates the use of a pod until the measurements include it.
	Estimator NodeLoadEstimator `json:"estimator,omitempty"`
}

// NodeLoadEstimator estimates the use of a pod as the sum over its containers of round(request or limit x Factor /
// 100), which is at most the container's limit.
type NodeLoadEstimator struct {
	// Resource is the resource whose requests and limits are read. Empty reads none. A resource with a prefix, such as
	// nvidia.com/gpu, only applies to pods that request it. Default: cpu for cpu, memory for memory, nvidia.com/gpu for
	// gpu.
	Resource v1.ResourceName `json:"resource,omitempty"`
	// By selects requests or limits. Default: Requests.
	By config.NodeLoadEstimateBy `json:"by,omitempty"`
	// Factor is a percentage, 1 to 1000. Default: 85 for the resource cpu, 70 for memory, 100 for others.
	Factor *int32 `json:"factor,omitempty"`
	// Default is the use of a container without a request and a limit, at least 0. Default: 250m for the resource cpu,
	// 200M for memory, 0 for others.
	Default *resource.Quantity `json:"default,omitempty"`
	// Annotation is the key of a pod annotation with a quantity that replaces the estimate. Empty reads none.
	Annotation string `json:"annotation,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OvercommitArgs are the arguments of the plugin Overcommit: a node takes pods that ask for
// overcommit.scheduler/millicpu up to its allocatable CPU less the headroom and the predicted peak of the other pods,
// which are the ordinary ones.
type OvercommitArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Prometheus configures the connection. With the same value as in NodeLoad's arguments, both share the connection
	// and its requests.
	Prometheus NodeLoadPrometheus `json:"prometheus,omitempty"`
	// RefreshInterval is the time between two requests for measurements, 1s to 10m. Default: 1m.
	RefreshInterval *metav1.Duration `json:"refreshInterval,omitempty"`
	// MaxSampleAge is the maximum age of measurements that are used, more than RefreshInterval and at most 1h. A node
	// without such a measurement takes no more overcommitting pods. Default: 3m.
	MaxSampleAge *metav1.Duration `json:"maxSampleAge,omitempty"`
	// NodeMatch maps series to nodes.
	NodeMatch NodeLoadNodeMatch `json:"nodeMatch,omitempty"`
	// Horizon is the time, 30m to 2h, or to 24h with queries, for which the peak is predicted, from the use in the same time
	// before. Default: 1h.
	Horizon *metav1.Duration `json:"horizon,omitempty"`
	// Predictor selects how the peak of the ordinary pods is predicted. Maximum and Percentile need measurements of
	// containers; with NSigma, everything that a node uses counts as the use of ordinary pods. Default: Maximum.
	Predictor config.OvercommitPredictor `json:"predictor,omitempty"`
	// Sigmas multiplies the standard deviation in NSigma and Maximum, 0 to 10. Default: 3.
	Sigmas *float64 `json:"sigmas,omitempty"`
	// Percentile is the percentile of each pod's use in Percentile and Maximum, 50 to 100. Default: 95.
	Percentile *int32 `json:"percentile,omitempty"`
	// HeadroomPercent is the share of a node's allocatable CPU that is never overcommitted, 0 to 90. Default: 10.
	HeadroomPercent *int32 `json:"headroomPercent,omitempty"`
	// Queries replaces the built-in queries.
	Queries OvercommitQueries `json:"queries,omitempty"`
}

// OvercommitQueries has PromQL expressions, for example of recorded series. Values are in cores. The series of nodes
// have the label of NodeMatch, those of pods the labels namespace and pod. All that the predictor needs must be given,
// or none.
type OvercommitQueries struct {
	// NodeMean is the mean over the horizon of what ordinary pods use on a node, NodeDeviation its standard deviation,
	// and NodeNow what they use now.
	NodeMean      string `json:"nodeMean,omitempty"`
	NodeDeviation string `json:"nodeDeviation,omitempty"`
	NodeNow       string `json:"nodeNow,omitempty"`
	// NodeTimestamp is the time of the newest raw samples behind them.
	NodeTimestamp string `json:"nodeTimestamp,omitempty"`
	// PodPercentile is the percentile over the horizon of what a pod uses. Series of overcommitting pods do not matter.
	PodPercentile string `json:"podPercentile,omitempty"`
	// PodTimestamp is the time of the newest raw samples behind it.
	PodTimestamp string `json:"podTimestamp,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadTopologyArgs are the arguments of the plugin WorkloadTopology. It concerns only pods that PodSelector and
// Namespaces select, and pods whose annotation workload-topology.scheduler/job names their job.
type WorkloadTopologyArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Namespaces are patterns of path.Match for the namespaces of the selected pods. Empty matches all namespaces, if
	// PodSelector is set.
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// PodSelector must match the labels of the selected pods. Nil matches all pods, if Namespaces is set.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// GroupBy are 1 to 8 keys of labels of the selected pods. Pods of a namespace with the same values of all of these
	// labels are a group, for example a job. A pod without one of the labels is in no group. It is required if, and
	// only if, PodSelector or Namespaces is set.
	// +listType=set
	GroupBy []string `json:"groupBy,omitempty"`
	// Levels are 1 to 8 levels of the cluster's topology, the nearest first. Default: hosts at 0, zones at 10 and
	// regions at 50.
	// +listType=atomic
	Levels []WorkloadTopologyLevel `json:"levels,omitempty"`
	// Edges define which pods of a group communicate with each other: at most 4. Default: one edge between all pods of
	// a group. An empty list has no edges.
	// +listType=atomic
	Edges []WorkloadTopologyEdge `json:"edges,omitempty"`
	// PeersAnnotation and RoleLabel were removed. They are here so that validation can say what to write instead.
	PeersAnnotation string `json:"peersAnnotation,omitempty"`
	RoleLabel       string `json:"roleLabel,omitempty"`
	// MaxPerNode is the maximum number of pods of a group on a node, 1 to 1000, for the filter; nil is no limit.
	// Default: none.
	MaxPerNode *int32 `json:"maxPerNode,omitempty"`
	// SpreadWeight is the percentage of the score that prefers nodes with few pods of the group, 0 to 100. The rest
	// prefers nodes near peers. Default: 0.
	SpreadWeight *int32 `json:"spreadWeight,omitempty"`
	// AvoidAbove is the load in percent of the capacity, 1 to 100, above which a node scores 0. The load is that of the
	// plugin NodeLoad in the same profile; nil ignores the load. Default: none.
	AvoidAbove *int32 `json:"avoidAbove,omitempty"`
}

// WorkloadTopologyLevel is a level of the cluster's topology.
type WorkloadTopologyLevel struct {
	// TopologyKey is the key of the node label whose value is the node's domain at this level.
	TopologyKey string `json:"topologyKey"`
	// Cost is the cost of communication with a peer for which this is the nearest level with a common domain:
	// 0 to 99, higher than at the previous level. For a peer in no common domain it is 100.
	Cost int32 `json:"cost"`
}

// WorkloadTopologyEdge connects the pods of a group that two selectors match, in both directions.
type WorkloadTopologyEdge struct {
	// From and To select the pods of the two sides; nil selects all.
	From *metav1.LabelSelector `json:"from,omitempty"`
	To   *metav1.LabelSelector `json:"to,omitempty"`
	// Weight is how much two pods communicate, 1 to 100. Default: 1.
	Weight *int32 `json:"weight,omitempty"`
	// Scope and Within were removed. They are here so that validation can say what to write instead.
	Scope  string `json:"scope,omitempty"`
	Within string `json:"within,omitempty"`
}
