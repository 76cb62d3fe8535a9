// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// rememberer is the framework's data of a cycle, with what earlier cycles have learned about nodes. Nodes are indexes in
// a table.
type rememberer interface {
	Recall(table *framework.NodeTable) bool
	Release()
	Slow() bool
	FitsFrom(first, end int, indexes, found []int32) int
	Verdict(node int32) (status *framework.Status, known bool)
	Evaluate(ctx context.Context, state *framework.CycleState, node int32, nodeInfo *framework.NodeInfo) *framework.Status
	Remember(node int32, status *framework.Status) bool
	Rejected(nodes []*framework.NodeInfo) *framework.Search
	Forget()
	Found(at []int32)
}

// mapped is the number of nodes up to which a search makes a map of statuses, which costs nothing then.
const mapped = 128

// maxSerial is the number of nodes that a search evaluates before it starts workers.
const maxSerial = 64

// search is one search for nodes that fit a pod. The next one reuses its memory.
type search struct {
	fwk   framework.Framework
	state *framework.CycleState
	pod   *v1.Pod
	// cycle is nil if the table does not have the nodes. indexes are those of the nodes; nil if they are all of them.
	cycle    rememberer
	table    *framework.NodeTable
	indexes  []int32
	recalled bool
	// last is the cycle of the last search. Its pod may wait long for Permit, and must not keep what it knows.
	last rememberer

	rejections
	feasible  []int32
	evaluated int32
}

// begin begins an attempt, which may search several times.
func (s *search) begin(extenders []framework.Extender) {
	if s.last != nil {
		s.last.Forget()
	}
	s.last, s.count, s.unread = nil, 0, len(extenders) == 0
}

// recall begins a search.
func (g *genericScheduler) recall(fwk framework.Framework, state *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo) {
	s := &g.search
	s.fwk, s.state, s.pod = fwk, state, pod
	s.cycle, s.table, s.indexes, s.recalled, s.evaluated = nil, nil, nil, false, 0
	if s.reset(nodes); len(s.feasible) < len(nodes) {
		s.feasible = make([]int32, len(nodes))
	}
	all, _ := g.nodeInfoSnapshot.List()
	if cycle, ok := state.Prepared().(rememberer); ok && &nodes[0] == &all[0] {
		s.cycle, s.table = cycle, g.nodeInfoSnapshot.NodeTable()
		s.last, s.recalled = cycle, cycle.Recall(s.table)
	}
}

// end ends a search.
func (s *search) end() {
	if s.cycle != nil {
		s.cycle.Release()
	}
	s.fwk, s.state, s.pod, s.cycle = nil, nil, nil, nil
}

// index returns the index of a node in the table.
func (s *search) index(at int) int32 {
	if s.indexes != nil {
		return s.indexes[at]
	}
	return int32(at)
}

// filter returns the status of a node. Several goroutines may call it at once, for different nodes.
func (s *search) filter(ctx context.Context, at int) *framework.Status {
	if s.recalled {
		if status, known := s.cycle.Verdict(s.index(at)); known {
			return status
		}
		atomic.AddInt32(&s.evaluated, 1)
		return s.cycle.Evaluate(ctx, s.state, s.index(at), s.nodes[at])
	}
	atomic.AddInt32(&s.evaluated, 1)
	return s.fwk.RunFilterPluginsWithNominatedPods(ctx, s.state, s.pod, s.nodes[at])
}

// fits records the n-th node that passes all filters, and returns it.
func (s *search) fits(at, n int) *v1.Node {
	if s.table == nil {
		return s.nodes[at].Node()
	}
	s.feasible[n] = s.index(at)
	return s.table.Nodes[s.feasible[n]]
}

// until calls check for each node from start on, with several workers if many nodes must be evaluated. It saves the calls
// for nodes that are known.
func (s *search) until(ctx context.Context, start int, found []*v1.Node, n *int32, check func(i int)) {
	parallelizer, nodes, i := s.fwk.Parallelizer(), len(s.nodes), 0
	serial := int32(maxSerial)
	switch {
	case parallelizer.Parallelism() == 1:
		serial = int32(nodes)
	case s.cycle != nil && s.cycle.Slow():
		serial = 0
	}
	for i < nodes && s.evaluated < serial && ctx.Err() == nil {
		at := (start + i) % nodes
		if s.recalled {
			end := nodes
			if at < start%nodes {
				end = start % nodes
			}
			if fits := s.cycle.FitsFrom(at, end, s.indexes, s.feasible[*n:len(found)]); fits > 0 {
				for _, index := range s.feasible[*n : int(*n)+fits] {
					found[*n] = s.table.Nodes[index]
					*n++
				}
				i += fits
				continue
			}
			if rejected := s.rejectFrom(at, end); rejected > 0 {
				i += rejected
				continue
			}
		}
		check(i)
		i++
	}
	if first := i; i < nodes && ctx.Err() == nil {
		parallelizer.Until(ctx, nodes-first, func(i int) { check(first + i) })
	}
}

// rejectFrom adds nodes that are known to be rejected, from the first one on, and returns their number.
func (s *search) rejectFrom(first, end int) int {
	at := first
	for ; at < end; at++ {
		status, known := s.cycle.Verdict(s.index(at))
		if !known || status == nil {
			break
		}
		s.list[s.count] = rejection{at, status}
		s.count++
	}
	return at - first
}

// rejectedAll reports whether filters that read one node have rejected all nodes of the cluster. Then the diagnosis has the
// reasons, and no map.
func (g *genericScheduler) rejectedAll(diagnosis *framework.Diagnosis) bool {
	s := &g.search
	if s.cycle == nil || s.indexes != nil || int(s.count) < len(s.nodes) {
		return false
	}
	list := s.list[:s.count]
	for i := 0; !s.recalled && i < len(list); i++ {
		if !s.cycle.Remember(int32(list[i].at), list[i].status) {
			return false
		}
	}
	search := s.cycle.Rejected(s.nodes)
	if search == nil {
		return false
	}
	if s.state.SetSearch(search); len(s.nodes) <= mapped {
		return false
	}
	diagnosis.NodeToStatusMap, diagnosis.Reasons = nil, search.Reasons()
	diagnosis.UnschedulablePlugins = diagnosis.UnschedulablePlugins.Union(search.Plugins())
	// The next search begins where this one did, and ended.
	g.nextStartNodeIndex %= len(s.nodes)
	return true
}

// found passes the indexes of the nodes that passed all filters to the framework.
func (s *search) found(nodes []*v1.Node) {
	if s.cycle != nil {
		s.cycle.Found(s.feasible[:len(nodes)])
	}
}
