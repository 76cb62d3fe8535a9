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

// share holds the bounds of a Share rule, in percent, on the part of its population that is on the nodes of the rule.
type share struct {
	least, most int64
	// place is the index of its standing.
	place int
	// full rejects a node of the rule because of the upper bound, and short another node because of the lower bound.
	full, short filterrule.Verdict
}

// standing is the size of a population, and of its part on the nodes of the rule.
type standing struct {
	pods, inside int64
}

// admits reports whether one more pod of the population may go to a node of the rule (inside), or to another one.
//
// If n pods exist after that, at most most% of n, rounded down, and at least least% of n, rounded up, may be inside. If
// no whole number is between these bounds (30 % to 60 % of one pod), the lower bound is reduced to the upper one. So at
// least one of the two kinds of nodes is always allowed.
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

// population counts the pods of all Share rules, and stores the rules that match each node: labels are read once for
// each change of a node, not in each cycle. It is a changes.Observer, so it has the pods of the last snapshot, bound or
// assumed, of all profiles. It is written at the beginning of a cycle, and then read in parallel.
type population struct {
	rules, shares []*rule
	standings     []standing
	follower      changes.Follower
	// nodes has the objects of nodes as keys, which never change in place.
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

// belongs reports whether a pod counts. Like upstream's PodTopologySpread, it excludes terminating pods.
func (r *rule) belongs(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && r.matchesPod(pod)
}

// add adds a pod on a node to the counts, or subtracts it with -1.
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

// PodAdded implements changes.Observer.
func (p *population) PodAdded(node *v1.Node, pod *v1.Pod) { p.add(p.standings, node, pod, 1) }

// PodRemoved implements changes.Observer.
func (p *population) PodRemoved(node *v1.Node, pod *v1.Pod) { p.add(p.standings, node, pod, -1) }

// NodeChanged implements changes.Observer: it finds the rules that match a node, and updates the counts of its pods.
func (p *population) NodeChanged(before, after *v1.Node, pods []*v1.Pod) {
	was, is := p.nodes[before], matches{}
	delete(p.nodes, before)
	if after == nil {
		return // A removed node has no pods.
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

// follow applies the changes of the snapshot. Without Share rules, it does so only if the snapshot has a list of
// changes, as with patch 0575. Comparing all nodes would take longer than reading their labels.
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

// cycle is the plugin's state of a scheduling cycle.
type cycle struct {
	about *podRules
	// standings are the standings of all Share rules, or nil if none of the rules concerns the pod.
	standings []standing
}

// Clone returns a copy, so that pods can be added and removed without changing the cycle.
func (c *cycle) Clone() framework.StateData {
	if c.standings == nil {
		return c
	}
	return &cycle{about: c.about, standings: append([]standing(nil), c.standings...)}
}

func cycleOf(state *framework.CycleState) (*cycle, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("%s has rules with the action Share, so it must be enabled at preFilter too: %w", Name, err)
	}
	return data.(*cycle), nil
}

// standingsOf returns the standings of the Share rules, with all pods that were added and removed.
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

// AddPod adds a pod that preemption restores, or that is nominated for a node.
func (pl *NodeFilter) AddPod(_ context.Context, state *framework.CycleState, _ *v1.Pod, added *framework.PodInfo, nodeInfo *framework.NodeInfo) *framework.Status {
	return pl.simulate(state, added.Pod, nodeInfo.Node(), 1)
}

// RemovePod removes a pod that preemption would evict.
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
