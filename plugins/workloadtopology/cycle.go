// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// stateKey is the key of the *state in the state of a scheduling cycle.
const stateKey framework.StateKey = Name

// cycle holds the group and the peers of a pod. It is immutable.
type cycle struct {
	round uint64
	// group is the name of the pod's group, or "". pods counts the pods of the group, or is nil without any.
	group string
	pods  *group
	// weight is the weight of all peers by which the pod is scored. The marks have the part of it in each domain.
	weight       int64
	requirements []requirement
	// read is the pod's parsed annotation.
	read peersOfRoles
}

// requirement is an edge with a required level, and the keys of the pod's peers.
type requirement struct {
	level int
	keys  []peersKey
}

// state is a cycle with the pods that preemption or a nomination adds and removes.
type state struct {
	*cycle
	on    map[*node]int32
	peers map[peersKey]*peers
}

// Clone implements framework.StateData.
func (s *state) Clone() framework.StateData {
	clone := &state{cycle: s.cycle}
	for on, n := range s.on {
		clone.addOn(on, n)
	}
	for key, added := range s.peers {
		copied := clone.added(key, len(added.in))
		copied.total = added.total
		copy(copied.in, added.in)
		for domain, n := range added.at {
			copied.at[domain] = n
		}
	}
	return clone
}

func (s *state) addOn(on *node, n int32) {
	if s.on == nil {
		s.on = make(map[*node]int32)
	}
	s.on[on] += n
}

// podsOn returns the number of pods of the group on a node.
func (s *state) podsOn(on *node) int32 {
	n := s.on[on]
	if s.pods != nil {
		n += s.pods.on[on]
	}
	return n
}

func (s *state) added(key peersKey, levels int) *peers {
	if s.peers == nil {
		s.peers = make(map[peersKey]*peers)
	}
	if s.peers[key] == nil {
		s.peers[key] = newPeers(levels)
	}
	return s.peers[key]
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
	s := &state{cycle: begun}
	cycleState.Write(stateKey, s)
	return s, nil
}

// begin finds the group and the peers of a pod.
func (pl *WorkloadTopology) begin(pod *v1.Pod) (*cycle, error) {
	x := pl.index
	c := &cycle{group: x.group(pod)}
	if pl.args.PeersAnnotation != "" && c.group != "" {
		c.read = readPeers(pod.Annotations[pl.args.PeersAnnotation])
	}
	var keys []peersKey
	var weights []int64
	required := make(map[*edge]int)
	x.sides(pod, c.group, func(e *edge, key peersKey) {
		other := e.other(key)
		if e.weight > 0 && len(c.read.weights) == 0 {
			keys, weights = append(keys, other), append(weights, e.weight)
		}
		if e.within < 0 {
			return
		}
		i, found := required[e]
		if !found {
			i = len(c.requirements)
			required[e] = i
			c.requirements = append(c.requirements, requirement{level: e.within})
		}
		c.requirements[i].keys = append(c.requirements[i].keys, other)
	})
	for i, name := range c.read.roles {
		keys, weights = append(keys, roleKey(c.group, name)), append(weights, c.read.weights[i])
	}
	if len(keys) == 0 && len(c.requirements) == 0 && c.group == "" {
		return c, nil
	}
	if err := x.follower.Follow(pl.handle.SnapshotSharedLister(), x); err != nil {
		return nil, err
	}
	x.mark(c.group, keys, weights)
	c.round, c.weight, c.pods = x.marks.round, x.marks.total, x.groups[c.group]
	return c, nil
}
