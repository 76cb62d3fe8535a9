// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"sync/atomic"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Pods that the filter rejected wait for an event of the cluster, and that a node cooled is none. So the filter notes
// on which nodes it rejected a pod, and for which resource. Every snapshot is held against the notes: if a node is open
// now, its notes are taken away and all waiting pods are moved, once. The scheduler itself tries a pod again whose cycle
// goes on meanwhile.

// moved is the event that moves waiting pods. It has to be one of those that the plugin registers, and that no plugin of
// upstream's registers, so that pods which wait for others are left alone.
var moved = framework.ClusterEvent{Resource: framework.Node, ActionType: framework.UpdateNodeCondition, Label: "NodeLoadChanged"}

// SetPodMover takes the function that moves waiting pods. Without one they wait for the scheduler's own flush.
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
		atomic.StoreUint32(&v.strangers, 1)
	}
}

// reject notes a rejection in the current view, and in the one that takes its place meanwhile.
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

// inherit takes over the notes of the view before, and says whether pods were rejected on nodes that it did not know.
func (v *view) inherit(before *view) (strangers bool) {
	for i := range before.rejected {
		if atomic.LoadUint32(&before.rejected[i]) == 0 {
			continue
		}
		if node := before.nodes[i/len(v.resources)].Name; v.find(node) >= 0 {
			v.reject(node, i%len(v.resources))
		}
	}
	return atomic.LoadUint32(&before.strangers) != 0
}

// wake moves the waiting pods if one of them may fit: surely, or by the notes. pl.mu is held.
func (pl *NodeLoad) wake(v *view, surely bool) {
	// noted are the loads of nodes with notes.
	noted := map[int][]load{}
	for i := range v.rejected {
		if node := i / len(v.resources); atomic.LoadUint32(&v.rejected[i]) != 0 && noted[node] == nil {
			noted[node] = v.loadsWithout(node, nil)
		}
	}
	pl.counters.inFlight.Set(float64(v.addAll(pl.all(), noted)))
	oldest := v.oldestAt(pl.clock.Now(), pl.maxSampleAge)
	for node, loads := range noted {
		for r := range loads {
			note := &v.rejected[node*len(v.resources)+r]
			if atomic.LoadUint32(note) == 0 {
				continue
			}
			if v.blind(r, oldest, pl.minFreshPercent) || pl.closed(r, &loads[r], oldest) == "" {
				atomic.StoreUint32(note, 0)
				surely = true
			}
		}
	}
	if surely && pl.move != nil {
		pl.move(moved)
	}
}

// awaitOutage wakes pods once more when all measurements of a view have become too old, should no other come: then the
// filter opens for want of them. pl.mu is held.
func (pl *NodeLoad) awaitOutage(v *view) {
	if pl.outage != nil {
		pl.outage.Stop()
	}
	pl.outage = pl.clock.AfterFunc(pl.maxSampleAge+time.Millisecond, func() {
		// In a goroutine of its own, whatever the clock thinks of that.
		go func() {
			pl.mu.Lock()
			defer pl.mu.Unlock()
			if pl.current() == v {
				pl.wake(v, atomic.LoadUint32(&v.strangers) != 0)
			}
		}()
	})
}
