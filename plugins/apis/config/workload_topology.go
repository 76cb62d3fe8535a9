// SPDX-License-Identifier: Apache-2.0

package config

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxWorkloadTopologyEdges bounds the work for each pod that is added or removed: two selectors for each edge.
const MaxWorkloadTopologyEdges = 4

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
	SpreadWeight int32 `json:"spreadWeight"`
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

// setDefaults sets the defaults: pods of a job that all communicate with each other, over hosts,
// zones and regions. There is no default for which pods are a job.
func (args *WorkloadTopologyArgs) setDefaults() {
	if args.Levels == nil {
		args.Levels = []WorkloadTopologyLevel{
			{TopologyKey: v1.LabelHostname, Cost: 0},
			{TopologyKey: v1.LabelTopologyZone, Cost: 10},
			{TopologyKey: v1.LabelTopologyRegion, Cost: 50},
		}
	}
	if args.Edges == nil {
		args.Edges = []WorkloadTopologyEdge{{}}
	}
	for i := range args.Edges {
		defaultInt32(&args.Edges[i].Weight, 1)
	}
}
