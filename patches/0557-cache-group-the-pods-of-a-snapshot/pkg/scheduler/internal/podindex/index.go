// SPDX-License-Identifier: Apache-2.0

// Package podindex groups the pods of a snapshot: those with the same labels, of the labels that selectors ask for, and
// those with equal affinity terms. A plugin matches a few groups instead of all pods of all nodes.
package podindex

import (
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	// A cluster is small, and has no index, below MinNodes and minPods.
	MinNodes, minPods = 16, 1000
	// The index may be built firstBuilds times, and once more for each updatesPerBuild updates of the snapshot.
	firstBuilds, updatesPerBuild = 8, 64
	// idleUpdates is the number of updates after which an index that was not asked is dropped.
	idleUpdates = 1000
	// maxKeys and maxTopologies bound the labels of pods and of nodes.
	maxKeys, maxTopologies = 32, 32
	// Groups are useless if there are more than fewGroups, and more than one for each podsPerGroup pods.
	fewGroups, podsPerGroup = 1024, 4
)

// Index has the groups of the pods of a snapshot, and changes with it. It is empty until a plugin asks. The zero value
// is ready to use.
//
// What is counted for a node is kept with it, and subtracted later: a PodInfo does not change while it is in a
// NodeInfo.
type Index struct {
	mutex sync.Mutex
	// updates counts the updates of the snapshot, atomically; asked and built are such numbers, of the last time.
	updates, asked, built int64
	builds                int64
	// replaced is the number of pods added and removed by the last update.
	replaced int

	// slots are numbers of nodes, by name. They are indices of nodes; free slots have no node.
	slots   map[string]int32
	nodes   []*v1.Node
	counted []counted
	free    []int32
	// keys are the labels by which pods are grouped. refused are those that made the groups useless, with the update.
	keys    []string
	refused map[string]int64
	kinds   groups
	// terms are the affinity terms of pods. in is nil if they are useless.
	terms      groups
	topologies map[string]*topology
	text       []byte
	spare      [][]int64
}

// counted is what is counted for a node.
type counted struct {
	generation int64
	pods       []*framework.PodInfo
}

// groups are by the namespace of the pods, or of the pods that a term selects, and by content.
type groups struct {
	in             map[string]map[string]*group
	count, members int
}

// group is a set of pods with the same namespace and labels, or with equal terms.
type group struct {
	labels      labels.Set
	terminating bool
	Term
	// on has the members on each node, by ascending slots.
	on []members
}

type members struct{ slot, n int32 }

// Term is an affinity term of scheduled pods.
type Term struct {
	*framework.AffinityTerm
	// Anti is true for required anti-affinity.
	Anti bool
	// Weight is 0 for required terms, and negative for preferred anti-affinity.
	Weight int32
}

// Begin returns the index of the lister's snapshot, locked until End; or nil if the plugin must read the pods. The
// nodes are all of the snapshot. The selectors are those to match pods with.
func Begin(
	lister framework.SharedLister, all []*framework.NodeInfo, askTerms bool, selectors ...labels.Selector,
) *Index {
	x := indexOf(lister)
	if x == nil {
		return nil
	}
	x.mutex.Lock()
	if !x.ready(all, askTerms, selectors) {
		x.mutex.Unlock()
		return nil
	}
	x.asked = x.updates
	return x
}

// BeginExisting is Begin for a plugin that only asks for topologies. It does not build the index.
func BeginExisting(lister framework.SharedLister, all []*framework.NodeInfo) *Index {
	x := indexOf(lister)
	if x == nil {
		return nil
	}
	x.mutex.Lock()
	if x.slots == nil || len(x.slots) != len(all) {
		x.mutex.Unlock()
		return nil
	}
	return x
}

// indexOf returns the index of the lister's snapshot, or nil.
func indexOf(lister framework.SharedLister) *Index {
	if indexed, ok := lister.(interface{ PodIndex() *Index }); ok {
		return indexed.PodIndex()
	}
	return nil
}

