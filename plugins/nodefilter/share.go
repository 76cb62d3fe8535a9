// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
)

// share holds the bounds of a Share rule, in percent, on the part of its population that is on the nodes of the rule.
type share struct {
	least, most int64
	// limits is set if the share rejects nodes, instead of giving them a lower score.
	limits bool
	// place is the index of its standing.
	place int
	// full rejects a node of the rule because of the upper bound, and short another node because of the lower bound.
	full, short filterrule.Verdict
}

// standing is the size of a population, which is the pods of one controlling owner or all pods without one, and of its
// part on the nodes of the rule.
type standing struct {
	pods, inside int64
	// closedInside and closedOutside are set if no node of the rule, or no other node, is open to the pod.
	closedInside, closedOutside bool
}

// count adds pods on nodes of the rule, or on other nodes.
func (s *standing) count(pods int64, inside bool) {
	s.pods += pods
	if inside {
		s.inside += pods
	}
}

// admits reports whether one more pod of the population may go to a node of the rule (inside), or to another one.
//
// If n pods exist after that, at most most% of n, rounded down, and at least least% of n, rounded up, may be inside. If
// no whole number is between these bounds (30 % to 60 % of one pod), the lower bound is reduced to the upper one. So at
// least one of the two kinds of nodes is always allowed. If no node of that kind is open, the other kind is, too.
func (s *share) admits(now standing, inside bool) bool {
	n := now.pods + 1
	most := s.most * n / 100
	if inside {
		return now.closedOutside || now.inside+1 <= most
	}
	least := (s.least*n + 99) / 100
	if least > most {
		least = most
	}
	return now.closedInside || now.inside >= least
}

// population counts the pods of all Share rules by their owners, and stores the rules that match each node: labels are
// read once for each change of a node, not in each cycle. It is a changes.Observer, so it has the pods of the last
// snapshot, bound or assumed, of all profiles. It is written at the beginning of a cycle, and then read in parallel.
type population struct {
	rules, shares []*rule
	standings     []map[types.UID]standing
	follower      changes.Follower
	// nodes has the objects of nodes as keys, which never change in place.
	nodes map[*v1.Node]matches
}

var _ changes.Observer = &population{}

// matches has a bit for each rule that matches a node, by the rules' numbers.
type matches [2]uint64

func (m matches) has(rule *rule) bool { return m[rule.number/64]&(1<<(rule.number%64)) != 0 }

func newPopulation(rules ruleSet) *population {
	p := &population{
		rules: append(append([]*rule(nil), rules.rules...), rules.scored...), shares: rules.shares, nodes: make(map[*v1.Node]matches),
	}
	for range rules.shares {
		p.standings = append(p.standings, make(map[types.UID]standing))
	}
	return p
}

// ownerOf returns the UID of the controlling owner of a pod, or "".
func ownerOf(pod *v1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// belongs reports whether a pod counts. Like upstream's PodTopologySpread, it excludes terminating pods.
func (r *rule) belongs(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && r.matchesPod(pod)
}

// add adds a pod on a node to the counts, or subtracts it with -1. It forgets an owner with its last pod.
func (p *population) add(node *v1.Node, pod *v1.Pod, by int64) {
	owner := ownerOf(pod)
	for place, rule := range p.shares {
		if !rule.belongs(pod) {
			continue
		}
		now := p.standings[place][owner]
		if now.count(by, rule.matchesNode(node)); now.pods == 0 {
			delete(p.standings[place], owner)
		} else {
			p.standings[place][owner] = now
		}
	}
}

// PodAdded implements changes.Observer.
func (p *population) PodAdded(node *v1.Node, pod *v1.Pod) { p.add(node, pod, 1) }

// PodRemoved implements changes.Observer.
func (p *population) PodRemoved(node *v1.Node, pod *v1.Pod) { p.add(node, pod, -1) }

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
		by := int64(-1)
		if is.has(rule) {
			by = 1
		}
		for _, pod := range pods {
			if rule.belongs(pod) {
				now := p.standings[i][ownerOf(pod)]
				now.inside += by
				p.standings[i][ownerOf(pod)] = now
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
	// owner is the owner of the pods in standings, the standings of all Share rules, or nil if none of the rules
	// concerns the pod.
	owner     types.UID
	standings []standing
}

// Clone returns a copy, so that pods can be added and removed without changing the cycle.
func (c *cycle) Clone() framework.StateData {
	if c.standings == nil {
		return c
	}
	return &cycle{about: c.about, owner: c.owner, standings: append([]standing(nil), c.standings...)}
}

func cycleOf(state *framework.CycleState) (*cycle, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("%s has rules with the action Share, so it must be enabled at preFilter too: %w", Name, err)
	}
	return data.(*cycle), nil
}

// standingsIn returns the standings of the Share rules, with all pods that were added and removed, or nil if none of
// them concerns the pod.
func (p *podRules) standingsIn(state *framework.CycleState) ([]standing, error) {
	if !p.shares || p.state == state {
		return p.standings, nil
	}
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
	if c.standings == nil || node == nil || ownerOf(pod) != c.owner {
		return nil
	}
	for place, rule := range pl.rules.shares {
		if rule.belongs(pod) {
			c.standings[place].count(by, rule.matchesNode(node))
		}
	}
	return nil
}
