// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
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
	// oldest is the time, in nanoseconds since 1970, before which a measurement is too old.
	oldest int64
	// exempt says that the pod passes the filter whatever is measured.
	exempt bool
	// filters and scores are the numbers of the resources that take part.
	filters, scores []int
	// estimates are the pod's, in the resources' units; blind resources have too few measurements.
	estimates []float64
	blind     []bool
}

// Clone returns the cycle itself: what preemption adds and removes is in the NodeInfo.
func (c *cycle) Clone() framework.StateData {
	return c
}

// cycleOf returns the cycle that a pod would have now, by a view.
func (pl *NodeLoad) cycleOf(pod *v1.Pod, v *view) *cycle {
	c := &cycle{
		view: v, exempt: pl.exempt(pod),
		estimates: make([]float64, len(pl.resources)), blind: make([]bool, len(pl.resources)),
	}
	c.oldest = v.oldestAt(pl.clock.Now(), pl.maxSampleAge)
	for r := range pl.resources {
		resource := &pl.resources[r]
		if !resource.filters && resource.weight == 0 || !resource.estimator.concerns(pod) {
			continue
		}
		c.estimates[r] = resource.estimator.estimate(pod)
		c.blind[r] = v.blind(r, c.oldest, pl.minFreshPercent)
		if resource.filters && !c.exempt {
			c.filters = append(c.filters, r)
		}
		if resource.weight > 0 {
			c.scores = append(c.scores, r)
		}
	}
	return c
}

// begin makes the cycle of a pod that is scheduled.
func (pl *NodeLoad) begin(state *framework.CycleState, pod *v1.Pod) *cycle {
	pl.source.touch()
	c := pl.cycleOf(pod, pl.current())
	c.of = state
	for r, blind := range c.blind {
		if blind {
			pl.counters.blind[r].Inc()
		}
	}
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
	above := pl.args.ExemptPriorityAbove
	if above != nil && pod.Spec.Priority != nil && *pod.Spec.Priority > *above {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return pl.args.ExemptDaemonSets && owner != nil && owner.Kind == "DaemonSet"
}
