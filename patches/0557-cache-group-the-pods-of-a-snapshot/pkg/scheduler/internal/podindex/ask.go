// SPDX-License-Identifier: Apache-2.0

package podindex

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// NoValue is the number of a node without the label, Unknown that of an unknown value, and Empty that of the empty one.
const NoValue, Unknown, Empty = int32(-1), int32(-2), int32(0)

// topology has the number of the value of a label, by slot.
type topology struct {
	numbers []int32
	*Values
	asked int64
}

// Values are the numbered values of a label. They are immutable once a plugin has them.
type Values struct {
	Names   []string
	Numbers map[string]int32
	given   bool
}

// Topology has the values of a label at one update of the snapshot.
type Topology struct {
	*Values
	// BySlot has the number of each slot's value, until the next update.
	BySlot []int32
	Key    string
	nodes  []*v1.Node
	index  *Index
	update int64
}

// Of returns the number of a node's value.
func (t *Topology) Of(info *framework.NodeInfo) int32 {
	slot := int(info.Slot)
	if slot < len(t.nodes) && t.nodes[slot] == info.Node() && t.update == atomic.LoadInt64(&t.index.updates) {
		return t.BySlot[slot]
	}
	value, ok := info.Node().Labels[t.Key]
	if !ok {
		return NoValue
	}
	if number, ok := t.Numbers[value]; ok {
		return number
	}
	return Unknown
}

func (t *topology) set(slot int32, node *v1.Node, key string) {
	for int(slot) >= len(t.numbers) {
		t.numbers = append(t.numbers, NoValue)
	}
	t.numbers[slot] = NoValue
	if node == nil {
		return
	}
	value, ok := node.Labels[key]
	if !ok {
		return
	}
	number, ok := t.Numbers[value]
	if !ok {
		if t.given {
			names, numbers := append([]string(nil), t.Names...), make(map[string]int32, len(t.Names)+1)
			for number, name := range names {
				numbers[name] = int32(number)
			}
			t.Values = &Values{Names: names, Numbers: numbers}
		}
		number = int32(len(t.Names))
		t.Names, t.Numbers[value] = append(t.Names, value), number
	}
	t.numbers[slot] = number
}

// The methods below are called between Begin and End.

// Slots returns the number of slots.
func (x *Index) Slots() int32 { return int32(len(x.nodes)) }

// Node returns the node of a slot, or nil.
func (x *Index) Node(slot int32) *v1.Node { return x.nodes[slot] }

// Slot returns the slot of a node, and false if this object is not in the snapshot.
func (x *Index) Slot(node *v1.Node) (int32, bool) {
	slot, ok := x.slots[node.Name]
	return slot, ok && x.nodes[slot] == node
}

// Topology returns the values of a label.
func (x *Index) Topology(key string) Topology {
	t := x.topologies[key]
	if t == nil || len(t.Names) > 2*len(x.slots)+MinNodes {
		// It is new, or most values are of nodes that are gone.
		if t == nil && len(x.topologies) == maxTopologies {
			oldest := ""
			for key, other := range x.topologies {
				if oldest == "" || other.asked < x.topologies[oldest].asked {
					oldest = key
				}
			}
			delete(x.topologies, oldest)
		}
		t = &topology{Values: &Values{Names: []string{""}, Numbers: map[string]int32{"": Empty}}}
		x.topologies[key] = t
		for slot := range x.nodes {
			t.set(int32(slot), x.nodes[slot], key)
		}
	}
	t.asked, t.given = x.updates, true
	return Topology{t.Values, t.numbers, key, x.nodes, x, x.updates}
}

// Matching returns the number of pods in a namespace that a selector matches, by slot, without terminating ones.
func (x *Index) Matching(namespace string, selector labels.Selector) []int32 {
	pods := make([]int32, len(x.nodes))
	for _, kind := range x.kinds.in[namespace] {
		if !kind.terminating && selector.Matches(kind.labels) {
			for _, on := range kind.on {
				pods[on.slot] += on.n
			}
		}
	}
	return pods
}

