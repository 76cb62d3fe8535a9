// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
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

// reject notes a rejection in the current view, and in a view that replaces it meanwhile.
func (pl *NodeLoad) reject(node string, r int, below int32) {
	for v := pl.current(); ; {
		v.rejected.note(v.find(node), r, below)
		now := pl.current()
		if now == v {
			return
		}
		v = now
	}
}

// wake moves the pending pods if one of them may fit according to the notes, or always if surely is true. pl.mu is
// held.
func (pl *NodeLoad) wake(v *view, pods []*v1.Pod, surely bool) {
	pl.wakesSoon = false
	rejecting := map[int]*prediction{}
	for node := range v.nodes {
		if v.rejected.on(node) {
			rejecting[node] = v.withoutPods(node, nil)
		}
	}
	v.addAll(pods, rejecting)
	oldest := v.snapshot.OldestAt(pl.clock.Now(), pl.maxSampleAge)
	for r := range v.resources {
		blind := v.blind(r, oldest, int(*pl.args.MinFreshNodesPercent))
		for node, p := range rejecting {
			below, noted := v.rejected.below(node, r)
			if noted && (blind || pl.closed(r, &p.loads[r], oldest, 0) == "" ||
				pl.closed(r, &p.without(below)[r], oldest, pl.margin()) == "") {
				v.rejected.remove(node, r)
				surely = true
			}
		}
		// On a node that is not in the view, all pods pass then.
		surely = blind && v.rejected.removeOthers() || surely
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
