// SPDX-License-Identifier: Apache-2.0

// Package chaos disturbs the scheduling of some pods on purpose, to test controllers, alerts and people: it rejects
// nodes at random, gives them random scores, and sends pods to a random feasible node. Everything depends on a seed, so
// it can be replayed.
//
// It disturbs only pods of the given namespaces, never those of kube-system nor system-critical ones, and the scheduler
// itself chooses every node. No pod is preempted for a pod that Chaos keeps from its node.
//
// The files are in the order of the extension points: filtering.go, scoring.go, reserving.go. The random numbers of an
// attempt are in attempt.go.
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
	_ framework.EnqueueExtensions   = &Chaos{}
)

// New creates the plugin for one profile.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.ChaosArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type ChaosArgs, got %T", Name, obj)
	}
	if err := validation.ValidateChaosArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	return &Chaos{
		handle:     handle,
		args:       *args.DeepCopy(),
		namespaces: sets.NewString(args.Namespaces...),
		attempts:   newAttempts(args.Seed, *args.MaxConsecutiveRejections),
		counters:   newCounters(),
		rejection:  fmt.Sprintf("node(s) were rejected by a coin of %s (rejectPercent %d)", Name, args.RejectPercent),
	}, nil
}

// Name returns the name of the plugin.
func (pl *Chaos) Name() string {
	return Name
}

// EventsToRegister returns the events after which a rejected pod may fit: those of a new node. Most nodes are added
// with the taint not-ready, and nodes with devices with fewer resources than they will have. At Add, the scheduler
// moves a pod only if it tolerates the taints and the resources suffice, so the updates of taints and resources are
// needed too. No other event changes a rejection, but the scheduler retries every pod after about a minute, with new
// random numbers.
func (pl *Chaos) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{{
		Resource:   framework.Node,
		ActionType: framework.Add | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
	}}
}

// isTarget reports whether the pod may be disturbed. It excludes kube-system again, in case validation missed it.
func (pl *Chaos) isTarget(pod *v1.Pod) bool {
	return pl.namespaces.Has(pod.Namespace) && pod.Namespace != metav1.NamespaceSystem && !isSystemCritical(pod)
}

// isSystemCritical reports whether the pod has the priority or the class of system-critical pods. Either is enough,
// because the admission plugin that sets the priority from the class may be disabled.
func isSystemCritical(pod *v1.Pod) bool {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= scheduling.SystemCriticalPriority {
		return true
	}
	class := pod.Spec.PriorityClassName
	return class == scheduling.SystemClusterCritical || class == scheduling.SystemNodeCritical
}

// log logs a disturbance of the pod, at the level of the scheduler's own message about a binding.
func (pl *Chaos) log(what string, pod *v1.Pod, current *attempt, keysAndValues ...interface{}) {
	klog.V(2).InfoS(what, append([]interface{}{"plugin", Name, "pod", klog.KObj(pod), "attempt", current.number}, keysAndValues...)...)
}
