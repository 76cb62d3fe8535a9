// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/pointer"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeLoadArgs are the arguments of the plugin NodeLoad.
type NodeLoadArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Source selects the source of measurements. Default: Prometheus.
	Source NodeLoadSource `json:"source,omitempty"`
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
	Fallback NodeLoadFallback `json:"fallback,omitempty"`
	// FilterOnStale selects how the filter treats a node without a measurement of a resource that has a threshold,
	// while enough other nodes have one. Default: Open.
	FilterOnStale NodeLoadFilterOnStale `json:"filterOnStale,omitempty"`
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
	LowerPriorityLoad NodeLoadLowerPriorityLoad `json:"lowerPriorityLoad,omitempty"`
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

// setDefaults sets the defaults: cpu and memory are measured, and a node without measurements passes and is scored by
// requests. The endpoints have no default.
func (args *NodeLoadArgs) setDefaults() {
	if args.Source == "" {
		args.Source = NodeLoadSourcePrometheus
	}
	setDefaultsOfMeasurements(&args.Prometheus, &args.RefreshInterval, &args.MaxSampleAge, &args.NodeMatch)
	for i := range args.Resources {
		if match := args.Resources[i].NodeMatch; match != nil {
			if match.Label == "" {
				match.Label = args.NodeMatch.Label
			}
			if match.By == "" {
				match.By = args.NodeMatch.By
			}
		}
	}
	if args.Resources == nil {
		args.Resources = []NodeLoadResource{{Name: "cpu"}, {Name: "memory"}}
	}
	if args.Source == NodeLoadSourceMetricsServer {
		setDefaultsOfMetricsServer(args.Resources)
	}
	if args.Fallback == "" {
		args.Fallback = NodeLoadFallbackRequests
	}
	if args.FilterOnStale == "" {
		args.FilterOnStale = NodeLoadFilterOpen
	}
	defaultInt32(&args.MinFreshNodesPercent, 50)
	if args.ExemptDaemonSets == nil {
		args.ExemptDaemonSets = pointer.Bool(true)
	}
	// The priority of system-critical pods is at least 2,000,000,000: SystemCriticalPriority in pkg/apis/scheduling.
	// They must not wait when all nodes are hot.
	defaultInt32(&args.ExemptPriorityAbove, 1999999999)
	if args.LowerPriorityLoad == "" {
		args.LowerPriorityLoad = NodeLoadLowerPriorityCounts
	}
	for i := range args.Resources {
		args.Resources[i].setDefaults()
	}
}
