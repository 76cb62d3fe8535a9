// SPDX-License-Identifier: Apache-2.0

package config

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	NodeLabelPrefix string `json:"nodeLabelPrefix"`
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
	RequireWithin string `json:"requireWithin"`
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

// setDefaults sets the defaults: pods and nodes have the same annotation, and data in the zone of a
// node are worth half of those on the node.
func (args *DataLocalityArgs) setDefaults() {
	defaultString(&args.DatasetsAnnotation, "data-locality.scheduler/datasets")
	defaultString(&args.NodeAnnotation, "data-locality.scheduler/datasets")
	if args.Levels == nil {
		args.Levels = []DataLocalityLevel{
			{TopologyKey: v1.LabelHostname, Percent: 100},
			{TopologyKey: v1.LabelTopologyZone, Percent: 50},
		}
	}
}
