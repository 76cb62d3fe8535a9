// SPDX-License-Identifier: Apache-2.0

// Package nodefilter restricts pods to nodes by the nodes' names and labels, for all pods or for some, without any
// change of the pods. Its rules are evaluated in order: the first Allow or Deny that matches a pod and a node decides,
// unless an earlier Share with DoNotSchedule rejects the node. Rules that prefer nodes, and other Shares, make a score.
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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "NodeFilter"

// NodeFilter rejects nodes that the rules deny to a pod.
type NodeFilter struct {
	handle     framework.Handle
	rules      ruleSet
	population *population
	// last is the *podRules of the last pod. In a scheduling cycle, 16 workers and preemption call Filter for thousands
	// of nodes and one pod, so the conditions about the pod are evaluated once. last is not in the CycleState, which
	// would cost a lock and two look-ups for each node, instead of an atomic load. It is correct for several pods in
	// parallel, but slower.
	last atomic.Value
}

// podRules are the rules that concern a pod, in order.
type podRules struct {
	// pod is compared by its address. That is safe: objects of informers are never changed in place, and an address is
	// not reused while this points to it.
	pod           *v1.Pod
	rules, scored []*rule
	// weight is the sum of the weights of scored, and pulls the number of its shares.
	weight, pulls int64
	// shares is set if some rule is a Share, and kept if the population has all nodes of this cycle.
	shares, kept bool
	// standings are the standings in state, the cycle's own state, with which most nodes are filtered.
	state     *framework.CycleState
	standings []standing
	// whatIf is set in a dry run, which has its own copy of the pod.
	whatIf bool
}

var (
	_ framework.PreFilterPlugin     = &NodeFilter{}
	_ framework.PreFilterExtensions = &NodeFilter{}
	_ framework.FilterPlugin        = &NodeFilter{}
	_ framework.EnqueueExtensions   = &NodeFilter{}
	_ services.NodeLocal            = &NodeFilter{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.NodeFilterArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type NodeFilterArgs, got %T", Name, obj)
	}
	if err := validation.ValidateNodeFilterArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	rules, err := compile(args.DeepCopy(), filterrule.Counters(handle, rejections))
	if err != nil {
		return nil, err
	}
	pl := &NodeFilter{handle: handle, rules: rules, population: newPopulation(rules)}
	if len(rules.scored) > 0 {
		return &preferring{pl, pl}, nil
	}
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *NodeFilter) Name() string {
	return Name
}

// EventsToRegister returns the events after which a rejected pod may fit: a new node, or changed labels of a node. The
// rules do not depend on taints and allocatable resources, but most nodes are added with the taint not-ready and report
// their resources later: then Add retries no pod, and the update of taints or resources does. If resources and labels
// change at once, the scheduler has only the event for resources.
//
// Shares with DoNotSchedule depend on the pods on nodes: on their labels, and on pods that are added and removed. The
// removal of a node and a cordon, which open the other nodes, retry no pod in this release, but the removal of the
// node's pods does.
func (pl *NodeFilter) EventsToRegister() []framework.ClusterEvent {
	events := []framework.ClusterEvent{
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable},
	}
	if pl.rules.limits {
		events = append(events, framework.ClusterEvent{Resource: framework.Pod, ActionType: framework.Add | framework.Update | framework.Delete})
	}
	return events
}

// PreFilter finds the rules that concern the pod, and computes their shares.
func (pl *NodeFilter) PreFilter(ctx context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	c := &cycle{about: pl.newRules(state, pod)}
	// The comparison of the scheduler's memory on SIGUSR2 is a dry run too, of pods without shares: scheduling goes on
	// meanwhile, and must not see changes of the population.
	if c.about.shares || len(c.about.scored) > 0 && !c.about.whatIf {
		var err error
		if c.about.kept, err = pl.population.follow(pl.handle.SnapshotSharedLister(), c.about.shares); err != nil {
			return framework.AsStatus(err)
		}
	}
	if c.about.shares {
		c.owner = ownerOf(pod)
		for _, owners := range pl.population.standings {
			c.standings = append(c.standings, owners[c.owner])
		}
		pl.findClosed(c)
		c.about.state, c.about.standings = state, c.standings
	}
	pl.last.Store(c.about)
	state.Write(stateKey, c)
	return nil
}

// PreFilterExtensions returns nil if verdicts do not depend on other pods.
func (pl *NodeFilter) PreFilterExtensions() framework.PreFilterExtensions {
	if !pl.rules.limits {
		return nil
	}
	return pl
}

// Filter rejects a node that the rules deny to the pod. Preemption does not change the node's name or labels, so the
// rejection is unresolvable. Rejections by a Share are resolvable.
func (pl *NodeFilter) Filter(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	about := pl.about(state, pod)
	if len(about.rules) == 0 {
		return pl.rules.otherwise.Status(about.whatIf)
	}
	var standings []standing
	on, known := pl.kept(about, node)
	for _, rule := range about.rules {
		matches := known && on.has(rule) || !known && rule.matchesNode(node)
		if rule.share == nil {
			if matches {
				return rule.verdict.Status(about.whatIf)
			}
			continue
		}
		if standings == nil {
			var err error
			if standings, err = about.standingsIn(state); err != nil {
				return framework.AsStatus(err)
			}
		}
		if rule.share.admits(standings[rule.share.place], matches) {
			continue
		}
		if matches {
			return rule.share.full.Status(about.whatIf)
		}
		return rule.share.short.Status(about.whatIf)
	}
	return pl.rules.otherwise.Status(about.whatIf)
}

// kept returns the rules that match a node, if the population has the node.
func (pl *NodeFilter) kept(about *podRules, node *v1.Node) (on matches, known bool) {
	if about.kept {
		on, known = pl.population.nodes[node]
	}
	return on, known
}

// about returns the rules that concern the pod. It uses those of PreFilter if they are for this pod.
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
		pod: pod, rules: concerning(pl.rules.rules, pod), scored: concerning(pl.rules.scored, pod), whatIf: whatif.Is(state),
	}
	for _, rule := range found.rules {
		found.shares = found.shares || rule.share != nil
	}
	for _, rule := range found.scored {
		found.weight += rule.weight
		if rule.share != nil {
			found.shares = true
			found.pulls++
		}
	}
	return found
}
