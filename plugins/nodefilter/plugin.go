// SPDX-License-Identifier: Apache-2.0

// Package nodefilter keeps pods off nodes by the nodes' names and labels, for all pods or for some, without a word in
// the pods themselves. Its rules are tried in order, and the first one that matches a pod and a node decides.
package nodefilter

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "NodeFilter"

// NodeFilter rejects a node for a pod, if the rules deny it.
type NodeFilter struct {
	rules ruleSet
	// last is the *podRules of the pod that was asked for last. In a scheduling cycle Filter is called for thousands of
	// nodes and one pod, by 16 workers at once and by preemption too; so what the rules say of the pod alone is decided
	// once. It is kept here and not in the CycleState, because here it costs a load, there a lock and two look-ups for
	// each node; and a worker may not write to a CycleState that another one clones to add nominated pods. It is right
	// for any number of pods at once, only slower.
	last atomic.Value
}

// podRules are the rules that concern a pod, in order. It never changes once it is made.
type podRules struct {
	// pod is compared by its address. That is safe: what the scheduler reads from its informers is never changed in
	// place, and an address is not used again while this points to it.
	pod   *v1.Pod
	rules []*rule
}

var (
	_ framework.FilterPlugin      = &NodeFilter{}
	_ framework.EnqueueExtensions = &NodeFilter{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.NodeFilterArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type NodeFilterArgs, got %T", Name, obj)
	}
	if err := validation.ValidateNodeFilterArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	rules, err := compile(args.DeepCopy(), rejectionsOf(handle))
	if err != nil {
		return nil, err
	}
	return &NodeFilter{rules: rules}, nil
}

// Name returns the name of the plugin.
func (pl *NodeFilter) Name() string {
	return Name
}

// EventsToRegister says what can make a pod fit that this plugin rejected: a new node, or a node whose labels change.
// Taints and allocatable resources are not in the rules, and still belong here: the scheduler shows a pod the event of
// a node only if the node has room for it and no taint against it. A node comes as a rule with a taint (not-ready) and
// reports its resources later, so its Add wakes no pod; what does is the end of the taint, or the resources. And of
// several changes at once the scheduler makes one event, in which resources go before labels. A change of the pod's own
// labels needs no event: the scheduler tries an updated pod again by itself.
func (pl *NodeFilter) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{
		{
			Resource: framework.Node,
			ActionType: framework.Add | framework.UpdateNodeLabel |
				framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
		},
	}
}

// Filter rejects a node that the rules deny to the pod. Preempting pods would not change the node's name or labels, so
// the rejection is unresolvable.
func (pl *NodeFilter) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	for _, rule := range pl.rulesFor(pod) {
		if rule.matchesNode(node) {
			return rule.verdict.Status()
		}
	}
	return pl.rules.otherwise.Status()
}

// rulesFor returns the rules that concern the pod.
func (pl *NodeFilter) rulesFor(pod *v1.Pod) []*rule {
	if !pl.rules.dependOnPod {
		return pl.rules.rules
	}
	if last, ok := pl.last.Load().(*podRules); ok && last.pod == pod {
		return last.rules
	}
	found := &podRules{pod: pod, rules: pl.rules.concerning(pod)}
	pl.last.Store(found)
	return found.rules
}
