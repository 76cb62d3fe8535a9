// SPDX-License-Identifier: Apache-2.0

// Package chaos disturbs the scheduling of some pods on purpose: nodes are rejected by the flip of a coin and scored by
// the throw of a die, bindings are delayed, pods go to a random one of the nodes that fit. It shows what controllers,
// alerts and people make of that. What happens is drawn from a seed, so it can be replayed.
//
// It cannot harm what it is not pointed at: only pods of the namespaces that are named are disturbed, never those of
// kube-system nor system-critical ones, and every node is the scheduler's own choice. No pod is evicted for one that
// fits nowhere because of Chaos.
//
// The files follow the way of a pod: filtering.go, scoring.go, reserving.go, permitting.go. What is drawn in an attempt
// is in attempt.go.
package chaos

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/utils/clock"
)

const (
	// Name is the name of the plugin in the registry and in configurations.
	Name = "Chaos"
	// eventReason is the reason of the events that the plugin sends about pods.
	eventReason = "Chaos"
)

// Chaos disturbs the pods of args.Namespaces.
type Chaos struct {
	handle     framework.Handle
	clock      clock.Clock
	args       config.ChaosArgs
	namespaces sets.String
	attempts   *attempts
	counters   counters
	// rejection is the message for a rejected node: the same for all, so that the scheduler counts them in one event.
	rejection                   string
	needsPreFilter, needsWeight sync.Once
}

var (
	_ framework.PreFilterPlugin     = &Chaos{}
	_ framework.PreFilterExtensions = &Chaos{}
	_ framework.FilterPlugin        = &Chaos{}
	_ framework.ScorePlugin         = &Chaos{}
	_ framework.ScoreExtensions     = &Chaos{}
	_ framework.ReservePlugin       = &Chaos{}
	_ framework.PermitPlugin        = &Chaos{}
	_ framework.EnqueueExtensions   = &Chaos{}
)

// New makes the plugin for one profile.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	return newWithClock(obj, handle, clock.RealClock{})
}

func newWithClock(obj runtime.Object, handle framework.Handle, clock clock.Clock) (framework.Plugin, error) {
	args, ok := obj.(*config.ChaosArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type ChaosArgs, got %T", Name, obj)
	}
	if err := validation.ValidateChaosArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	return &Chaos{
		handle:     handle,
		clock:      clock,
		args:       *args.DeepCopy(),
		namespaces: sets.NewString(args.Namespaces...),
		attempts:   newAttempts(args.Seed, args.MaxConsecutiveRejections),
		counters:   newCounters(args.DryRun),
		rejection:  fmt.Sprintf("node(s) were rejected by a coin of %s (rejectPercent %d)", Name, args.RejectPercent),
	}, nil
}

// Name returns the name of the plugin.
func (pl *Chaos) Name() string {
	return Name
}

// EventsToRegister names the events after which a rejected pod may fit: that there is a new node, for which no coin was
// flipped yet. Besides Add these are the two with which a node that was added before becomes one: most nodes join with
// the taint not-ready, and some (those with devices) with less than they will have, and the scheduler moves a pod at
// Add only if it tolerates the taints and the resources suffice. Nothing else changes a coin. Time does: the scheduler
// tries every pod again after about a minute, with new coins.
func (pl *Chaos) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{{
		Resource:   framework.Node,
		ActionType: framework.Add | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
	}}
}

// isTarget says whether the pod may be disturbed. Validation refuses kube-system; here it is refused again, because a
// mistake there must not become one here.
func (pl *Chaos) isTarget(pod *v1.Pod) bool {
	return pl.namespaces.Has(pod.Namespace) && pod.Namespace != metav1.NamespaceSystem && !isSystemCritical(pod)
}

// isSystemCritical says whether the pod has the priority or the class of those that a cluster cannot do without. Either
// is enough: the priority is filled in from the class by admission control, which may be switched off.
func isSystemCritical(pod *v1.Pod) bool {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= scheduling.SystemCriticalPriority {
		return true
	}
	class := pod.Spec.PriorityClassName
	return class == scheduling.SystemClusterCritical || class == scheduling.SystemNodeCritical
}

// log says what is done to the pod: in a dry run always, because that is all it does, else at the level of the
// scheduler's own line about a binding.
func (pl *Chaos) log(what string, pod *v1.Pod, current *attempt, keysAndValues ...interface{}) {
	level := klog.Level(2)
	if pl.args.DryRun {
		level = 0
	}
	klog.V(level).InfoS(what, append([]interface{}{"plugin", Name, "dryRun", pl.args.DryRun, "pod", klog.KObj(pod),
		"attempt", current.number}, keysAndValues...)...)
}

// tell sends an event about the pod.
func (pl *Chaos) tell(pod *v1.Pod, action, note string, args ...interface{}) {
	pl.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeNormal, eventReason, action, note, args...)
}
