// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/topology"
)

// limits bound the memory of an index. Names beyond a limit are ignored, and read again when their node changes.
type limits struct {
	// datasets bounds the number of known names.
	datasets int
	// ofNode bounds the number of names of a node's annotation and labels.
	ofNode int
	// holdings bounds the sum over the datasets of the nodes that hold them.
	holdings int
}

// standard limits are about 170 MB with the longest names, each on ten nodes (BenchmarkIndexAtItsLimits); a dataset
// with three replicas takes about 340 bytes. The API server lets a node have 256 KiB of annotations.
var standard = limits{datasets: 200000, ofNode: 10000, holdings: 2000000}

// index maps datasets to the nodes that hold them in the scheduler's snapshot. It follows the changes of the snapshot:
// its own informer would be a little ahead of or behind the other plugins of the cycle, and would need locks.
//
// It has no lock. A cycle updates the index and marks its domains in PreFilter or PreScore; Filter and Score only read,
// in goroutines that start later. Cycles do not run in parallel, neither in the scheduler nor in an extender.
type index struct {
	annotation, labelPrefix string
	servers                 []server
	limits                  limits
	// ignore is called for ignored names.
	ignore func(where place, why reason, count int)

	follower changes.Follower
	levels   int
	domains  *topology.Domains
	marks    map[*topology.Domain]*mark
	// nodes are the nodes of the snapshot, by its objects: looking up a pointer is faster than a name.
	nodes    map[*v1.Node]*node
	datasets map[string]*dataset
	// serving are the pods of the snapshot that serve data, with their datasets, or nil beyond a limit.
	serving map[*v1.Pod]*dataset
	// holdings is the sum over the datasets of the nodes that hold them. ignored is the number of ignored names of
	// nodes and servers.
	holdings, ignored int
	// changes counts the changes of nodes, of their domains, and of the datasets that they hold.
	changes int64
	// cycle is the number of the last cycle that marked domains. reading counts the calls of read.
	cycle, reading int64
}

// server is a kind of pods that serve data. Nil namespaces and a nil selector match all pods.
type server struct {
	namespaces sets.String
	selector   labels.Selector
	label      string
}

// dataset is a dataset that some node holds.
type dataset struct {
	name string
	// holders are the nodes that hold it, each with the number of sources: its annotation, its labels, its pods.
	holders map[*node]int32
	// reading is the value of index.reading when it was last named.
	reading int64
}

// node is a node of the snapshot.
type node struct {
	// marks are the marks of its domains, one for each level, or nil without a domain. They are the first field, and an
	// array instead of a slice, because most of the time of Score is spent on fetching them from memory.
	marks [maxLevels]*mark
	in    []*topology.Domain
	// annotation and labels are the texts from which own was read: the datasets that the node itself names.
	annotation string
	labels     []string
	own        []*dataset
	// ignored is the number of its ignored names.
	ignored int
}

// mark holds the datasets of a cycle's pod that are in a domain.
type mark struct {
	nodes int
	cycle int64
	held  set
}

func newIndex(keys []string, ignore func(place, reason, int)) *index {
	return &index{
		limits: standard, ignore: ignore, levels: len(keys), domains: topology.New(keys),
		marks: map[*topology.Domain]*mark{}, nodes: map[*v1.Node]*node{}, datasets: map[string]*dataset{}, serving: map[*v1.Pod]*dataset{},
	}
}

// update applies the changes of a snapshot.
func (x *index) update(lister framework.SharedLister) error {
	return x.follower.Follow(lister, x)
}

// NodeChanged implements changes.Observer.
func (x *index) NodeChanged(before, after *v1.Node, _ []*v1.Pod) {
	if after == nil {
		gone := x.nodes[before]
		x.leave(gone.in)
		x.release(gone, gone.own)
		x.ignored -= gone.ignored
		delete(x.nodes, before)
		x.changes++
		return
	}
	n, known := x.nodes[before]
	delete(x.nodes, before)
	if !known {
		n = &node{}
	}
	x.nodes[after] = n
	if !known {
		x.enter(n, after)
	} else if !x.domains.Same(n.in, after) {
		left := n.in
		x.enter(n, after)
		x.leave(left)
	}
	annotation, labelled := "", x.labelled(after)
	if x.annotation != "" {
		annotation = after.Annotations[x.annotation]
	}
	same := annotation == n.annotation && equal(labelled, n.labels)
	// Equal texts are replaced too, because those of the earlier object would keep its memory.
	n.annotation, n.labels = annotation, labelled
	if !same || n.ignored > 0 {
		x.read(n)
	}
}

// enter adds a node to its domains.
func (x *index) enter(n *node, object *v1.Node) {
	x.changes++
	n.in, n.marks = x.domains.Enter(object), [maxLevels]*mark{}
	for level, domain := range n.in {
		if domain == nil {
			continue
		}
		m, known := x.marks[domain]
		if !known {
			m = &mark{}
			x.marks[domain] = m
		}
		m.nodes++
		n.marks[level] = m
	}
}

