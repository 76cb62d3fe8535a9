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

// limits bound the memory of an index. What is beyond is ignored, and looked at again when its node changes.
type limits struct {
	// datasets is how many names are known.
	datasets int
	// ofNode is how many names of a node's annotation and labels count.
	ofNode int
	// holdings is on how many nodes datasets are, added up.
	holdings int
}

// standard limits are about 170 MB with the longest names, each on ten nodes (BenchmarkIndexAtItsLimits); a dataset with
// three replicas takes about 340 bytes. The API server lets a node have 256 KiB of annotations.
var standard = limits{datasets: 200000, ofNode: 10000, holdings: 2000000}

// index knows which nodes hold which datasets, as the scheduler's snapshot has it. It follows what changes on nodes:
// an informer of its own would know the same a little earlier or later than the other plugins of the cycle, and need
// locks.
//
// There is no lock. A cycle updates the index and marks its domains in PreFilter or PreScore; Filter and Score only read,
// from several goroutines that start later. No cycle runs beside another one, neither in the scheduler nor in an extender.
type index struct {
	annotation, labelPrefix string
	servers                 []server
	limits                  limits
	// ignore is told of each name that is ignored.
	ignore func(where place, why reason, count int)

	follower changes.Follower
	levels   int
	domains  *topology.Domains
	marks    map[*topology.Domain]*mark
	// nodes are those of the snapshot, by the very objects that it has: a pointer is found faster than a name.
	nodes    map[*v1.Node]*node
	datasets map[string]*dataset
	// serving are the pods that serve data, as the snapshot has them; with nil, if there was no room for their dataset.
	serving map[*v1.Pod]*dataset
	// holdings counts on how many nodes datasets are, and ignored the names of nodes and servers that are ignored now.
	holdings, ignored int
	// changes counts how often it has become another one which nodes there are, where, and what they hold.
	changes int64
	// cycle is the number of the cycle that marked domains last, and reading how often nodes were read.
	cycle, reading int64
}

// server is a kind of pods that serve data. The namespaces are nil for all, and so is the selector.
type server struct {
	namespaces sets.String
	selector   labels.Selector
	label      string
}

// dataset is one that some node holds.
type dataset struct {
	name string
	// holders are the nodes that hold it, each with how many say so: its annotation, its labels, its pods.
	holders map[*node]int32
	// reading is when a node that is read named it last.
	reading int64
}

// node is one of the snapshot.
type node struct {
	// marks are those of its domains, one a level, nil where it is in none. They come first, and not in a slice of their
	// own: to fetch them from memory is most of what Score costs.
	marks [maxLevels]*mark
	in    []*topology.Domain
	// annotation and labels are what own was made of: the datasets that the node itself names.
	annotation string
	labels     []string
	own        []*dataset
	// ignored is how many of its names are ignored.
	ignored int
}

// mark is what a cycle notes of a domain: which of its pod's datasets are held there.
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

// update brings the index up to date with a snapshot.
func (x *index) update(lister framework.SharedLister) error {
	return x.follower.Follow(lister, x)
}

// NodeChanged is of changes.Observer.
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
	// Also where they are equal: texts of the object before would keep their memory.
	n.annotation, n.labels = annotation, labelled
	if !same || n.ignored > 0 {
		x.read(n)
	}
}

// enter finds a node's domains.
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

// leave takes a node out of domains. A mark goes with the last node of its domain.
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

// read reads what a node names. It takes what was there before away afterwards, so that what stays is never gone. A
// name counts once, so that own has no more than what is counted in holdings.
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

// hold notes that a node holds a dataset, for one more reason. It returns nil if there are too many already.
func (x *index) hold(n *node, name string) *dataset {
	held, known := x.datasets[name]
	if !known {
		if len(x.datasets) >= x.limits.datasets || x.holdings >= x.limits.holdings {
			return nil
		}
		// A copy: the name is a part of an annotation, which need not be kept for it.
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

// release takes back what hold noted.
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

// PodAdded is of changes.Observer.
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

// PodRemoved is of changes.Observer.
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

// serves returns the dataset that a pod serves: empty if it serves none, does not run yet, or is about to end.
func (x *index) serves(pod *v1.Pod) string {
	for i := range x.servers {
		server := &x.servers[i]
		name := pod.Labels[server.label]
		if name != "" && pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil &&
			(server.namespaces == nil || server.namespaces.Has(pod.Namespace)) &&
			(server.selector == nil || server.selector.Matches(labels.Set(pod.Labels))) {
			return name
		}
	}
	return ""
}

// mark begins a cycle: it notes in their domains which nodes hold these datasets. That is quick where few nodes do.
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

// held returns which of the cycle's datasets the domains of a node hold, by level. A node that is not known is in none.
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