func (x *Index) ready(all []*framework.NodeInfo, askTerms bool, selectors []labels.Selector) bool {
	missing, ok := x.missing(selectors)
	build := x.slots == nil || len(missing) > 0 || askTerms && x.terms.in == nil && x.updates-x.built > idleUpdates
	if allowed := x.updates / updatesPerBuild; ok && build && x.builds < firstBuilds+allowed {
		pods := 0
		for _, info := range all {
			pods += len(info.Pods)
		}
		if len(all) < MinNodes && pods < minPods {
			return false
		}
		if x.builds < allowed {
			x.builds = allowed // unused ones of long ago do not count
		}
		x.builds++
		x.build(all, pods, missing)
		missing, ok = x.missing(selectors)
	}
	return ok && len(missing) == 0 && len(x.slots) == len(all) && !(askTerms && x.terms.in == nil)
}

// End unlocks the index.
func (x *Index) End() { x.mutex.Unlock() }

// missing returns labels of the selectors by which pods are not grouped, and false if they cannot be.
func (x *Index) missing(selectors []labels.Selector) (missing []string, ok bool) {
	for _, selector := range selectors {
		requirements, _ := selector.Requirements()
	next:
		for i := range requirements {
			key := requirements[i].Key()
			for _, known := range [][]string{x.keys, missing} {
				for _, known := range known {
					if key == known {
						continue next
					}
				}
			}
			if at, refused := x.refused[key]; refused && x.updates-at <= idleUpdates {
				return nil, false
			}
			missing = append(missing, key)
		}
	}
	return missing, len(missing) == 0 || len(x.keys)+len(missing) <= maxKeys
}

// build groups the pods of all nodes, also by these labels.
func (x *Index) build(all []*framework.NodeInfo, pods int, missing []string) {
	keys := x.keys
	x.clear()
	x.built = x.updates
	x.keys = append(append(x.keys, keys...), missing...)
	x.slots, x.topologies = make(map[string]int32, len(all)), make(map[string]*topology)
	x.kinds.in, x.terms.in = make(map[string]map[string]*group), make(map[string]map[string]*group)
	for _, info := range all {
		x.update(info)
		if x.terms.useless(pods) {
			x.terms = groups{}
		}
		if x.kinds.useless(pods) {
			x.clear()
			x.keys = keys
			if x.refused == nil {
				x.refused = make(map[string]int64)
			}
			for _, key := range missing {
				x.refused[key] = x.updates
			}
			return
		}
	}
	x.replaced = 0
}

func (x *Index) clear() {
	x.slots, x.nodes, x.counted, x.free, x.keys = nil, nil, nil, nil, nil
	x.kinds, x.terms, x.topologies, x.spare = groups{}, groups{}, nil, nil
}

// BeginUpdate is called before each update of the snapshot.
func (x *Index) BeginUpdate() {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	atomic.AddInt64(&x.updates, 1)
	if idle := x.updates-x.asked > idleUpdates; idle || x.kinds.useless(x.kinds.members) {
		x.clear()
		x.refused = nil
	} else if x.replaced > fewGroups && x.replaced > x.kinds.members/2 || len(x.free) > len(x.slots)+MinNodes {
		// Reading the pods costs less than following them, or most slots are of nodes that are gone.
		x.clear()
	} else if x.terms.useless(x.kinds.members) {
		x.terms = groups{}
	}
	x.replaced = 0
}

// Update counts a new or changed node of the snapshot.
func (x *Index) Update(info *framework.NodeInfo) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.slots != nil {
		x.update(info)
	}
}

func (x *Index) update(info *framework.NodeInfo) {
	slot, known := x.slots[info.Node().Name]
	if !known {
		if last := len(x.free) - 1; last >= 0 {
			slot, x.free = x.free[last], x.free[:last]
		} else {
			slot = int32(len(x.nodes))
			x.nodes, x.counted = append(x.nodes, nil), append(x.counted, counted{})
		}
		x.slots[info.Node().Name] = slot
	}
	info.Slot = slot
	x.set(slot, info.Node(), counted{info.Generation, info.Pods})
}

// Remove is called for a node that is no longer in the snapshot.
func (x *Index) Remove(name string) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if slot, known := x.slots[name]; known {
		x.set(slot, nil, counted{})
		delete(x.slots, name)
		x.free = append(x.free, slot)
	}
}

