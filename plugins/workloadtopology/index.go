// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/topology"
)

// index counts the bound and assumed pods of each group by node, and those of each side of each edge by the domains of
// their nodes. At the beginning of a cycle it applies the changes since the last cycle. It does not change during a
// cycle. Terminating pods do not count.
type index struct {
	groupBy    []string
	roleLabel  string // "" if no annotation is read
	maxPerNode int32  // 0 for no limit
	levels     int
	edges      []*edge

	follower changes.Follower
	domains  *topology.Domains
	nodes    map[*v1.Node]*node // by their Node objects, which are immutable
	groups   map[string]*group
	peers    map[peersKey]*peers
	marks    marks
}

// marks has the weights of the scored pod's peers in each domain. The pods of a job are scheduled one after another, so
// only the first of them iterates over all domains. Later changes update the sums.
type marks struct {
	// group is the marked group, whose pods are counted by node.
	group   string
	keys    []peersKey
	weights []int64
	// total is the weight of all peers, including those without a domain. sums has the weights by domain number.
	total int64
	sums  []int64
	// round counts the calls of mark.
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

// mark computes the sums for these peers and weights, and the number of pods of a group on each node.
func (x *index) mark(group string, keys []peersKey, weights []int64) {
	if x.marks.round > 0 && x.marks.group == group && reflect.DeepEqual(x.marks.keys, keys) && reflect.DeepEqual(x.marks.weights, weights) {
		x.marks.grow(x.domains.Numbers())
		return
	}
	x.marks = marks{group: group, keys: keys, weights: weights, sums: x.marks.sums[:0], round: x.marks.round + 1}
	x.marks.grow(x.domains.Numbers())
	for i, key := range keys {
		counted := x.peers[key]
		if counted == nil {
			continue
		}
		x.marks.total += weights[i] * counted.total
		for domain, n := range counted.at {
			x.marks.add(domain, weights[i]*n)
		}
	}
	if pods := x.groups[group]; pods != nil {
		for on, n := range pods.on {
			on.add(x.marks.round, n)
		}
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
}

// peersKey identifies the pods of one side of an edge, or of a role.
type peersKey struct {
	// side is twice the number of an edge, plus one for the side To. For roles it is the constant role.
	side int
	// scope is the group of the peers, their namespace, or "". For roles it is the group and the role.
	scope string
}

const role = -1

// peers has the numbers of pods of one side of an edge, or of a role, in one scope.
type peers struct {
	total int64
	// The field in has the number of pods whose node has a domain, by level; the field at, the number in each domain.
	in []int64
	at map[*topology.Domain]int64
}

func newPeers(levels int) *peers {
	return &peers{in: make([]int64, levels), at: make(map[*topology.Domain]int64)}
}

// count adds n pods on a node in these domains.
func (p *peers) count(domains []*topology.Domain, n int64) {
	p.total += n
	for level, domain := range domains {
		if domain == nil {
			continue
		}
		p.in[level] += n
		if p.at[domain] += n; p.at[domain] == 0 {
			delete(p.at, domain)
		}
	}
}

// edge is an edge of the arguments.
type edge struct {
	from, to labels.Selector
	// same is true if both sides select the same pods, which are then counted once.
	same   bool
	scope  config.WorkloadTopologyScope
	weight int64
	// within is the number of the required level, or -1.
	within int
}

func newIndex(args *config.WorkloadTopologyArgs) (*index, error) {
	x := &index{
		groupBy: args.GroupBy,
		levels:  len(args.Levels),
		nodes:   make(map[*v1.Node]*node),
		groups:  make(map[string]*group),
		peers:   make(map[peersKey]*peers),
	}
	if args.MaxPerNode != nil {
		x.maxPerNode = *args.MaxPerNode
	}
	if args.PeersAnnotation != "" {
		x.roleLabel = args.RoleLabel
	}
	var keys []string
	for _, level := range args.Levels {
		keys = append(keys, level.TopologyKey)
	}
	x.domains = topology.New(keys)
	for i := range args.Edges {
		given := &args.Edges[i]
		e := &edge{same: reflect.DeepEqual(given.From, given.To), scope: given.Scope, weight: int64(given.Weight), within: -1}
		for level, key := range keys {
			if key == given.Within {
				e.within = level
			}
		}
		var err error
		if e.from, err = compile(given.From); err != nil {
			return nil, err
		}
		if e.to, err = compile(given.To); err != nil {
			return nil, err
		}
		x.edges = append(x.edges, e)
	}
	return x, nil
}

// compile returns a selector, which selects all pods for nil.
func compile(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// group returns the name of a pod's group, or "" without a group. Names are unique, because values of labels contain no
// slashes and no commas.
func (x *index) group(pod *v1.Pod) string {
	var name strings.Builder
	name.WriteString(pod.Namespace)
	for i, key := range x.groupBy {
		value := pod.Labels[key]
		if value == "" {
			return ""
		}
		if i == 0 {
			name.WriteByte('/')
		} else {
			name.WriteByte(',')
		}
		name.WriteString(value)
	}
	return name.String()
}

// scopeOf returns the scope that a pod shares with the other side of an edge. It returns false if the edge needs a
// group and the pod has none.
func (e *edge) scopeOf(pod *v1.Pod, group string) (scope string, ok bool) {
	switch e.scope {
	case config.WorkloadTopologyGroup:
		return group, group != ""
	case config.WorkloadTopologyNamespace:
		return pod.Namespace, true
	}
	return "", true
}

// sides calls do for each side of each edge that selects a pod.
func (x *index) sides(pod *v1.Pod, group string, do func(e *edge, key peersKey)) {
	set := labels.Set(pod.Labels)
	for i, e := range x.edges {
		scope, ok := e.scopeOf(pod, group)
		if !ok {
			continue
		}
		if e.from.Matches(set) {
			do(e, peersKey{side: 2 * i, scope: scope})
		}
		if !e.same && e.to.Matches(set) {
			do(e, peersKey{side: 2*i + 1, scope: scope})
		}
	}
}

// other returns the other side of an edge.
func (e *edge) other(key peersKey) peersKey {
	if !e.same {
		key.side ^= 1
	}
	return key
}

func roleKey(group, name string) peersKey {
	return peersKey{side: role, scope: group + "/" + name}
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
	group := x.group(pod)
	if group != "" {
		x.countGroup(group, on, n)
		if name := pod.Labels[x.roleLabel]; name != "" {
			x.countPeer(roleKey(group, name), on, int64(n))
		}
	}
	x.sides(pod, group, func(_ *edge, key peersKey) { x.countPeer(key, on, int64(n)) })
}

func (x *index) countGroup(name string, on *node, n int32) {
	pods := x.groups[name]
	if pods == nil {
		pods = &group{on: make(map[*node]int32), full: make(map[string]bool)}
		x.groups[name] = pods
	}
	if pods.on[on] += n; pods.on[on] == 0 {
		delete(pods.on, on)
	}
	if x.maxPerNode > 0 && pods.on[on] >= x.maxPerNode {
		pods.full[on.name] = true
	} else {
		delete(pods.full, on.name)
	}
	if len(pods.on) == 0 {
		delete(x.groups, name)
	}
	if x.marks.round > 0 && name == x.marks.group {
		on.add(x.marks.round, n)
	}
}

func (x *index) countPeer(key peersKey, on *node, n int64) {
	counted := x.peers[key]
	if counted == nil {
		counted = newPeers(x.levels)
		x.peers[key] = counted
	}
	counted.count(on.domains, n)
	if counted.total == 0 {
		delete(x.peers, key)
	}
	for i := range x.marks.keys {
		if x.marks.keys[i] != key {
			continue
		}
		x.marks.total += x.marks.weights[i] * n
		for _, domain := range on.domains {
			if domain != nil {
				x.marks.add(domain, x.marks.weights[i]*n)
			}
		}
	}
}
