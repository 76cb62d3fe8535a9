// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"reflect"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// maxStatuses is the number of different statuses that Rejected can have.
const maxStatuses = 64

// Rejected has the status with which filters rejected each node of the snapshot, by the node's index. It holds no node
// and no pod.
type Rejected struct {
	byNode   []uint8 // the index in statuses, plus 1
	statuses []*Status
	counts   []int // of nodes, by status
	priority int32
	// noVictims is 1 if preemption has found no pod of lower priority on any node that removing pods might help.
	noVictims int32
}

// NewRejected returns the rejections of a pod by nodes, all to be set.
func NewRejected(pod *v1.Pod, nodes int) *Rejected {
	return &Rejected{byNode: make([]uint8, nodes), priority: corev1helpers.PodPriority(pod)}
}

// Set sets the status of a node. It returns false if there are too many different ones.
func (r *Rejected) Set(node int, status *Status) bool {
	if before := r.byNode[node]; before > 0 {
		r.counts[before-1]--
	}
	at := 0
	for at < len(r.statuses) && r.statuses[at] != status {
		at++
	}
	if at == len(r.statuses) {
		for at = 0; at < len(r.statuses) && !Same(r.statuses[at], status); {
			at++
		}
	}
	if at == maxStatuses {
		return false
	}
	if at == len(r.statuses) {
		r.statuses, r.counts = append(r.statuses, nil), append(r.counts, 0)
	}
	r.statuses[at] = status
	r.byNode[node] = uint8(at + 1)
	r.counts[at]++
	return true
}

// Same reports whether two rejections by filters are equal.
func Same(a, b *Status) bool {
	return a.Code() == b.Code() && a.FailedPlugin() == b.FailedPlugin() && reflect.DeepEqual(a.Reasons(), b.Reasons())
}

// Status returns the status of a node.
func (r *Rejected) Status(node int) *Status { return r.statuses[r.byNode[node]-1] }

// Overlooks reports whether it is known that no node has a pod of lower priority, and this one has some.
func (r *Rejected) Overlooks(node int, nodeInfo *NodeInfo) bool {
	if atomic.LoadInt32(&r.noVictims) == 1 && r.Status(node).Code() != UnschedulableAndUnresolvable {
		for _, podInfo := range nodeInfo.Pods {
			if corev1helpers.PodPriority(podInfo.Pod) < r.priority {
				return true
			}
		}
	}
	return false
}

// Reasons returns the number of nodes for each reason, as for a FitError.
func (r *Rejected) Reasons() map[string]int {
	reasons := make(map[string]int)
	for i, n := range r.counts {
		if n > 0 {
			for _, reason := range r.statuses[i].Reasons() {
				reasons[reason] += n
			}
		}
	}
	return reasons
}

// Plugins returns the names of the plugins that rejected nodes.
func (r *Rejected) Plugins() sets.String {
	plugins := sets.NewString()
	for i, n := range r.counts {
		if n > 0 {
			plugins.Insert(r.statuses[i].FailedPlugin())
		}
	}
	return plugins
}

// Search is the result of a search that found no node. It is valid in its scheduling cycle.
type Search struct {
	*Rejected
	// Nodes are those of the snapshot.
	Nodes []*NodeInfo
	// Evaluated are the indexes of the nodes that were evaluated; nil stands for all. The others have the same status
	// as in an earlier cycle.
	Evaluated []int
	// noVictims is that of Rejected from an earlier cycle.
	noVictims bool
}

// Search returns what filters rejected in this cycle, if all nodes were rejected by filters that only read the node.
func (c *CycleState) Search() *Search {
	if c == nil {
		return nil
	}
	return c.search
}

// SetSearch sets the result of Search. Clones do not get it.
func (c *CycleState) SetSearch(rejected *Rejected, nodes []*NodeInfo, evaluated []int) {
	c.search = &Search{Rejected: rejected, Nodes: nodes, Evaluated: evaluated}
	c.search.noVictims = atomic.SwapInt32(&rejected.noVictims, 0) == 1
}

// StatusOf returns the status of the named node, or nil.
func (s *Search) StatusOf(name string) *Status {
	for i, node := range s.Nodes {
		if name != "" && node.Node().Name == name {
			return s.Status(i)
		}
	}
	return nil
}

// Statuses returns a new map with the status of each node.
func (s *Search) Statuses() NodeToStatusMap {
	statuses := make(NodeToStatusMap, len(s.Nodes))
	for i, node := range s.Nodes {
		statuses[node.Node().Name] = s.Status(i)
	}
	return statuses
}

// Resolvable returns the nodes that removing pods might help.
func (s *Search) Resolvable() []*NodeInfo {
	all := true
	for i, n := range s.counts {
		all = all && (n == 0 || s.statuses[i].Code() != UnschedulableAndUnresolvable)
	}
	if all {
		return s.Nodes
	}
	var nodes []*NodeInfo
	for i, node := range s.Nodes {
		if s.Status(i).Code() != UnschedulableAndUnresolvable {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// LacksVictims reports whether it is known that no resolvable node has a pod of lower priority. has looks at a node that
// has changed.
func (s *Search) LacksVictims(pod *v1.Pod, hasNone func(*NodeInfo) bool) bool {
	if s == nil || !s.noVictims || s.priority != corev1helpers.PodPriority(pod) {
		return false
	}
	for _, i := range s.Evaluated {
		if s.Status(i).Code() != UnschedulableAndUnresolvable && !hasNone(s.Nodes[i]) {
			return false
		}
	}
	s.FoundNoVictims(pod)
	return true
}

// FoundNoVictims records that no resolvable node has a pod of lower priority.
func (s *Search) FoundNoVictims(pod *v1.Pod) {
	if s != nil && s.priority == corev1helpers.PodPriority(pod) {
		atomic.StoreInt32(&s.Rejected.noVictims, 1)
	}
}