// set replaces a node. Most pods are at the same place as before, because NodeInfo moves the last one into a gap.
func (x *Index) set(slot int32, node *v1.Node, now counted) {
	before := x.counted[slot]
	x.counted[slot] = now
	if x.nodes[slot] != node {
		x.nodes[slot] = node
		for key, t := range x.topologies {
			t.set(slot, node, key)
		}
	}
	for i, pod := range now.pods {
		if i >= len(before.pods) || before.pods[i] != pod {
			x.count(slot, pod, 1)
		}
	}
	for i, pod := range before.pods {
		if i >= len(now.pods) || now.pods[i] != pod {
			x.count(slot, pod, -1)
		}
	}
}

// count adds or subtracts a pod.
func (x *Index) count(slot int32, info *framework.PodInfo, n int32) {
	pod := info.Pod
	x.replaced++
	terminating := pod.DeletionTimestamp != nil
	x.text = strconv.AppendBool(x.text[:0], terminating)
	for _, key := range x.keys {
		value, ok := pod.Labels[key]
		x.write(strconv.FormatBool(ok), value)
	}
	if g := x.kinds.change(pod.Namespace, x.text, slot, n); g != nil {
		g.labels, g.terminating = pod.Labels, terminating
	}
	for i := range info.RequiredAffinityTerms {
		x.countTerm(slot, n, Term{&info.RequiredAffinityTerms[i], false, 0})
	}
	for i := range info.RequiredAntiAffinityTerms {
		x.countTerm(slot, n, Term{&info.RequiredAntiAffinityTerms[i], true, 0})
	}
	for i := range info.PreferredAffinityTerms {
		t := &info.PreferredAffinityTerms[i]
		x.countTerm(slot, n, Term{&t.AffinityTerm, false, t.Weight})
	}
	for i := range info.PreferredAntiAffinityTerms {
		t := &info.PreferredAntiAffinityTerms[i]
		x.countTerm(slot, n, Term{&t.AffinityTerm, false, -t.Weight})
	}
}

func (x *Index) countTerm(slot, n int32, t Term) {
	if x.terms.in == nil {
		return
	}
	x.text = strconv.AppendInt(strconv.AppendBool(x.text[:0], t.Anti), int64(t.Weight), 10)
	x.write(t.TopologyKey)
	for _, selector := range []labels.Selector{t.Selector, t.NamespaceSelector} {
		// A selector of everything and one of nothing both have an empty text.
		_, selectable := selector.Requirements()
		x.write(strconv.FormatBool(selectable), selector.String())
	}
	x.write(t.Namespaces.List()...)
	// A term that may select pods of several namespaces is in the namespace "".
	namespace := ""
	if _, selectable := t.NamespaceSelector.Requirements(); !selectable && len(t.Namespaces) == 1 {
		namespace = t.Namespaces.UnsortedList()[0]
	}
	if g := x.terms.change(namespace, x.text, slot, n); g != nil {
		g.Term = t
	}
}

// write appends texts unambiguously.
func (x *Index) write(texts ...string) {
	for _, text := range texts {
		x.text = append(strconv.AppendInt(append(x.text, ' '), int64(len(text)), 10), ':')
		x.text = append(x.text, text...)
	}
}

// change adds or subtracts a member. It returns the group if it is new, and drops an empty one.
func (gs *groups) change(namespace string, text []byte, slot, n int32) (created *group) {
	byText := gs.in[namespace]
	if byText == nil {
		byText = make(map[string]*group)
		gs.in[namespace] = byText
	}
	g := byText[string(text)]
	if g == nil {
		g = &group{}
		created, byText[string(text)] = g, g
		gs.count++
	}
	gs.members += int(n)
	if g.add(slot, n); len(g.on) == 0 {
		gs.count--
		if delete(byText, string(text)); len(byText) == 0 {
			delete(gs.in, namespace)
		}
	}
	return created
}

func (gs *groups) useless(pods int) bool { return gs.count > fewGroups && gs.count > pods/podsPerGroup }

func (g *group) add(slot, n int32) {
	i := len(g.on)
	if i > 0 && g.on[i-1].slot >= slot {
		i = sort.Search(i, func(i int) bool { return g.on[i].slot >= slot })
	}
	if i == len(g.on) || g.on[i].slot != slot {
		g.on = append(g.on, members{})
		copy(g.on[i+1:], g.on[i:])
		g.on[i].slot, g.on[i].n = slot, 0
	}
	if g.on[i].n += n; g.on[i].n == 0 {
		g.on = append(g.on[:i], g.on[i+1:]...)
	}
}
