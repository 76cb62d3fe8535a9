// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Rejected has the status with which filters rejected each node of the snapshot, by the node's index.
type Rejected struct {
	// ByNode has the index in Statuses, plus 1.
	ByNode   []uint8
	Statuses []*Status
	// NoVictims is 1 if preemption has found no pod of lower priority on any node that removing pods might help.
	NoVictims *int32

	counts   []int // of nodes, by status
	priority int32
}

// Count counts the statuses of the nodes, and reads the priority of the pod. It returns false if a node has no status.
func (r *Rejected) Count(pod *v1.Pod) bool {
	r.counts, r.priority = make([]int, len(r.Statuses)), corev1helpers.PodPriority(pod)
	for _, status := range r.ByNode {
		if int(status-1) >= len(r.counts) {
			return false
		}
		r.counts[status-1]++
	}
	return true
}

// Same reports whether two results of filters are equal.
func Same(a, b *Status) bool {
	if a.IsSuccess() || b.IsSuccess() {
		return a.IsSuccess() && b.IsSuccess()
	}
	if a.Code() != b.Code() || a.FailedPlugin() != b.FailedPlugin() || len(a.Reasons()) != len(b.Reasons()) {
		return false
	}
	others := b.Reasons()
	for i, reason := range a.Reasons() {
		if reason != others[i] {
			return len(others) > 1 && sameInAnyOrder(a.Reasons(), others)
		}
	}
	return true
}

// sameInAnyOrder compares reasons whose order may be that of a map.
func sameInAnyOrder(a, b []string) bool {
	counts := make(map[string]int, len(a))
	for i := range a {
		counts[a[i]]++
		counts[b[i]]--
	}
	for _, n := range counts {
		if n != 0 {
			return false
		}
	}
	return true
}

// Status returns the status of a node.
func (r *Rejected) Status(node int) *Status { return r.Statuses[r.ByNode[node]-1] }

// Reasons returns the number of nodes for each reason, as for a FitError.
func (r *Rejected) Reasons() map[string]int {
	reasons := make(map[string]int)
	for i, n := range r.counts {
		if n > 0 {
			for _, reason := range r.Statuses[i].Reasons() {
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
			plugins.Insert(r.Statuses[i].FailedPlugin())
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
	Evaluated []int32
	// LackedVictims reports whether NoVictims was 1 before the search.
	LackedVictims bool
}

// Search returns what filters rejected in this cycle, if all nodes were rejected by filters that only read the node.
func (c *CycleState) Search() *Search {
	if c == nil {
		return nil
	}
	return c.search
}

// SetSearch sets the result of Search. Clones do not get it.
func (c *CycleState) SetSearch(search *Search) { c.search = search }

// StatusOf returns the status of the named node, or nil.
func (s *Search) StatusOf(name string) *Status {
	for i, node := range s.Nodes {
		if name != "" && node.Node().Name == name {
			return s.Status(i)
		}
	}
	return nil
}

// NodeStatuses returns a new map with the status of each node.
func (s *Search) NodeStatuses() NodeToStatusMap {
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
		all = all && (n == 0 || s.Statuses[i].Code() != UnschedulableAndUnresolvable)
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

// LacksVictims reports whether it is known that no resolvable node has a pod of lower priority. hasNone looks at a node that
// has changed.
func (s *Search) LacksVictims(pod *v1.Pod, hasNone func(*NodeInfo) bool) bool {
	if s == nil || !s.LackedVictims || s.priority != corev1helpers.PodPriority(pod) {
		return false
	}
	for _, i := range s.Evaluated {
		if s.Status(int(i)).Code() != UnschedulableAndUnresolvable && !hasNone(s.Nodes[i]) {
			return false
		}
	}
	s.FoundNoVictims(pod)
	return true
}

// FoundNoVictims records that no resolvable node has a pod of lower priority.
func (s *Search) FoundNoVictims(pod *v1.Pod) {
	if s != nil && s.priority == corev1helpers.PodPriority(pod) {
		atomic.StoreInt32(s.NoVictims, 1)
	}
}
