// SPDX-License-Identifier: Apache-2.0

package config

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	metav1.TypeMeta `json:",inline"`

	// PriceAnnotation is the key of the node annotation with the price per hour, a number such as 0.096 or 96m. Empty
	// reads no annotation. Default: node-cost.scheduler/price-per-hour.
	PriceAnnotation *string `json:"priceAnnotation,omitempty"`
	// PriceLabel is the key of the node label with the price per hour. Empty reads no label. Default: empty.
	PriceLabel string `json:"priceLabel"`
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
	CapacityTypeLabel string `json:"capacityTypeLabel"`
	// Strategy selects the cost by which a node is scored. Default: CheapestShare.
	Strategy NodeCostStrategy `json:"strategy,omitempty"`
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

// setDefaults sets the defaults: the labels that Kubernetes itself documents. It has none for the
// capacity type.
func (args *NodeCostArgs) setDefaults() {
	defaultString(&args.PriceAnnotation, "node-cost.scheduler/price-per-hour")
	defaultString(&args.InstanceTypeLabel, v1.LabelInstanceTypeStable)
	defaultString(&args.ZoneLabel, v1.LabelTopologyZone)
	if args.Strategy == "" {
		args.Strategy = NodeCostCheapestShare
	}
}
