// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

// Pods that the filter rejected wait for an event of the cluster, but a node that cools causes none. So the filter
// notes the nodes on which it rejected a pod, and the resource. Every snapshot is compared with the notes: if a node is
// open now, its notes are removed and all pending pods are moved, once. The scheduler itself retries a pod whose cycle
// is still running.

// moved is the event that moves pending pods. The plugin must register it and no upstream plugin may, so that pods that
// wait for other events are not moved.
var moved = framework.ClusterEvent{Resource: framework.Node, ActionType: framework.UpdateNodeCondition, Label: "NodeLoadChanged"}

// SetPodMover sets the function that moves pending pods. Without one they wait for the scheduler's own flush.
func (pl *NodeLoad) SetPodMover(move func(framework.ClusterEvent)) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.move = move
}

// note notes that a pod was rejected on a node for a resource. The pod fits when the node is open without the pods that
// have a lower priority than below.
func (v *view) note(node string, r int, below int32) {
	number := v.find(node)
	if number < 0 {
		atomic.StoreUint32(&v.rejectedUnknown, 1)
		return
	}
	note, value := &v.rejected[number*len(v.resources)+r], int64(below)-math.MinInt32+1
	for known := atomic.LoadInt64(note); known < value && !atomic.CompareAndSwapInt64(note, known, value); {
		known = atomic.LoadInt64(note)
	}
}

// noted reports whether a pod was rejected on a node.
func (v *view) noted(number int) bool {
	for r := 0; r < len(v.resources) && number >= 0; r++ {
		if atomic.LoadInt64(&v.rejected[number*len(v.resources)+r]) != 0 {
			return true
		}
	}
	return false
}

// reject notes a rejection in the current view, and in a view that replaces it meanwhile.
func (pl *NodeLoad) reject(node string, r int, below int32) {
	for v := pl.current(); ; {
		v.note(node, r, below)
		now := pl.current()
		if now == v {
			return
		}
		v = now
	}
}

// inherit copies the notes of the previous view, and reports whether pods were rejected on nodes that were not in it.
func (v *view) inherit(before *view) (unknown bool) {
	for i := range before.rejected {
		if note := atomic.LoadInt64(&before.rejected[i]); note != 0 {
			if node := before.nodes[i/len(v.resources)].Name; v.find(node) >= 0 {
				v.note(node, i%len(v.resources), int32(note-1+math.MinInt32))
			}
		}
	}
	return atomic.LoadUint32(&before.rejectedUnknown) != 0
}

// wake moves the pending pods if one of them may fit according to the notes, or always if surely is true. pl.mu is
// held.
func (pl *NodeLoad) wake(v *view, pods []*v1.Pod, surely bool) {
	pl.soon = false
	noted := map[int]*kept{}
	for number := range v.nodes {
		if v.noted(number) {
			noted[number] = v.empty(number, nil)
		}
	}
	v.addAll(pods, noted)
	oldest := v.snapshot.OldestAt(pl.clock.Now(), pl.maxSampleAge)
	for r := range v.resources {
		blind := v.blind(r, oldest, int(*pl.args.MinFreshNodesPercent))
		for number, k := range noted {
			note := &v.rejected[number*len(v.resources)+r]
			below := atomic.LoadInt64(note) - 1 + math.MinInt32
			if below >= math.MinInt32 && (blind || pl.closed(r, &k.loads[r], oldest, 0) == "" ||
				pl.closed(r, &k.without(int32(below))[r], oldest, pl.margin()) == "") {
				atomic.StoreInt64(note, 0)
				surely = true
			}
		}
		// On a node that is not in the view, all pods pass then.
		surely = blind && atomic.CompareAndSwapUint32(&v.rejectedUnknown, 1, 0) || surely
	}
	if surely && pl.move != nil {
		pl.move(moved)
	}
}

// wakeAfter wakes pods after a time. pl.mu is held.
func (pl *NodeLoad) wakeAfter(delay time.Duration) clock.Timer {
	return pl.clock.AfterFunc(delay, func() {
		// In a new goroutine: a fake clock calls this function while it holds its lock.
		go func() {
			pl.mu.Lock()
			defer pl.mu.Unlock()
			pl.wake(pl.current(), pl.allPods(), false)
		}()
	})
}
