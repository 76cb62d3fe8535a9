// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// stateKey is where a cycle keeps its *cycle.
const stateKey framework.StateKey = Name

// cycle is what all calls of a scheduling cycle go by, so that they predict the same whatever is measured meanwhile. It
// never changes.
type cycle struct {
	of   *framework.CycleState
	view *view
	now  time.Time
	// oldest is the time, in nanoseconds since 1970, before which a measurement is too old.
	oldest int64
	// kind is the number of the pod's kind in the view.
	kind uint64
	// filters and scores are the numbers of the resources that take part.
	filters, scores []uint8
	numbers         [2 * maxResources]uint8
	podKind
}

// podKind is what a pod's result on a node depends on, beside the node. It can be compared.
type podKind struct {
	// estimates are the pod's, in the resources' units.
	estimates [maxResources]float64
	// filtered and scored are the resources that take part, blind ones have too few measurements.
	filtered, scored, blind [maxResources]bool
}

// Clone returns the cycle itself: what preemption adds and removes is in the NodeInfo.
func (c *cycle) Clone() framework.StateData {
	return c
}

// begin makes the cycle of a pod.
func (pl *NodeLoad) begin(state *framework.CycleState, pod *v1.Pod) *cycle {
	pl.source.touch()
	c := &cycle{of: state, view: pl.current(), now: pl.clock.Now()}
	c.oldest = c.view.oldestAt(c.now, pl.maxSampleAge)
	exempt := pl.exempt(pod)
	filters, scores := c.numbers[:0:maxResources], c.numbers[maxResources:maxResources]
	for r := range pl.resources {
		resource := &pl.resources[r]
		isFilter, isScore := resource.filters && !exempt, resource.weight > 0
		if !isFilter && !isScore || !resource.estimator.concerns(pod) {
			continue
		}
		c.estimates[r] = resource.estimator.estimate(pod)
		c.blind[r] = c.view.blind(r, c.oldest, pl.minFreshPercent)
		if c.blind[r] {
			pl.counters.blind[r].Inc()
		}
		if isFilter {
			c.filtered[r] = true
			filters = append(filters, uint8(r))
		}
		if isScore {
			c.scored[r] = true
			scores = append(scores, uint8(r))
		}
	}
	c.filters, c.scores = filters, scores
	c.kind = c.view.results.kind(&c.podKind)
	return c
}

// cycle returns the cycle of a state, which it begins if neither PreFilter nor PreScore did. The plugin itself
// remembers the last one it began: the state of a simulation is a copy, in which nothing may be written, and to read a
// state takes a lock.
func (pl *NodeLoad) cycle(state *framework.CycleState, pod *v1.Pod) *cycle {
	if c, ok := pl.last.Load().(*cycle); ok && c.of == state {
		return c
	}
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle)
	}
	pl.first.Lock()
	defer pl.first.Unlock()
	if c, ok := pl.last.Load().(*cycle); ok && c.of == state {
		return c
	}
	c := pl.begin(state, pod)
	pl.last.Store(c)
	return c
}

// start begins the cycle at an extension point that is called once, unless it has begun.
func (pl *NodeLoad) start(state *framework.CycleState, pod *v1.Pod) {
	if _, err := state.Read(stateKey); err == nil {
		return
	}
	c := pl.begin(state, pod)
	state.Write(stateKey, c)
	pl.last.Store(c)
}

// exempt says whether the pod passes the filter whatever is measured.
func (pl *NodeLoad) exempt(pod *v1.Pod) bool {
	if pl.exemptPriorityAbove != nil && pod.Spec.Priority != nil && *pod.Spec.Priority > *pl.exemptPriorityAbove {
		return true
	}
	if !pl.exemptDaemonSets {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// fits says whether a node takes a pod with an estimate, as far as a resource is concerned.
func (c *cycle) fits(r int, known *load) bool {
	return !exceeds(known.with(c.estimates[r]), c.view.resources[r].threshold)
}
