// SPDX-License-Identifier: Apache-2.0

// Package nodefilter places pods by the nodes' names and labels, for all pods or for some, without a word in the pods
// themselves. Its rules are tried in order, and the first Allow or Deny that matches a pod and a node decides, unless a
// Share before it rejects the node for how many pods it has already. Rules that prefer nodes make a score.
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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "NodeFilter"

// NodeFilter rejects a node for a pod, if the rules deny it.
type NodeFilter struct {
	handle     framework.Handle
	rules      ruleSet
	population *population
	// last is the *podRules of the pod that was asked for last. In a scheduling cycle Filter is called for thousands of
	// nodes and one pod, by 16 workers at once and by preemption too; so what the rules say of the pod alone is decided
	// once. It is read here and not from the CycleState, because here it costs a load, there a lock and two look-ups for
	// each node. It is right for any number of pods at once, only slower.
	last atomic.Value
}

// podRules are the rules that concern a pod, in order.
type podRules struct {
	// pod is compared by its address. That is safe: what the scheduler reads from its informers is never changed in
	// place, and an address is not used again while this points to it.
	pod              *v1.Pod
	rules, preferred []*rule
	// weight is that of all preferred.
	weight int64
	// shares says that some rule has a share, and kept that the population knows all nodes of this cycle.
	shares, kept bool
	// standings are those that lie in state, which is the cycle's own: most nodes are looked at with it.
	state     *framework.CycleState
	standings []standing
	// whatIf says that the plugin is only asked. Whoever asks has a copy of the pod.
	whatIf bool
	// denied is how many nodes each rule has denied, and last those that none matched, for the decision records.
	denied []int64
}

var (
	_ framework.PreFilterPlugin     = &NodeFilter{}
	_ framework.PreFilterExtensions = &NodeFilter{}
	_ framework.FilterPlugin        = &NodeFilter{}
	_ framework.EnqueueExtensions   = &NodeFilter{}
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
	pl := &NodeFilter{handle: handle, rules: rules, population: newPopulation(rules)}
	if len(rules.preferred) > 0 {
		return &preferring{pl}, nil
	}
	return pl, nil
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
//
// Shares change with the pods that are on nodes: with their end, with their labels, and when others come.
func (pl *NodeFilter) EventsToRegister() []framework.ClusterEvent {
	events := []framework.ClusterEvent{
		{
			Resource: framework.Node,
			ActionType: framework.Add | framework.UpdateNodeLabel |
				framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
		},
	}
	if len(pl.rules.shares) > 0 {
		events = append(events, framework.ClusterEvent{Resource: framework.Pod, ActionType: framework.Add | framework.Update | framework.Delete})
	}
	return events
}

// PreFilter decides what the rules say of the pod alone, and how the shares stand that concern it.
func (pl *NodeFilter) PreFilter(ctx context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	c := &cycle{about: pl.newRules(state, pod)}
	if c.about.shares || len(c.about.preferred) > 0 {
		var err error
		if c.about.kept, err = pl.population.follow(pl.handle.SnapshotSharedLister(), c.about.shares); err != nil {
			return framework.AsStatus(err)
		}
	}
	if c.about.shares {
		c.standings = append([]standing(nil), pl.population.standings...)
		c.about.state, c.about.standings = state, c.standings
	}
	pl.last.Store(c.about)
	state.Write(stateKey, c)
	return nil
}

// PreFilterExtensions returns nil if other pods make no difference.
func (pl *NodeFilter) PreFilterExtensions() framework.PreFilterExtensions {
	if len(pl.rules.shares) == 0 {
		return nil
	}
	return pl
}

// Filter rejects a node that the rules deny to the pod. Preempting pods would not change the node's name or labels, so
// such a rejection is unresolvable; they would change shares.
func (pl *NodeFilter) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	about := pl.about(state, pod)
	if len(about.rules) == 0 {
		return about.decide(&pl.rules.otherwise, 0)
	}
	var standings []standing
	if about.state == state {
		standings = about.standings
	}
	on, known := pl.kept(about, node)
	for i, rule := range about.rules {
		matches := known && on.has(rule) || !known && rule.matchesNode(node)
		if rule.share == nil {
			if matches {
				return about.decide(&rule.verdict, i)
			}
			continue
		}
		if standings == nil {
			var err error
			if standings, err = standingsOf(state); err != nil {
				return framework.AsStatus(err)
			}
		}
		if rule.share.admits(standings[rule.share.place], matches) {
			continue
		}
		if matches {
			return about.decide(&rule.share.full, i)
		}
		return about.decide(&rule.share.short, i)
	}
	return about.decide(&pl.rules.otherwise, len(about.rules))
}

// kept returns what is known already of the rules that match a node.
func (pl *NodeFilter) kept(about *podRules, node *v1.Node) (on matches, known bool) {
	if about.kept {
		on, known = pl.population.nodes[node]
	}
	return on, known
}

// decide returns the status of a verdict, and counts a rejection by the number of its rule.
func (p *podRules) decide(verdict *filterrule.Verdict, number int) *framework.Status {
	if !verdict.Denies() {
		return nil
	}
	atomic.AddInt64(&p.denied[number], 1)
	return verdict.Status(p.whatIf)
}

// about returns the rules that concern the pod: those that PreFilter has found, if it was this pod's.
func (pl *NodeFilter) about(state *framework.CycleState, pod *v1.Pod) *podRules {
	if last, ok := pl.last.Load().(*podRules); ok && last.pod == pod {
		return last
	}
	found := pl.newRules(state, pod)
	pl.last.Store(found)
	return found
}

// newRules finds the rules that concern the pod.
func (pl *NodeFilter) newRules(state *framework.CycleState, pod *v1.Pod) *podRules {
	found := &podRules{
		pod: pod, rules: concerning(pl.rules.rules, pod), preferred: concerning(pl.rules.preferred, pod), whatIf: whatif.Is(state),
	}
	found.denied = make([]int64, len(found.rules)+1)
	for _, rule := range found.rules {
		found.shares = found.shares || rule.share != nil
	}
	for _, rule := range found.preferred {
		found.weight += rule.weight
	}
	return found
}
