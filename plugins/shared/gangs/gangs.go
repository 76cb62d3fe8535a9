// SPDX-License-Identifier: Apache-2.0

// Package gangs decides pods that only run together as one. A plugin that implements Source knows the gangs. The
// scheduler takes all pods of a gang from its queue, and an Attempt finds a node for each of them, or for none.
package gangs

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Label is the label of a pod with the name of its gang, in its namespace.
const Label = "pod-group.scheduling.sigs.k8s.io"

// NewerLabel is the label that scheduler-plugins reads instead since 0.25. It has no effect here.
const NewerLabel = "scheduling.x-k8s.io/pod-group"

// Source is a plugin that knows gangs. The scheduler calls it in scheduling cycles and in dry runs, one at a time.
type Source interface {
	framework.Plugin
	// GangOf returns the gang of a pod, as informers have it, or nil for a pod without a gang. If the pod cannot be
	// scheduled whatever its siblings do, such as without an object for the gang, it returns a constant sentence with the
	// reason instead.
	GangOf(pod *v1.Pod) (gang *Gang, reason string)
	// Halves returns the gangs of which some pods have nodes, but fewer than MinMember, and others wait. It is called
	// in each scheduling cycle, so it must be fast without any.
	Halves() []*Gang
	// Attempted is called after each attempt for a gang.
	Attempted(gang *Gang, result Result, took time.Duration)
}

// Gang is a set of pods of which MinMember run together, or none.
type Gang struct {
	// Name is NAMESPACE/NAME.
	Name string
	// MinMember is at least 1.
	MinMember int
	// MinResources are free in the cluster before any pod of the gang is placed, or after preemption for it.
	MinResources v1.ResourceList
	// Waiting are the pods without a node, and Placed those that are bound; pods that are being deleted are in neither.
	// Pods of other schedulers only count when they are bound.
	Waiting, Placed []*v1.Pod
	// Required and Preferred are keys of node labels. All nodes of the gang have the same value of the required one,
	// and of the preferred one if possible. Both may be empty.
	Required, Preferred string
	// Timeout limits an attempt. After attempts that took too long, it is up to four times as long.
	Timeout time.Duration
	// Reservation is for how long an attempt that fails keeps the nodes that it found from pods with the same priority
	// or a lower one; 0 keeps none.
	Reservation time.Duration
}

// The reasons for which the pods of a gang wait, after its name. They are constant, because the scheduler writes them
// into the conditions of the pods.
const (
	TooFew      = " has fewer pods than its minMember"
	DoesNotFit  = " does not fit as a whole"
	NotInTime   = " was not decided in time"
	Changed     = " changed while it was attempted"
	WaitsToFree = " waits for pods that are evicted for it"
)

// Outside is the reason of a node that is not in the domain of the pod's gang.
const Outside = "node(s) were not in the topology domain of the pod's gang"

// Result is the result of an attempt.
type Result string

const (
	// Placed: enough pods have nodes, and are bound.
	Placed Result = "placed"
	// Preempting: enough pods fit after others are evicted, which has begun.
	Preempting Result = "preempting"
	// Unschedulable: too few pods fit, and nothing was changed.
	Unschedulable Result = "unschedulable"
	// Late: the attempt was not decided within its timeout, and nothing was changed.
	Late Result = "late"
)

// Domain is a set of nodes: those with a value of a label, and with that of another label if there is an outer one. The
// zero Domain has all nodes.
type Domain struct{ Key, Value, OuterKey, OuterValue string }

// Has reports whether a node is in the domain.
func (d Domain) Has(node *v1.Node) bool {
	has := func(key, value string) bool {
		found, ok := node.Labels[key]
		return key == "" || ok && found == value
	}
	return has(d.Key, d.Value) && has(d.OuterKey, d.OuterValue)
}

// String returns the labels, or "" for all nodes.
func (d Domain) String() string {
	switch {
	case d.Key == "":
		return ""
	case d.OuterKey == "":
		return d.Key + "=" + d.Value
	}
	return d.Key + "=" + d.Value + " in " + d.OuterKey + "=" + d.OuterValue
}

// Cycle is the part of a gang in the scheduling cycle of one of its pods.
type Cycle struct {
	// Domain has the nodes that the gang may use.
	Domain Domain
}

const stateKey framework.StateKey = "shared/gangs"

// Clone implements framework.StateData. A Cycle is immutable.
func (c *Cycle) Clone() framework.StateData { return c }

// Set stores the Cycle in the state of a scheduling cycle, before PreFilter. It does nothing for nil.
func (c *Cycle) Set(state *framework.CycleState) {
	if c != nil {
		state.Write(stateKey, c)
	}
}

// Of returns the Cycle of a scheduling cycle; nil for a pod without a gang, and in a scheduler that does not decide
// gangs as one.
func Of(state *framework.CycleState) *Cycle {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	return data.(*Cycle)
}
