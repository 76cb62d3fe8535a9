// SPDX-License-Identifier: Apache-2.0

// Package podfilter keeps pods pending by their name, namespace and labels, independent of nodes. Its rules are
// evaluated in order, and the first one that matches a pod decides.
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

// PodFilter rejects a pod that the rules deny, before nodes are filtered.
type PodFilter struct {
	rules []rule
	// otherwise is the verdict for a pod that no rule matches.
	otherwise filterrule.Verdict
}

var (
	_ framework.PreFilterPlugin   = &PodFilter{}
	_ framework.EnqueueExtensions = &PodFilter{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.PodFilterArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type PodFilterArgs, got %T", Name, obj)
	}
	if err := validation.ValidatePodFilterArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	rules, otherwise, err := compile(args.DeepCopy(), filterrule.Counters(handle, rejections))
	if err != nil {
		return nil, err
	}
	return &PodFilter{rules: rules, otherwise: otherwise}, nil
}

// Name returns the name of the plugin.
func (pl *PodFilter) Name() string {
	return Name
}

// EventsToRegister returns no events: verdicts depend only on the pod itself, and the scheduler retries an updated pod.
// The scheduler logs a line about that when it starts.
func (pl *PodFilter) EventsToRegister() []framework.ClusterEvent {
	return nil
}

// PreFilter rejects a pod that the rules deny. Preemption cannot help, so the rejection is unresolvable.
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

// PreFilterExtensions returns nil: verdicts do not depend on other pods.
func (pl *PodFilter) PreFilterExtensions() framework.PreFilterExtensions {
	return nil
}
