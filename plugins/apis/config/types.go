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

	NodeLabel       string
	PreferredValues []string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExtensionPointLoggerArgs are the arguments of the plugin ExtensionPointLogger.
type ExtensionPointLoggerArgs struct {
	metav1.TypeMeta

	SampleRate float64
	Namespaces []string
	Redact     bool
	QueueSort  bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RandScoreArgs are the arguments of the plugin RandScore.
type RandScoreArgs struct {
	metav1.TypeMeta

	Seed int64
}

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
	metav1.TypeMeta

	Rules         []PodFilterRule
	DefaultAction FilterAction
}

// PodFilterRule matches pods that meet all of its conditions. At least one is required.
type PodFilterRule struct {
	Name        string
	Action      FilterAction
	PodNames    []string
	Namespaces  []string
	PodSelector *metav1.LabelSelector
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeFilterArgs are the arguments of the plugin NodeFilter.
type NodeFilterArgs struct {
	metav1.TypeMeta

	Rules         []NodeFilterRule
	DefaultAction FilterAction
}

// NodeFilterRule matches nodes that meet all of its conditions, for all pods or for some. At least one condition on the
// node is required.
type NodeFilterRule struct {
	Name              string
	Action            FilterAction
	NodeNames         []string
	NodeSelector      *metav1.LabelSelector
	Namespaces        []string
	PodSelector       *metav1.LabelSelector
	Weight            int32
	MinPercent        *int32
	MaxPercent        *int32
	WhenUnsatisfiable v1.UnsatisfiableConstraintAction
	RestrictedLabels  bool
}

// RunningImageCount selects what RunningImageLocality counts.
type RunningImageCount string

const (
	// CountImages counts each image of the incoming pod that runs on the node once, for any number of containers.
	CountImages RunningImageCount = "Images"
	// CountContainers counts every running container that uses an image of the incoming pod.
	CountContainers RunningImageCount = "Containers"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RunningImageLocalityArgs are the arguments of the plugin RunningImageLocality.
type RunningImageLocalityArgs struct {
	metav1.TypeMeta

	Count        RunningImageCount
	SizeWeight   int32
	SpreadWeight int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChaosArgs are the arguments of the plugin Chaos.
type ChaosArgs struct {
	metav1.TypeMeta

	Namespaces               []string
	Seed                     int64
	RejectPercent            int32
	MaxConsecutiveRejections int32
	RandomScore              bool
	RandomBindPercent        int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CoschedulingArgs are the arguments of the plugin Coscheduling.
type CoschedulingArgs struct {
	metav1.TypeMeta

	PermitWaitingTimeSeconds      int64
	DeniedPGExpirationTimeSeconds *int64
	RequiredTopologyKey           string
	PreferredTopologyKey          string
	AttemptTimeout                metav1.Duration
	Reservation                   metav1.Duration
	GiveUpHalfGangsAfter          metav1.Duration
}

// NodeCostStrategy selects the cost by which a node is scored.
type NodeCostStrategy string

const (
	// NodeCostCheapestNode uses the price of the whole node.
	NodeCostCheapestNode NodeCostStrategy = "CheapestNode"
	// NodeCostCheapestShare uses the price of the pod's share of the node: the larger of its shares of the node's
	// allocatable CPU and memory.
	NodeCostCheapestShare NodeCostStrategy = "CheapestShare"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeCostArgs are the arguments of the plugin NodeCost. A node's price is taken from its annotation, its label or the
// table, in this order. A node without a price is scored with the median of the prices above 0.
type NodeCostArgs struct {
	metav1.TypeMeta

	PriceAnnotation   string
	PriceLabel        string
	Prices            []NodeCostPrice
	InstanceTypeLabel string
	ZoneLabel         string
	CapacityTypeLabel string
	Strategy          NodeCostStrategy
	Spot              *NodeCostSpot
}

// NodeCostPrice is a row of the price table. It matches nodes whose labels have all of the given values.
type NodeCostPrice struct {
	InstanceType string
	Zone         string
	CapacityType string
	PricePerHour *resource.Quantity
}

// NodeCostSpot keeps nodes for some pods. For all other pods they score 0, lower than any other node.
type NodeCostSpot struct {
	CapacityTypes []string
	TolerationKey string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DataLocalityArgs are the arguments of the plugin DataLocality.
type DataLocalityArgs struct {
	metav1.TypeMeta

	DatasetsAnnotation string
	NodeAnnotation     string
	NodeLabelPrefix    string
	Servers            []DataLocalityServer
	Levels             []DataLocalityLevel
	RequireWithin      string
}

// DataLocalityServer selects pods that serve data.
type DataLocalityServer struct {
	Namespaces   []string
	Selector     *metav1.LabelSelector
	DatasetLabel string
}

// DataLocalityLevel sets the value of data that is in the same domain of a topology key as the node.
type DataLocalityLevel struct {
	TopologyKey string
	Percent     int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLoadArgs are the arguments of the plugin NodeLoad.
type NodeLoadArgs struct {
	metav1.TypeMeta

	Source               NodeLoadSource
	Prometheus           NodeLoadPrometheus
	RefreshInterval      metav1.Duration
	MaxSampleAge         metav1.Duration
	NodeMatch            NodeLoadNodeMatch
	Resources            []NodeLoadResource
	Fallback             NodeLoadFallback
	FilterOnStale        NodeLoadFilterOnStale
	MinFreshNodesPercent int32
	ExemptDaemonSets     bool
	// ExemptPriorityAbove exempts none if it is nil.
	ExemptPriorityAbove *int32
	LowerPriorityLoad   NodeLoadLowerPriorityLoad
}

// NodeLoadLowerPriorityLoad selects how the filter treats the load of pods of a lower priority.
type NodeLoadLowerPriorityLoad string

const (
	// NodeLoadLowerPriorityCounts rejects a node above a threshold, whoever causes the load.
	NodeLoadLowerPriorityCounts NodeLoadLowerPriorityLoad = "Counts"
	// NodeLoadLowerPriorityPreemptible rejects the node too, but lets preemption evict pods of a lower priority if the
	// node would not be above a threshold without what PodQuery returns for them.
	NodeLoadLowerPriorityPreemptible NodeLoadLowerPriorityLoad = "Preemptible"
	// NodeLoadLowerPriorityIgnored passes such a node.
	NodeLoadLowerPriorityIgnored NodeLoadLowerPriorityLoad = "Ignored"
)

// NodeLoadSource is a source of measurements.
type NodeLoadSource string

const (
	// NodeLoadSourcePrometheus is Prometheus, or another server with its HTTP API.
	NodeLoadSourcePrometheus NodeLoadSource = "Prometheus"
	// NodeLoadSourceMetricsServer is the resource metrics API, metrics.k8s.io, of the cluster's own API server. It has
	// cpu and memory.
	NodeLoadSourceMetricsServer NodeLoadSource = "MetricsServer"
)

// NodeLoadPrometheus configures the connection to a server with Prometheus' HTTP API.
type NodeLoadPrometheus struct {
	Endpoints       []string
	Timeout         metav1.Duration
	TLS             NodeLoadTLS
	BearerTokenFile string
	Headers         []NodeLoadHeader
	Matchers        []NodeLoadMatcher
}

// NodeLoadMatchOperator is an operator of PromQL that compares a label with a value.
type NodeLoadMatchOperator string

const (
	// NodeLoadEqual selects series whose label has the value; an empty value, those without the label.
	NodeLoadEqual NodeLoadMatchOperator = "="
	// NodeLoadNotEqual selects all other series.
	NodeLoadNotEqual NodeLoadMatchOperator = "!="
	// NodeLoadMatches selects series whose whole label matches the regular expression.
	NodeLoadMatches NodeLoadMatchOperator = "=~"
	// NodeLoadNotMatches selects all other series.
	NodeLoadNotMatches NodeLoadMatchOperator = "!~"
)

// NodeLoadMatcher is a label matcher of PromQL.
type NodeLoadMatcher struct {
	Label    string
	Operator NodeLoadMatchOperator
	Value    string
}

// NodeLoadTLS has the absolute paths of PEM files, which are reloaded when they change.
type NodeLoadTLS struct {
	CAFile             string
	CertFile           string
	KeyFile            string
	ServerName         string
	InsecureSkipVerify bool
}

// NodeLoadHeader is a header of a request. It has either a value or a file with one.
type NodeLoadHeader struct {
	Name      string
	Value     string
	ValueFile string
}

// NodeLoadMatchBy is the property of a node that identifies it in Prometheus.
type NodeLoadMatchBy string

const (
	// NodeLoadMatchAuto is any of the following. A series that identifies one node by one property and another node by
	// another is used for neither.
	NodeLoadMatchAuto NodeLoadMatchBy = "Auto"
	// NodeLoadMatchName is the node's name.
	NodeLoadMatchName NodeLoadMatchBy = "Name"
	// NodeLoadMatchInternalIP is any address of type InternalIP.
	NodeLoadMatchInternalIP NodeLoadMatchBy = "InternalIP"
	// NodeLoadMatchHostname is any address of type Hostname, or the label kubernetes.io/hostname.
	NodeLoadMatchHostname NodeLoadMatchBy = "Hostname"
	// NodeLoadMatchProviderID is spec.providerID, or the part after its last slash.
	NodeLoadMatchProviderID NodeLoadMatchBy = "ProviderID"
)

// NodeLoadNodeMatch maps a series to a node.
type NodeLoadNodeMatch struct {
	Label string
	By    NodeLoadMatchBy
}

// NodeLoadUnit is the unit of the values that a query returns.
type NodeLoadUnit string

const (
	// NodeLoadRatio is a fraction of the capacity: 1 is all of it.
	NodeLoadRatio NodeLoadUnit = "Ratio"
	// NodeLoadPercent is a percentage of the capacity: 100 is all of it.
	NodeLoadPercent NodeLoadUnit = "Percent"
	// NodeLoadAbsolute is the unit of the capacity: cores, bytes, bytes per second.
	NodeLoadAbsolute NodeLoadUnit = "Absolute"
)

// NodeLoadStrategy selects how a predicted load is converted to a score.
type NodeLoadStrategy string

const (
	// NodeLoadLeastUsed scores an idle node 100 and a full node 0.
	NodeLoadLeastUsed NodeLoadStrategy = "LeastUsed"
	// NodeLoadTargetUtilization scores a node at the target highest, so that nodes are filled up to the target and not
	// above.
	NodeLoadTargetUtilization NodeLoadStrategy = "TargetUtilization"
	// NodeLoadRisk scores by mean and standard deviation: a varying load lowers the score.
	NodeLoadRisk NodeLoadStrategy = "Risk"
)

// NodeLoadResource is a measured resource of nodes.
type NodeLoadResource struct {
	Name              string
	Query             string
	TimestampQuery    string
	DeviationQuery    string
	PodQuery          string
	PodTimestampQuery string
	NodeMatch         *NodeLoadNodeMatch
	Unit              NodeLoadUnit
	Capacity          *resource.Quantity
	Window            metav1.Duration
	// Threshold disables the filter if it is nil.
	Threshold   *int32
	Weight      int32
	Strategy    NodeLoadStrategy
	Target      int32
	Margin      float64
	Sensitivity float64
	Estimator   NodeLoadEstimator
}

// NodeLoadEstimateBy selects the value of a container from which its use is estimated.
type NodeLoadEstimateBy string

const (
	// NodeLoadEstimateRequests is the container's request.
	NodeLoadEstimateRequests NodeLoadEstimateBy = "Requests"
	// NodeLoadEstimateLimits is the container's limit, or its request if that is higher or if it has no limit.
	NodeLoadEstimateLimits NodeLoadEstimateBy = "Limits"
)

// NodeLoadEstimator estimates the use of a pod as the sum over its containers of round(request or limit x Factor /
// 100), which is at most the container's limit.
type NodeLoadEstimator struct {
	Resource   v1.ResourceName
	By         NodeLoadEstimateBy
	Factor     int32
	Default    resource.Quantity
	Annotation string
}

// NodeLoadFallback selects how a node is scored by a resource without a measurement. While other nodes have one, the
// node's score is at most that of a node with their mean load.
type NodeLoadFallback string

const (
	// NodeLoadFallbackRequests uses the requests of the node's pods as its load.
	NodeLoadFallbackRequests NodeLoadFallback = "Requests"
	// NodeLoadFallbackNeutral scores 50.
	NodeLoadFallbackNeutral NodeLoadFallback = "Neutral"
)

// NodeLoadFilterOnStale selects how the filter treats a node without a measurement.
type NodeLoadFilterOnStale string

const (
	// NodeLoadFilterOpen passes the node.
	NodeLoadFilterOpen NodeLoadFilterOnStale = "Open"
	// NodeLoadFilterClosed rejects the node.
	NodeLoadFilterClosed NodeLoadFilterOnStale = "Closed"
)

// OvercommitResource is the extended resource that overcommitting pods ask for, in thousandths of a core. No node
// publishes it.
const OvercommitResource v1.ResourceName = "overcommit.scheduler/millicpu"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OvercommitArgs are the arguments of the plugin Overcommit.
type OvercommitArgs struct {
	metav1.TypeMeta

	Prometheus      NodeLoadPrometheus
	RefreshInterval metav1.Duration
	MaxSampleAge    metav1.Duration
	NodeMatch       NodeLoadNodeMatch
	Horizon         metav1.Duration
	Predictor       OvercommitPredictor
	Sigmas          float64
	Percentile      int32
	HeadroomPercent int32
	Queries         OvercommitQueries
}

// OvercommitPredictor selects how the peak of a node's ordinary pods is predicted.
type OvercommitPredictor string

const (
	// OvercommitMaximum is the largest of NSigma, Percentile and the use now.
	OvercommitMaximum OvercommitPredictor = "Maximum"
	// OvercommitNSigma is the mean of the node's use plus a multiple of its standard deviation.
	OvercommitNSigma OvercommitPredictor = "NSigma"
	// OvercommitPercentile is the sum over the pods of a percentile of their use.
	OvercommitPercentile OvercommitPredictor = "Percentile"
	// OvercommitRequests is the sum of the pods' requests, and needs no measurements.
	OvercommitRequests OvercommitPredictor = "Requests"
)

// OvercommitQueries has PromQL expressions whose values are in cores, and whose times are in seconds since 1970.
type OvercommitQueries struct {
	NodeMean      string
	NodeDeviation string
	NodeNow       string
	NodeTimestamp string
	PodPercentile string
	PodTimestamp  string
}

// MaxWorkloadTopologyEdges bounds the work for each pod that is added or removed: two selectors for each edge.
const MaxWorkloadTopologyEdges = 4

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadTopologyArgs are the arguments of the plugin WorkloadTopology. It concerns only pods that PodSelector and
// Namespaces select, and pods whose annotation workload-topology.scheduler/job names their job.
type WorkloadTopologyArgs struct {
	metav1.TypeMeta

	Namespaces      []string
	PodSelector     *metav1.LabelSelector
	GroupBy         []string
	Levels          []WorkloadTopologyLevel
	Edges           []WorkloadTopologyEdge
	PeersAnnotation string
	RoleLabel       string
	MaxPerNode      *int32
	SpreadWeight    int32
	AvoidAbove      *int32
}

// WorkloadTopologyLevel is a level of the cluster's topology.
type WorkloadTopologyLevel struct {
	TopologyKey string
	Cost        int32
}

// WorkloadTopologyEdge connects the pods of a group that two selectors match, in both directions.
type WorkloadTopologyEdge struct {
	From   *metav1.LabelSelector
	To     *metav1.LabelSelector
	Weight int32
	Scope  string
	Within string
}