// leave removes a node from its domains. The mark of a domain is deleted with its last node.
func (x *index) leave(in []*topology.Domain) {
	x.domains.Leave(in)
	for _, domain := range in {
		if domain == nil {
			continue
		}
		if m := x.marks[domain]; m.nodes > 1 {
			m.nodes--
		} else {
			delete(x.marks, domain)
		}
	}
}

// labelled returns the names of the datasets in a node's labels, in order.
func (x *index) labelled(object *v1.Node) []string {
	if x.labelPrefix == "" {
		return nil
	}
	var names []string
	for key := range object.Labels {
		if strings.HasPrefix(key, x.labelPrefix) && len(key) > len(x.labelPrefix) {
			names = append(names, key[len(x.labelPrefix):])
		}
	}
	sort.Strings(names)
	return names
}

// read reads the names of a node. It releases the earlier datasets afterwards, so that those that stay are never
// removed. Each name counts once, so own has the datasets that are counted in holdings.
func (x *index) read(n *node) {
	before, again, beyond := n.own, 0, 0
	n.own = nil
	x.reading++
	hold := func(name string) {
		if held, known := x.datasets[name]; known && held.reading == x.reading {
			again++
			return
		}
		if len(n.own) < x.limits.ofNode {
			if held := x.hold(n, name); held != nil {
				held.reading = x.reading
				n.own = append(n.own, held)
				return
			}
		}
		beyond++
	}
	for _, name := range n.labels {
		hold(name)
	}
	bad := forEachName(n.annotation, hold)
	x.release(n, before)
	x.ignored += bad + beyond - n.ignored
	n.ignored = bad + beyond
	x.ignore(ofNode, malformed, bad)
	x.ignore(ofNode, repeated, again)
	x.ignore(ofNode, tooMany, beyond)
}

// hold adds one more source for a dataset on a node. It returns nil beyond a limit.
func (x *index) hold(n *node, name string) *dataset {
	held, known := x.datasets[name]
	if !known {
		if len(x.datasets) >= x.limits.datasets || x.holdings >= x.limits.holdings {
			return nil
		}
		// The copy avoids keeping the whole annotation in memory.
		held = &dataset{name: string([]byte(name)), holders: map[*node]int32{}}
		x.datasets[held.name] = held
	}
	if held.holders[n] == 0 {
		if x.holdings >= x.limits.holdings {
			return nil
		}
		x.holdings++
		x.changes++
	}
	held.holders[n]++
	return held
}

// release removes one source of each dataset on a node.
func (x *index) release(n *node, datasets []*dataset) {
	for _, held := range datasets {
		if held.holders[n]--; held.holders[n] > 0 {
			continue
		}
		delete(held.holders, n)
		x.holdings--
		x.changes++
		if len(held.holders) == 0 {
			delete(x.datasets, held.name)
		}
	}
}

// PodAdded implements changes.Observer.
func (x *index) PodAdded(on *v1.Node, pod *v1.Pod) {
	name := x.serves(pod)
	if name == "" {
		return
	}
	held := x.hold(x.nodes[on], name)
	x.serving[pod] = held
	if held == nil {
		x.ignored++
		x.ignore(ofServer, tooMany, 1)
	}
}

// PodRemoved implements changes.Observer.
func (x *index) PodRemoved(on *v1.Node, pod *v1.Pod) {
	held, serves := x.serving[pod]
	if !serves {
		return
	}
	delete(x.serving, pod)
	if held == nil {
		x.ignored--
		return
	}
	x.release(x.nodes[on], []*dataset{held})
}

// serves returns the dataset that a pod serves, or "" if it serves none, does not run yet, or is terminating.
func (x *index) serves(pod *v1.Pod) string {
	if pod.Status.Phase != v1.PodRunning || pod.DeletionTimestamp != nil {
		return ""
	}
	return x.datasetOf(pod)
}

// datasetOf returns the dataset that a pod serves while it runs, or "".
func (x *index) datasetOf(pod *v1.Pod) string {
	for i := range x.servers {
		server := &x.servers[i]
		name := pod.Labels[server.label]
		if name != "" && (server.namespaces == nil || server.namespaces.Has(pod.Namespace)) &&
			(server.selector == nil || server.selector.Matches(labels.Set(pod.Labels))) {
			return name
		}
	}
	return ""
}

// mark begins a cycle: it marks the domains of the nodes that hold these datasets. That is fast if few nodes do.
func (x *index) mark(datasets []*dataset) {
	x.cycle++
	for i, held := range datasets {
		for n := range held.holders {
			for _, m := range n.marks[:x.levels] {
				if m == nil {
					continue
				}
				if m.cycle != x.cycle {
					m.cycle, m.held = x.cycle, 0
				}
				m.held |= 1 << uint(i)
			}
		}
	}
}

// held returns the cycle's datasets in the domains of a node, by level. An unknown node has none.
func (x *index) held(object *v1.Node) (held [maxLevels]set) {
	if n, known := x.nodes[object]; known {
		for level, m := range n.marks[:x.levels] {
			if m != nil && m.cycle == x.cycle {
				held[level] = m.held
			}
		}
	}
	return held
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
