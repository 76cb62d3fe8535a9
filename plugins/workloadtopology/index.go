// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/topology"
)

// index counts the bound and assumed pods of each group by node, and those of each side of each edge by the domains of
// their nodes. At the beginning of a cycle it applies the changes since the last cycle. It does not change during a
// cycle. Terminating pods do not count.
type index struct {
	grouping
	maxPerNode int32 // 0 for no limit

	follower changes.Follower
	domains  *topology.Domains
	nodes    map[*v1.Node]*node // by their Node objects, which are immutable
	groups   map[string]*group
	marks    marks
}

// marks has the weights of the scored pod's peers in each domain. The pods of a job are scheduled one after another, so
// only the first of them iterates over all domains. Later changes update the sums.
type marks struct {
	// group is the marked group, whose pods are counted by node.
	group string
	// weights are the weights of the peers by side.
	weights sides
	// total is the weight of all peers, including those without a domain. sums has the weights by domain number.
	total int64
	sums  []int64
	// round counts the calls of mark that computed the sums.
	round uint64
}

// grow ensures that all domains have sums, including those without peers.
func (m *marks) grow(numbers int) {
	if missing := numbers - len(m.sums); missing > 0 {
		m.sums = append(m.sums, make([]int64, missing)...)
	}
}

// add adds n to the sum of a domain.
func (m *marks) add(domain *topology.Domain, n int64) {
	m.grow(domain.Number + 1)
	m.sums[domain.Number] += n
}

// mark computes the sums for a group and these weights, and the number of pods of the group on each node.
func (x *index) mark(name string, weights sides) {
	if x.marks.round > 0 && x.marks.group == name && x.marks.weights == weights {
		x.marks.grow(x.domains.Numbers())
		return
	}
	x.marks = marks{group: name, weights: weights, sums: x.marks.sums[:0], round: x.marks.round + 1}
	x.marks.grow(x.domains.Numbers())
	counted := x.groups[name]
	if counted == nil {
		return
	}
	for side := range counted.peers {
		x.marks.total += weights[side] * counted.peers[side].total
		for domain, n := range counted.peers[side].at {
			x.marks.add(domain, weights[side]*n)
		}
	}
	for on, n := range counted.on {
		on.add(x.marks.round, n)
	}
}

// node is a node of the snapshot. Its data are stored together, because a cycle reads hundreds of nodes that are not in
// the CPU cache.
type node struct {
	name    string
	domains []*topology.Domain
	// numbers has the number of the domain at each level, or the constant none.
	numbers []int32
	room    [4]int32
	// pods is the number of pods of the marked group on the node, valid for one round.
	pods  int32
	round uint64
}

const none = -1

// enter adds a node to its domains.
func (x *index) enter(on *node, object *v1.Node) {
	on.name, on.domains, on.numbers = object.Name, x.domains.Enter(object), on.room[:0]
	for _, domain := range on.domains {
		number := int32(none)
		if domain != nil {
			number = int32(domain.Number)
		}
		on.numbers = append(on.numbers, number)
	}
}

// add adds to the number of pods of the marked group on the node.
func (n *node) add(round uint64, pods int32) {
	if n.round != round {
		n.round, n.pods = round, 0
	}
	n.pods += pods
}

// podsIn returns how many pods of the group that was marked in a round are on the node.
func (n *node) podsIn(round uint64) int32 {
	if n.round != round {
		return 0
	}
	return n.pods
}

// group has the number of pods of a group by node.
type group struct {
	on map[*node]int32
	// full has the names of the nodes with maxPerNode pods of the group.
	full map[string]bool
	// peers counts the pods of each side of each edge.
	peers []peers
}

// peers has the number of pods of one side of an edge, and their number in each domain.
type peers struct {
	total int64
	at    map[*topology.Domain]int64
}

func newIndex(args *config.WorkloadTopologyArgs) (*index, error) {
	grouping, err := newGrouping(args)
	if err != nil {
		return nil, err
	}
	x := &index{grouping: grouping, nodes: make(map[*v1.Node]*node), groups: make(map[string]*group)}
	if args.MaxPerNode != nil {
		x.maxPerNode = *args.MaxPerNode
	}
	var keys []string
	for _, level := range args.Levels {
		keys = append(keys, level.TopologyKey)
	}
	x.domains = topology.New(keys)
	return x, nil
}

// newGroup returns a group without pods.
func (x *index) newGroup() *group {
	g := &group{on: make(map[*node]int32), full: make(map[string]bool), peers: make([]peers, 2*len(x.edges))}
	for side := range g.peers {
		g.peers[side].at = make(map[*topology.Domain]int64)
	}
	return g
}

// NodeChanged implements changes.Observer.
func (x *index) NodeChanged(before, after *v1.Node, pods []*v1.Pod) {
	switch {
	case before == nil:
		x.nodes[after] = &node{}
		x.enter(x.nodes[after], after)
	case after == nil:
		x.domains.Leave(x.nodes[before].domains)
		delete(x.nodes, before)
	default:
		on := x.nodes[before]
		delete(x.nodes, before)
		x.nodes[after] = on
		if x.domains.Same(on.domains, after) {
			return
		}
		for _, pod := range pods {
			x.count(on, pod, -1)
		}
		x.domains.Leave(on.domains)
		x.enter(on, after)
		for _, pod := range pods {
			x.count(on, pod, 1)
		}
	}
}

// PodAdded implements changes.Observer.
func (x *index) PodAdded(node *v1.Node, pod *v1.Pod) { x.count(x.nodes[node], pod, 1) }

// PodRemoved implements changes.Observer.
func (x *index) PodRemoved(node *v1.Node, pod *v1.Pod) { x.count(x.nodes[node], pod, -1) }

// count adds a pod on a node to the counts, or subtracts it.
func (x *index) count(on *node, pod *v1.Pod, n int32) {
	if pod.DeletionTimestamp != nil {
		return
	}
	name := x.groupOf(pod)
	if name == "" {
		return
	}
	counted := x.groups[name]
	if counted == nil {
		counted = x.newGroup()
		x.groups[name] = counted
	}
	marked := x.marks.round > 0 && name == x.marks.group
	counted.count(on, n, x.maxPerNode)
	if marked {
		on.add(x.marks.round, n)
	}
	for side, is := range x.sidesOf(pod) {
		if is == 0 {
			continue
		}
		counted.peers[side].count(on.domains, int64(n))
		if marked {
			x.marks.count(side, on.domains, int64(n))
		}
	}
	if len(counted.on) == 0 {
		delete(x.groups, name)
	}
}

// count adds n pods on a node.
func (g *group) count(on *node, n, maxPerNode int32) {
	if g.on[on] += n; g.on[on] == 0 {
		delete(g.on, on)
	}
	if maxPerNode > 0 && g.on[on] >= maxPerNode {
		g.full[on.name] = true
	} else {
		delete(g.full, on.name)
	}
}

// count adds n pods on a node in these domains.
func (p *peers) count(domains []*topology.Domain, n int64) {
	p.total += n
	for _, domain := range domains {
		if domain == nil {
			continue
		}
		if p.at[domain] += n; p.at[domain] == 0 {
			delete(p.at, domain)
		}
	}
}

// count adds n pods of a side on a node in these domains.
func (m *marks) count(side int, domains []*topology.Domain, n int64) {
	m.total += m.weights[side] * n
	for _, domain := range domains {
		if domain != nil {
			m.add(domain, m.weights[side]*n)
		}
	}
}
