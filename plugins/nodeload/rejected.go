// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sync/atomic"
)

// rejectedNodes has notes about nodes on which the filter rejected a pod, by the nodes' and resources' indices. All
// workers write them.
type rejectedNodes struct {
	resources int
	// notes has, for each node and resource, 1 more than the distance of below from its minimum; 0 without a rejection.
	notes []int64
	// others is 1 if a pod was rejected on a node without an index.
	others uint32
}

func newRejectedNodes(nodes, resources int) *rejectedNodes {
	return &rejectedNodes{resources: resources, notes: make([]int64, nodes*resources)}
}

// note notes that a pod was rejected on a node, which has the index -1 if it is not in the view. The pod fits when the
// node is open without the pods that have a lower priority than below.
func (x *rejectedNodes) note(node, r int, below int32) {
	if node < 0 {
		atomic.StoreUint32(&x.others, 1)
		return
	}
	note, value := &x.notes[node*x.resources+r], int64(below)-math.MinInt32+1
	for noted := atomic.LoadInt64(note); noted < value && !atomic.CompareAndSwapInt64(note, noted, value); {
		noted = atomic.LoadInt64(note)
	}
}

// below returns the highest priority below which pods must leave a node for a rejected pod; false without a rejection.
func (x *rejectedNodes) below(node, r int) (priority int32, noted bool) {
	note := atomic.LoadInt64(&x.notes[node*x.resources+r])
	return int32(note - 1 + math.MinInt32), note != 0
}

// on reports whether a pod was rejected on a node.
func (x *rejectedNodes) on(node int) bool {
	for r := 0; r < x.resources && node >= 0; r++ {
		if _, noted := x.below(node, r); noted {
			return true
		}
	}
	return false
}

// remove removes a note.
func (x *rejectedNodes) remove(node, r int) { atomic.StoreInt64(&x.notes[node*x.resources+r], 0) }

// onOthers reports whether a pod was rejected on a node without an index.
func (x *rejectedNodes) onOthers() bool { return atomic.LoadUint32(&x.others) != 0 }

// removeOthers removes the note about nodes without an index, and reports whether there was one.
func (x *rejectedNodes) removeOthers() bool { return atomic.CompareAndSwapUint32(&x.others, 1, 0) }
