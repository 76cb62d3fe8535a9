// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
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

// reject notes that a pod was rejected on a node for a resource.
func (v *view) reject(node string, r int) {
	if number := v.find(node); number >= 0 {
		atomic.StoreUint32(&v.rejected[number*len(v.resources)+r], 1)
	} else {
		atomic.StoreUint32(&v.rejectedUnknown, 1)
	}
}

// noted reports whether a pod was rejected on a node.
func (v *view) noted(number int) bool {
	for r := range v.resources {
		if number >= 0 && atomic.LoadUint32(&v.rejected[number*len(v.resources)+r]) != 0 {
			return true
		}
	}
	return false
}

// reject notes a rejection in the current view, and in a view that replaces it meanwhile.
func (pl *NodeLoad) reject(node string, r int) {
	for v := pl.current(); ; {
		v.reject(node, r)
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
		if atomic.LoadUint32(&before.rejected[i]) == 0 {
			continue
		}
		if node := before.nodes[i/len(v.resources)].Name; v.find(node) >= 0 {
			v.reject(node, i%len(v.resources))
		}
	}
	return atomic.LoadUint32(&before.rejectedUnknown) != 0
}

// wake moves the pending pods if one of them may fit according to the notes, or always if surely is true. pl.mu is
// held.
func (pl *NodeLoad) wake(v *view, pods []*v1.Pod, surely bool) {
	// noted has the loads of nodes with notes.
	noted := map[int][]load{}
	for i := range v.rejected {
		if node := i / len(v.resources); atomic.LoadUint32(&v.rejected[i]) != 0 && noted[node] == nil {
			noted[node] = v.loadsWithout(node, nil)
		}
	}
	pl.counters.inFlight.Set(float64(v.addAll(pods, noted)))
	oldest := v.oldestAt(pl.clock.Now(), pl.maxSampleAge)
	for node, loads := range noted {
		for r := range loads {
			note := &v.rejected[node*len(v.resources)+r]
			if atomic.LoadUint32(note) == 0 {
				continue
			}
			if v.blind(r, oldest, pl.minFreshPercent) || pl.closed(r, &loads[r], oldest, 0) == "" {
				atomic.StoreUint32(note, 0)
				surely = true
			}
		}
	}
	if surely && pl.move != nil {
		pl.move(moved)
	}
}

// awaitOutage wakes pods again when all measurements of a view have become too old and no other view has replaced it:
// then the filter opens. pl.mu is held.
func (pl *NodeLoad) awaitOutage(v *view) {
	if pl.outage != nil {
		pl.outage.Stop()
	}
	pl.outage = pl.clock.AfterFunc(pl.maxSampleAge+time.Millisecond, func() {
		// In a new goroutine: a fake clock calls this function while it holds its lock.
		go func() {
			pl.mu.Lock()
			defer pl.mu.Unlock()
			if pl.current() == v {
				pl.wake(v, pl.allPods(), atomic.LoadUint32(&v.rejectedUnknown) != 0)
			}
		}()
	})
}
