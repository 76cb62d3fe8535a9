// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// share is what a Share rule wants: bounds, in percent, on how much of a population is on the nodes of the rule.
type share struct {
	least, most int64
	// place is that of its standing among those of all Share rules.
	place int
	// full is for a node of the rule, when there are all the pods that may be; short is for another node, when there are
	// too few.
	full, short filterrule.Verdict
}

// standing is how large a population is, and how much of it is on the nodes of its rule.
type standing struct {
	pods, inside int64
}

// admits says whether one more pod of the population may go to a node of the rule (inside), or to another one.
//
// With n pods after that, at most most% of n, rounded down, may be inside, and at least least% of n, rounded up. Where
// no whole number lies between (30 % to 60 % of one pod), the upper bound decides, and the lower one asks for as many as
// that allows. So of both kinds of nodes one is always open, whatever stands where.
func (s *share) admits(now standing, inside bool) bool {
	n := now.pods + 1
	most := s.most * n / 100
	if inside {
		return now.inside+1 <= most
	}
	least := (s.least*n + 99) / 100
	if least > most {
		least = most
	}
	return now.inside >= least
}

// population counts the pods of all Share rules, and keeps which nodes the rules match: labels are read once for each
// change of a node, not in each cycle. It is an observer of changes, and has what was seen of the snapshot last: pods that
// are bound or assumed, of all profiles. It is written to where a cycle begins, and read by many in the cycle.
type population struct {
	rules, shares []*rule
	standings     []standing
	follower      changes.Follower
	// nodes has those that there are, as they are: the object of a node never changes.
	nodes map[*v1.Node]matches
}

var _ changes.Observer = &population{}

// matches has a bit for each rule that matches a node, by the rules' numbers.
type matches [2]uint64

func (m matches) has(rule *rule) bool { return m[rule.number/64]&(1<<(rule.number%64)) != 0 }

func newPopulation(rules ruleSet) *population {
	return &population{
		rules: append(append([]*rule(nil), rules.rules...), rules.preferred...), shares: rules.shares,
		standings: make([]standing, len(rules.shares)), nodes: make(map[*v1.Node]matches),
	}
}

// belongs says whether a pod counts: one that is being deleted does not, as for upstream's PodTopologySpread.
func (r *rule) belongs(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && r.matchesPod(pod)
}

// add counts a pod on a node, or with -1 takes it out.
func (p *population) add(standings []standing, node *v1.Node, pod *v1.Pod, by int64) {
	for i, rule := range p.shares {
		if !rule.belongs(pod) {
			continue
		}
		standings[i].pods += by
		if rule.matchesNode(node) {
			standings[i].inside += by
		}
	}
}

// PodAdded is of changes.Observer.
func (p *population) PodAdded(node *v1.Node, pod *v1.Pod) { p.add(p.standings, node, pod, 1) }

// PodRemoved is of changes.Observer.
func (p *population) PodRemoved(node *v1.Node, pod *v1.Pod) { p.add(p.standings, node, pod, -1) }

// NodeChanged finds the rules that match a node, and moves its pods where it comes under a share or leaves it.
func (p *population) NodeChanged(before, after *v1.Node, pods []*v1.Pod) {
	was, is := p.nodes[before], matches{}
	delete(p.nodes, before)
	if after == nil {
		return // It has no pods.
	}
	for _, rule := range p.rules {
		if rule.matchesNode(after) {
			is[rule.number/64] |= 1 << (rule.number % 64)
		}
	}
	p.nodes[after] = is
	if was == is {
		return
	}
	for i, rule := range p.shares {
		if was.has(rule) == is.has(rule) {
			continue
		}
		for _, pod := range pods {
			switch {
			case !rule.belongs(pod):
			case is.has(rule):
				p.standings[i].inside++
			default:
				p.standings[i].inside--
			}
		}
	}
}

// follow sees what has changed. Where shares do not need it, it is done only if the snapshot says what has changed, as
// that of this project's scheduler does (patch 0575). To look at all nodes would take longer than their labels.
func (p *population) follow(lister framework.SharedLister, needed bool) (followed bool, err error) {
	_, tells := lister.(interface {
		ChangedSince(position int64) (changed []*framework.NodeInfo, now int64, ok bool)
	})
	if !tells && !needed {
		return false, nil
	}
	return true, p.follower.Follow(lister, p)
}

const stateKey framework.StateKey = Name

// cycle is what the plugin keeps of a scheduling cycle.
type cycle struct {
	about *podRules
	// standings are those of all Share rules; nil if none of the rules concerns the pod.
	standings []standing
}

// Clone is of framework.StateData: pods are added to a copy, and removed from it, without a trace in the cycle.
func (c *cycle) Clone() framework.StateData {
	if c.standings == nil {
		return c
	}
	return &cycle{about: c.about, standings: append([]standing(nil), c.standings...)}
}

func cycleOf(state *framework.CycleState) (*cycle, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("%s has rules with the action Share, which need it at preFilter, too: %w", Name, err)
	}
	return data.(*cycle), nil
}

// standingsOf returns how the Share rules stand for a node, with all pods that were added and removed.
func standingsOf(state *framework.CycleState) ([]standing, error) {
	c, err := cycleOf(state)
	if err != nil {
		return nil, err
	}
	if c.standings == nil {
		return nil, fmt.Errorf("%s: the pod's labels have changed in this cycle", Name)
	}
	return c.standings, nil
}

// AddPod counts a pod that preemption puts back, or that is nominated for a node.
func (pl *NodeFilter) AddPod(_ context.Context, state *framework.CycleState, _ *v1.Pod, added *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	return pl.simulate(state, added.Pod, nodeInfo.Node(), 1)
}

// RemovePod does not count a pod any more that preemption would evict.
func (pl *NodeFilter) RemovePod(_ context.Context, state *framework.CycleState, _ *v1.Pod, removed *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	return pl.simulate(state, removed.Pod, nodeInfo.Node(), -1)
}

func (pl *NodeFilter) simulate(state *framework.CycleState, pod *v1.Pod, node *v1.Node, by int64) *framework.Status {
	c, err := cycleOf(state)
	if err != nil {
		return framework.AsStatus(err)
	}
	if c.standings != nil && node != nil {
		pl.population.add(c.standings, node, pod, by)
	}
	return nil
}
