// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// stateKey is the key of the *state in the state of a scheduling cycle.
const stateKey framework.StateKey = Name

// cycle holds the group of a pod. It is immutable.
type cycle struct {
	// round is 0 for a pod without a group.
	round uint64
	// name is the name of the pod's group, or "". group counts its pods, or is nil without any.
	name  string
	group *group
	// weight is the weight of all peers by which the pod is scored. The marks have the part of it in each domain.
	weight int64
}

// state is a cycle with the pods of the group that preemption or a nomination adds and removes.
type state struct {
	*cycle
	on map[*node]int32
}

// Clone implements framework.StateData.
func (s *state) Clone() framework.StateData {
	clone := &state{cycle: s.cycle, on: make(map[*node]int32, len(s.on))}
	for on, n := range s.on {
		clone.on[on] = n
	}
	return clone
}

// podsOn returns the number of pods of the group on a node.
func (s *state) podsOn(on *node) int32 {
	n := s.on[on]
	if s.group != nil {
		n += s.group.on[on]
	}
	return n
}

// state returns the state of a cycle, which the first call at any extension point begins.
func (pl *WorkloadTopology) state(cycleState *framework.CycleState, pod *v1.Pod) (*state, *framework.Status) {
	if data, err := cycleState.Read(stateKey); err == nil {
		return data.(*state), nil
	}
	// The first call may be in Filter or Score, which run in parallel.
	pl.first.Lock()
	defer pl.first.Unlock()
	if data, err := cycleState.Read(stateKey); err == nil {
		return data.(*state), nil
	}
	begun, err := pl.begin(pod)
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	if !whatif.Is(cycleState) {
		pl.counters.count(begun)
	}
	s := &state{cycle: begun, on: make(map[*node]int32)}
	cycleState.Write(stateKey, s)
	return s, nil
}

// begin finds the group and the peers of a pod.
func (pl *WorkloadTopology) begin(pod *v1.Pod) (*cycle, error) {
	x := pl.index
	c := &cycle{name: x.groupOf(pod)}
	if c.name == "" {
		return c, nil
	}
	if err := x.follower.Follow(pl.handle.SnapshotSharedLister(), x); err != nil {
		return nil, err
	}
	x.mark(c.name, x.peersOf(pod))
	c.round, c.weight, c.group = x.marks.round, x.marks.total, x.groups[c.name]
	return c, nil
}
