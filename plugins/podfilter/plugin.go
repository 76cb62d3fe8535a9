// SPDX-License-Identifier: Apache-2.0

// Package podfilter keeps pods waiting by their name, namespace and labels, whatever nodes there are. Its rules are
// tried in order, and the first one that matches a pod decides over it.
package podfilter

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "PodFilter"

// PodFilter rejects a pod before any node is looked at, if the rules deny it.
type PodFilter struct {
	rules []rule
	// otherwise is what becomes of a pod that no rule matches.
	otherwise filterrule.Verdict
}

var (
	_ framework.PreFilterPlugin   = &PodFilter{}
	_ framework.EnqueueExtensions = &PodFilter{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.PodFilterArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type PodFilterArgs, got %T", Name, obj)
	}
	if err := validation.ValidatePodFilterArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	rules, otherwise, err := compile(args.DeepCopy(), rejectionsOf(handle))
	if err != nil {
		return nil, err
	}
	return &PodFilter{rules: rules, otherwise: otherwise}, nil
}

// Name returns the name of the plugin.
func (pl *PodFilter) Name() string {
	return Name
}

// EventsToRegister returns nothing: only the pod's own labels can change what the rules say of it, and the scheduler
// tries an updated pod again by itself. Events of nodes or of other pods would try it in vain. The scheduler logs one
// line about that when it starts.
func (pl *PodFilter) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// PreFilter rejects a pod that the rules deny. No preemption changes that, so the rejection is unresolvable.
func (pl *PodFilter) PreFilter(ctx context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	verdict := &pl.otherwise
	for i := range pl.rules {
		if pl.rules[i].matches(pod) {
			verdict = &pl.rules[i].verdict
			break
		}
	}
	return verdict.Status(verdict.Denies() && whatif.Is(state))
}

// PreFilterExtensions returns nil: other pods on a node make no difference.
func (pl *PodFilter) PreFilterExtensions() framework.PreFilterExtensions {
	return nil
}
