// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	Unit NodeLoadUnit `json:"unit,omitempty"`
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
	Strategy NodeLoadStrategy `json:"strategy,omitempty"`
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
	// Resource is the resource whose requests and limits are read. Empty reads none. A resource with a prefix, such as
	// nvidia.com/gpu, only applies to pods that request it. Default: cpu for cpu, memory for memory, nvidia.com/gpu for
	// gpu.
	Resource v1.ResourceName `json:"resource,omitempty"`
	// By selects requests or limits. Default: Requests.
	By NodeLoadEstimateBy `json:"by,omitempty"`
	// Factor is a percentage, 1 to 1000. Default: 85 for the resource cpu, 70 for memory, 100 for others.
	Factor *int32 `json:"factor,omitempty"`
	// Default is the use of a container without a request and a limit, at least 0. Default: 250m for the resource cpu,
	// 200M for memory, 0 for others.
	Default *resource.Quantity `json:"default,omitempty"`
	// Annotation is the key of a pod annotation with a quantity that replaces the estimate. Empty reads none.
	Annotation string `json:"annotation,omitempty"`
}

// setDefaultsOfMetricsServer sets the defaults for a metrics-server, which reports cores and bytes as means over
// seconds.
func setDefaultsOfMetricsServer(resources []NodeLoadResource) {
	for i := range resources {
		if resources[i].Unit == "" {
			resources[i].Unit = NodeLoadAbsolute
		}
		defaultDuration(&resources[i].Window, time.Minute)
	}
}

// setDefaults sets the defaults of a resource, except its queries: the plugin builds the queries of
// built-in resources from the window and the label of the nodes.
func (args *NodeLoadResource) setDefaults() {
	if args.Unit == "" {
		args.Unit = NodeLoadRatio
	}
	// A disk can be busy for one second a second. A resource in bytes or operations has its own capacity.
	if args.Capacity == nil && args.Name == "diskIO" && args.Unit != NodeLoadAbsolute {
		args.Capacity = resource.NewQuantity(1, resource.DecimalSI)
	}
	defaultDuration(&args.Window, 5*time.Minute)
	defaultInt32(&args.Weight, 1)
	if args.Strategy == "" {
		args.Strategy = NodeLoadLeastUsed
	}
	defaultInt32(&args.Target, 40)
	defaultFloat64(&args.Margin, 1)
	defaultFloat64(&args.Sensitivity, 1)
	if args.Estimator.Resource == "" {
		switch args.Name {
		case "cpu":
			args.Estimator.Resource = v1.ResourceCPU
		case "memory":
			args.Estimator.Resource = v1.ResourceMemory
		case "gpu":
			args.Estimator.Resource = "nvidia.com/gpu"
		}
	}
	args.Estimator.setDefaults()
}

// setDefaults sets the defaults of an estimator by its resource, not by the name of the measured resource: pods
// rarely use all of the CPU and memory that they request, and pods without requests use some. Requests count instead of
// limits, which are often a multiple of the use.
func (args *NodeLoadEstimator) setDefaults() {
	factor, usedByDefault := int32(100), resource.NewQuantity(0, resource.DecimalSI)
	switch args.Resource {
	case v1.ResourceCPU:
		factor, usedByDefault = 85, resource.NewMilliQuantity(250, resource.DecimalSI)
	case v1.ResourceMemory:
		factor, usedByDefault = 70, resource.NewScaledQuantity(200, resource.Mega)
	}
	if args.By == "" {
		args.By = NodeLoadEstimateRequests
	}
	defaultInt32(&args.Factor, factor)
	if args.Default == nil {
		args.Default = usedByDefault
	}
}
