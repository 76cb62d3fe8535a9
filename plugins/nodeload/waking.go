// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// Pods that the filter rejected wait for an event of the cluster, and that a node cooled is none. So the filter notes
// on each node the smallest pod that it rejected there for a resource, and every snapshot is held against the notes: if
// a node would take such a pod now, all waiting pods are moved, once. What a cycle still notes in a view that has been
// replaced meanwhile is found one snapshot later.

// moved is the event that moves waiting pods. It has to be one of those that the plugin registers.
var moved = framework.ClusterEvent{Resource: framework.Node, ActionType: framework.UpdateNodeCondition, Label: "NodeLoadChanged"}

// SetPodMover takes the function that moves waiting pods. Without one they wait for the scheduler's own flush.
func (pl *NodeLoad) SetPodMover(move func(framework.ClusterEvent)) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.move = move
}

// inherit takes the notes of another view away, and keeps those of nodes that are in this one. It says whether there
// were pods rejected on nodes that the other one did not know.
func (v *view) inherit(other *view) (strangers bool) {
	for i := range other.rejected {
		if atomic.LoadUint64(&other.rejected[i]) == nothingRejected {
			continue
		}
		estimate := math.Float64frombits(atomic.SwapUint64(&other.rejected[i], nothingRejected))
		node, r := i/len(v.resources), i%len(v.resources)
		if here := v.find(other.nodes[node].Name); here >= 0 {
			v.reject(here, r, estimate)
		}
	}
	return atomic.SwapUint32(&other.strangers, 0) != 0
}

// wake moves the waiting pods if one of them may fit: surely, or by what is noted in a view. pl.mu is held.
func (pl *NodeLoad) wake(v *view, surely bool) {
	inFlight := make([]float64, len(v.nodes)*len(v.resources))
	// Which nodes have notes is fixed before, for cycles go on noting; a pod that they reject is not yet waiting.
	notes := make([]uint64, len(v.rejected))
	noted := make([]bool, len(v.nodes))
	for i := range notes {
		if notes[i] = atomic.LoadUint64(&v.rejected[i]); notes[i] != nothingRejected {
			noted[i/len(v.resources)] = true
		}
	}
	pl.counters.inFlight.Set(float64(v.sumInFlight(pl.all(), func(node int) bool { return noted[node] }, inFlight)))
	oldest := v.oldestAt(pl.clock.Now(), pl.maxSampleAge)
	var blind [maxResources]bool
	for r := range v.resources {
		blind[r] = v.blind(r, oldest, pl.minFreshPercent)
	}
	for i, bits := range notes {
		if bits == nothingRejected {
			continue
		}
		node, r := i/len(v.resources), i%len(v.resources)
		if blind[r] || pl.takes(v, node, r, oldest, inFlight[i], math.Float64frombits(bits)) {
			// If it changed meanwhile, a smaller pod was rejected by this very view.
			atomic.CompareAndSwapUint64(&v.rejected[i], bits, nothingRejected)
			surely = true
		}
	}
	if surely && pl.move != nil {
		pl.move(moved)
	}
}

// takes says whether a node takes a pod with an estimate, as far as a resource is concerned.
func (pl *NodeLoad) takes(v *view, node, r int, oldest int64, inFlight, estimate float64) bool {
	known := v.measured(node, r, v.nodes[node])
	if known.at < oldest {
		return !pl.closedOnStale
	}
	return !exceeds(known.with(inFlight+estimate), v.resources[r].threshold)
}

// sumInFlight returns how many pods are in flight, and adds up what they are on each node that is wanted, of each
// resource and in the resources' units.
func (v *view) sumInFlight(pods []*v1.Pod, wanted func(node int) bool, sums []float64) int {
	count := 0
	for _, pod := range pods {
		// Most pods are in all measurements, and a look at when they began is cheaper than one at their node.
		if pod.Spec.NodeName == "" {
			continue
		}
		first := startOf(pod, v.window)
		if first <= v.settledAt {
			continue
		}
		node := v.find(pod.Spec.NodeName)
		if node < 0 {
			continue
		}
		counted := false
		for r := range v.resources {
			resource := &v.resources[r]
			sample, missing := resource.of(v.samples[node])
			if missing != measured.Present {
				continue
			}
			start := first
			if resource.window != v.window {
				start = startOf(pod, resource.window)
			}
			lack := lacking(start, sample.At, resource.window)
			if lack == 0 {
				continue
			}
			counted = true
			if !wanted(node) {
				break
			}
			estimate := resource.estimator.estimate(pod)
			if capacity, known := resource.capacityOf(v.nodes[node]); known {
				estimate = math.Min(estimate, capacity)
			}
			sums[node*len(v.resources)+r] += lack * estimate
		}
		if counted {
			count++
		}
	}
	return count
}

// outages is the shortest time between two looks at what has grown old, however many nodes grow old one after the
// other.
const outages = time.Second

// awaitOutage sets the timer for the time at which the filter opens for want of measurements, should no other come, but
// not before a time: when too few are left for all nodes, and, if nodes without one pass, when the next one grows old.
// Which nodes will have rejected a pod by then is not known yet. pl.mu is held.
func (pl *NodeLoad) awaitOutage(v *view, soonest time.Duration) {
	pl.stopTimer()
	now := pl.clock.Now()
	oldest := v.oldestAt(now, pl.maxSampleAge)
	next := int64(math.MaxInt64)
	for r := range v.resources {
		if !v.resources[r].filters {
			continue
		}
		if last, ever := v.blindAfter(r, pl.minFreshPercent); ever && last >= oldest && last < next {
			next = last
		}
		if last, ever := v.nextOld(r, oldest); ever && !pl.closedOnStale && last < next {
			next = last
		}
	}
	if next == math.MaxInt64 {
		return
	}
	// A little later, when they are too old and not just old enough. In a goroutine of its own, whatever the clock
	// thinks of that.
	after := time.Duration(next-oldest) + time.Millisecond
	if after < soonest {
		after = soonest
	}
	pl.outage = pl.clock.AfterFunc(after, func() { go pl.outageOf(v) })
}

// outageOf wakes pods when a view's measurements have become too few or too old, unless it has been replaced.
func (pl *NodeLoad) outageOf(v *view) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if pl.closed || pl.current() != v {
		return
	}
	missed := atomic.SwapUint32(&v.strangers, 0) != 0
	if pl.previous != nil {
		missed = v.inherit(pl.previous) || missed
	}
	if missed || v.notes() {
		pl.wake(v, missed)
	}
	pl.awaitOutage(v, outages)
}

// notes says whether a pod was rejected on a node of the view.
func (v *view) notes() bool {
	for i := range v.rejected {
		if atomic.LoadUint64(&v.rejected[i]) != nothingRejected {
			return true
		}
	}
	return false
}

func (pl *NodeLoad) stopTimer() {
	if pl.outage != nil {
		pl.outage.Stop()
		pl.outage = nil
	}
}