// Sums are sums of weights by the values of topology keys.
type Sums struct {
	index *Index
	byKey []sum
}

type sum struct {
	Topology
	weights []int64
}

// NewSums returns empty sums.
func (x *Index) NewSums() *Sums { return &Sums{index: x} }

// Take calls do for each sum that is not zero. The sums are empty afterwards.
func (s *Sums) Take(do func(key, value string, weight int64)) {
	for _, of := range s.byKey {
		for number, weight := range of.weights {
			if weight != 0 {
				do(of.Key, of.Names[number], weight)
				of.weights[number] = 0
			}
		}
		s.index.spare = append(s.index.spare, of.weights)
	}
	s.byKey = nil
}

// Empty reports whether there are no weights.
func (s *Sums) Empty() bool { return s == nil || len(s.byKey) == 0 }

// Of returns the sum for a node, over all topology keys.
func (s *Sums) Of(info *framework.NodeInfo) (weight int64) {
	for i := range s.byKey {
		of := &s.byKey[i]
		if number := of.Of(info); number >= 0 {
			weight += of.weights[number]
		}
	}
	return weight
}

// by returns the sums by a topology key.
func (s *Sums) by(key string) *sum {
	for i := range s.byKey {
		if s.byKey[i].Key == key {
			return &s.byKey[i]
		}
	}
	of := sum{Topology: s.index.Topology(key)}
	n, spare := len(of.Names), s.index.spare
	if last := len(spare) - 1; last >= 0 {
		// One that is too small is dropped, so that there are never more than were in use at once.
		of.weights, s.index.spare = spare[last], spare[:last]
	}
	if cap(of.weights) < n {
		of.weights = make([]int64, n, n+n/8)
	}
	of.weights = of.weights[:n]
	s.byKey = append(s.byKey, of)
	return &s.byKey[len(s.byKey)-1]
}

func (s *Sums) add(key string, g *group, weight int64) {
	of := s.by(key)
	for _, on := range g.on {
		if number := of.BySlot[on.slot]; number != NoValue {
			of.weights[number] += int64(on.n) * weight
		}
	}
}

// AddTerms adds the terms of scheduled pods that match a pod, with the weights that the function returns.
func (s *Sums) AddTerms(pod *v1.Pod, namespaceLabels labels.Set, namespaceSelectors bool, weight func(*Term) int64) {
	namespaces := []string{pod.Namespace, ""}
	if pod.Namespace == "" {
		namespaces = namespaces[:1]
	}
	for _, namespace := range namespaces {
		for _, g := range s.index.terms.in[namespace] {
			if w := weight(&g.Term); w != 0 && g.Matches(pod, namespaceLabels, namespaceSelectors) {
				s.add(g.TopologyKey, g, w)
			}
		}
	}
}

// AddPods adds the pods that all these terms match, once for each of the terms' topology keys. Namespace selectors were
// merged into the namespaces, so they select all namespaces or none.
func (s *Sums) AddPods(weight int64, namespaceSelectors bool, terms []framework.AffinityTerm) {
	if len(terms) == 0 {
		return
	}
	in := func(namespace string) {
		for i := range terms {
			t := &terms[i]
			everywhere := namespaceSelectors && t.NamespaceSelector.Matches(labels.Set(nil))
			if !everywhere && !t.Namespaces.Has(namespace) {
				return
			}
		}
	next:
		for _, kind := range s.index.kinds.in[namespace] {
			for i := range terms {
				if !terms[i].Selector.Matches(kind.labels) {
					continue next
				}
			}
			for i := range terms {
				s.add(terms[i].TopologyKey, kind, weight)
			}
		}
	}
	if namespaceSelectors && terms[0].NamespaceSelector.Matches(labels.Set(nil)) {
		for namespace := range s.index.kinds.in {
			in(namespace)
		}
		return
	}
	for namespace := range terms[0].Namespaces {
		in(namespace)
	}
}
