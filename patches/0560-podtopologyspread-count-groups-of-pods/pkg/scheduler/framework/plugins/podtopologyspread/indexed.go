// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	"math"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
)

var _ framework.CachingPlugin = &PodTopologySpread{}

// CompareCache counts the pods of the index again.
func (pl *PodTopologySpread) CompareCache(nodes map[string]*framework.NodeInfo) []string {
	return podindex.Compare(pl.sharedLister, nodes)
}

// indexed has the numbers of nodes for the constraints of a pod, by slot.
type indexed struct {
	*podindex.Index
	// topologies are those of the topology keys.
	topologies []podindex.Topology
	// matching are the numbers of pods that match the selectors.
	matching [][]int32
	required nodeaffinity.RequiredNodeAffinity
	// everywhere is true if the pod requires nothing of its node.
	everywhere bool
}

// begin returns nil if there is no index. Otherwise the caller calls End.
func (pl *PodTopologySpread) begin(
	pod *v1.Pod, constraints []topologySpreadConstraint, nodes []*framework.NodeInfo,
) *indexed {
	selectors := make([]labels.Selector, len(constraints))
	for i := range constraints {
		selectors[i] = constraints[i].Selector
	}
	x := &indexed{Index: podindex.Begin(pl.sharedLister, nodes, false, selectors...)}
	if x.Index == nil {
		return nil
	}
	for i, c := range constraints {
		x.topologies = append(x.topologies, x.Topology(c.TopologyKey))
		if i > 0 && reflect.DeepEqual(c.Selector, selectors[i-1]) {
			x.matching = append(x.matching, x.matching[i-1])
		} else {
			x.matching = append(x.matching, x.Matching(pod.Namespace, c.Selector))
		}
	}
	affinity := pod.Spec.Affinity
	x.required = nodeaffinity.GetRequiredNodeAffinity(pod)
	x.everywhere = len(pod.Spec.NodeSelector) == 0 && (affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil)
	return x
}

// domains are those of a topology key. Constraints with the same key share them.
type domains struct {
	podindex.Topology
	// pods is the number of matching pods by the number of the domain's value, or uncounted.
	pods []int32
	// critical are the critical paths of hard constraints, as in preFilterState.
	critical [2]struct{ value, pods int32 }
}

// uncounted marks a domain without a node that counts. Other numbers may fall below zero: RemovePod subtracts
// terminating pods, which are not counted.
const uncounted = int32(math.MinInt32)

// newDomains returns uncounted domains for each constraint, and nil for the topology key to leave out.
func (x *indexed) newDomains(constraints []topologySpreadConstraint, without string) []*domains {
	all := make([]*domains, len(constraints))
	for i := range constraints {
		key := constraints[i].TopologyKey
		for j := range constraints[:i] {
			if constraints[j].TopologyKey == key {
				all[i] = all[j]
			}
		}
		if all[i] == nil && key != without {
			all[i] = &domains{Topology: x.topologies[i], pods: make([]int32, len(x.topologies[i].Names))}
			for number := range all[i].pods {
				all[i].pods[number] = uncounted
			}
		}
	}
	return all
}

// domain returns the number of pods of a constraint's domain. A missing label counts as an empty one.
func (x *indexed) domain(all []*domains, constraint int, slot int32) *int32 {
	number := x.topologies[constraint].BySlot[slot]
	if number == podindex.NoValue {
		number = podindex.Empty
	}
	return &all[constraint].pods[number]
}

// count adds the matching pods of a node to its domains that are not uncounted.
func (x *indexed) count(all []*domains, slot int32) {
	for i := range all {
		if n := x.matching[i][slot]; n != 0 && all[i] != nil {
			if pods := x.domain(all, i, slot); *pods != uncounted {
				*pods += n
			}
		}
	}
}

// haveAll reports whether the node of a slot has a value for each topology key.
func (x *indexed) haveAll(slot int32) bool {
	for i := range x.topologies {
		if x.topologies[i].BySlot[slot] == podindex.NoValue {
			return false
		}
	}
	return true
}

// allowed reports whether the pod may run on the node of a slot.
func (x *indexed) allowed(slot int32) bool {
	node := x.Node(slot)
	if x.everywhere || node == nil {
		return node != nil
	}
	// Ignore parsing errors for backwards compatibility.
	match, _ := x.required.Match(node)
	return match
}
