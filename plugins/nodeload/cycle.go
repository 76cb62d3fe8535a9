// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// stateKey is the key of the *cycle in the CycleState.
const stateKey framework.StateKey = Name

// cycle is the state of a scheduling cycle. All its calls use it, so that their predictions agree even if a snapshot
// arrives meanwhile. It never changes.
type cycle struct {
	view *view
	// oldest is the time, in nanoseconds since 1970, before which a measurement is too old.
	oldest int64
	// removed are the pods that preemption removed from the node that it tries.
	removed []*v1.Pod
	// exempt reports whether the pod always passes the filter.
	exempt bool
	// filters and scores are the indices of the resources that take part.
	filters, scores []int
	// estimates are the pod's, in the resources' units. Resources with too few measurements are blind.
	estimates []float64
	blind     []bool
}

// Clone returns the cycle itself: AddPod and RemovePod replace it.
func (c *cycle) Clone() framework.StateData {
	return c
}

// cycleOf returns the cycle of a pod that begins now.
func (pl *NodeLoad) cycleOf(pod *v1.Pod, v *view) *cycle {
	of, count := ownerOf(pod), len(pl.resources)
	c := &cycle{
		view: v, oldest: v.snapshot.OldestAt(pl.clock.Now(), pl.maxSampleAge), exempt: pl.exempt(pod, of),
		estimates: make([]float64, count), blind: make([]bool, count), filters: make([]int, 0, count), scores: make([]int, 0, count),
	}
	scales := v.scales.byOwner[of]
	for r := range pl.resources {
		resource := &pl.resources[r]
		if !resource.filters && resource.weight == 0 || !resource.estimator.concerns(pod) {
			continue
		}
		c.estimates[r] = resource.estimator.estimate(pod, scales.of(r))
		c.blind[r] = v.blind(r, c.oldest, int(*pl.args.MinFreshNodesPercent))
		if resource.filters && !c.exempt {
			c.filters = append(c.filters, r)
		}
		if resource.weight > 0 {
			c.scores = append(c.scores, r)
		}
	}
	return c
}

// cycle returns the cycle of a state. The first extension point that a profile enables begins it.
func (pl *NodeLoad) cycle(state *framework.CycleState, pod *v1.Pod) *cycle {
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle)
	}
	// The caller may be Filter or Score, which several workers call in parallel.
	pl.first.Lock()
	defer pl.first.Unlock()
	if data, err := state.Read(stateKey); err == nil {
		return data.(*cycle)
	}
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

// exempt reports whether the pod always passes the filter.
func (pl *NodeLoad) exempt(pod *v1.Pod, of owner) bool {
	above := pl.args.ExemptPriorityAbove
	return above != nil && pod.Spec.Priority != nil && *pod.Spec.Priority > *above ||
		*pl.args.ExemptDaemonSets && of.kind == "DaemonSet"
}
