// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// stateKey is where a cycle keeps its *cycle.
const stateKey framework.StateKey = Name

// cycle is what all calls of a scheduling cycle go by, so that they predict the same whatever is measured meanwhile. It
// never changes.
type cycle struct {
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

// cycle returns the cycle of a state, which it begins at the first extension point that asks for it, whichever a profile
// enables.
func (pl *NodeLoad) cycle(state *framework.CycleState, pod *v1.Pod) *cycle {
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle)
	}
	// The first may be Filter or Score, of which 16 run at once.
	pl.first.Lock()
	defer pl.first.Unlock()
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle)
	}
	pl.source.Touch()
	c := pl.cycleOf(pod, pl.current())
	whatIf := whatif.Is(state)
	for r, blind := range c.blind {
		if blind && !whatIf {
			pl.counters.blind[r].Inc()
		}
	}
	state.Write(stateKey, c)
	return c
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
