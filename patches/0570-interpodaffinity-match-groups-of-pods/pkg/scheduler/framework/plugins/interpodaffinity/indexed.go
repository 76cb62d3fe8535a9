// SPDX-License-Identifier: Apache-2.0

package interpodaffinity

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
)

var (
	_ framework.PreparedFilterPlugin = &InterPodAffinity{}
	_ framework.BatchScorePlugin     = &InterPodAffinity{}
	_ framework.AlikeScorePlugin     = &InterPodAffinity{}
	_ framework.CachingPlugin        = &InterPodAffinity{}
)

// CompareCache counts the pods of the index again.
func (pl *InterPodAffinity) CompareCache(nodes map[string]*framework.NodeInfo) []string {
	return podindex.Compare(pl.sharedLister, nodes)
}

func selectorsOf(lists ...[]framework.AffinityTerm) (selectors []labels.Selector) {
	for _, terms := range lists {
		for i := range terms {
			selectors = append(selectors, terms[i].Selector)
		}
	}
	return selectors
}

func countsOf(sums *podindex.Sums) topologyToMatchedTermCount {
	counts := make(topologyToMatchedTermCount)
	sums.Take(func(key, value string, n int64) { counts[topologyPair{key, value}] = n })
	return counts
}

// count sets the counts of a state.
func (pl *InterPodAffinity) count(s *preFilterState, all, withAntiAffinity []*framework.NodeInfo) {
	s.existingAntiAffinityCounts = pl.countExisting(s, all, withAntiAffinity)
	s.affinityCounts, s.antiAffinityCounts = pl.countIncoming(s, all)
}

func (pl *InterPodAffinity) countExisting(
	s *preFilterState, all, nodes []*framework.NodeInfo,
) topologyToMatchedTermCount {
	if len(nodes) >= podindex.MinNodes || len(nodes) == len(all) {
		if x := podindex.Begin(pl.sharedLister, all, true); x != nil {
			defer x.End()
			sums := x.NewSums()
			sums.AddTerms(s.podInfo.Pod, s.namespaceLabels, s.enableNamespaceSelector, func(t *podindex.Term) int64 {
				if t.Anti {
					return 1
				}
				return 0
			})
			return countsOf(sums)
		}
	}
	return pl.getExistingAntiAffinityCounts(s.podInfo.Pod, s.namespaceLabels, nodes, s.enableNamespaceSelector)
}

func (pl *InterPodAffinity) countIncoming(
	s *preFilterState, all []*framework.NodeInfo,
) (affinity, antiAffinity topologyToMatchedTermCount) {
	terms, antiTerms := s.podInfo.RequiredAffinityTerms, s.podInfo.RequiredAntiAffinityTerms
	if len(terms)+len(antiTerms) > 0 {
		if x := podindex.Begin(pl.sharedLister, all, false, selectorsOf(terms, antiTerms)...); x != nil {
			defer x.End()
			sums, antiSums := x.NewSums(), x.NewSums()
			sums.AddPods(1, s.enableNamespaceSelector, terms)
			for i := range antiTerms {
				antiSums.AddPods(1, s.enableNamespaceSelector, antiTerms[i:i+1])
			}
			return countsOf(sums), countsOf(antiSums)
		}
	}
	return pl.getIncomingAffinityAntiAffinityCounts(s.podInfo, all, s.enableNamespaceSelector)
}

// scoreTopologies sets the scores of a state. It returns false if there is no index for it; the nodes are those to read
// without.
func (pl *InterPodAffinity) scoreTopologies(s *preScoreState, nodes []*framework.NodeInfo) bool {
	all, err := pl.sharedLister.NodeInfos().List()
	if err != nil || len(nodes) < podindex.MinNodes && len(nodes) < len(all) {
		return false
	}
	var terms []framework.AffinityTerm
	var weights []int64
	add := func(weighted []framework.WeightedAffinityTerm, sign int64) {
		for i := range weighted {
			terms, weights = append(terms, weighted[i].AffinityTerm), append(weights, sign*int64(weighted[i].Weight))
		}
	}
	add(s.podInfo.PreferredAffinityTerms, 1)
	add(s.podInfo.PreferredAntiAffinityTerms, -1)
	x := podindex.Begin(pl.sharedLister, all, true, selectorsOf(terms)...)
	if x == nil {
		return false
	}
	defer x.End()
	s.sums = x.NewSums()
	s.sums.AddTerms(s.podInfo.Pod, s.namespaceLabels, pl.enableNamespaceSelector, func(t *podindex.Term) int64 {
		if t.Weight == 0 && !t.Anti {
			return int64(pl.args.HardPodAffinityWeight)
		}
		return int64(t.Weight)
	})
	for i := range terms {
		s.sums.AddPods(weights[i], pl.enableNamespaceSelector, terms[i:i+1])
	}
	return true
}

// domains are values of a topology key.
type domains struct {
	podindex.Topology
	// has is true for the values in the set, by number.
	has []bool
}

func (d *domains) contain(number int32) bool { return number >= 0 && d.has[number] }

// positive returns the domains of the keys, and of other keys, with a count above zero.
func (m topologyToMatchedTermCount) positive(x *podindex.Index, keys ...string) (all []domains) {
	of := func(key string) *domains {
		for i := range all {
			if all[i].Key == key {
				return &all[i]
			}
		}
		topology := x.Topology(key)
		all = append(all, domains{topology, make([]bool, len(topology.Names))})
		return &all[len(all)-1]
	}
	for _, key := range keys {
		of(key)
	}
	for pair, n := range m {
		if n > 0 {
			// A value that no node has anymore may have no number.
			d := of(pair.key)
			if number, ok := d.Numbers[pair.value]; ok {
				d.has[number] = true
			}
		}
	}
	return all
}

// PrepareFilter implements framework.PreparedFilterPlugin.
func (pl *InterPodAffinity) PrepareFilter(
	cycleState *framework.CycleState, pod *v1.Pod) func(nodeInfo *framework.NodeInfo) *framework.Status {
	whole := func(nodeInfo *framework.NodeInfo) *framework.Status {
		status := pl.Filter(context.Background(), cycleState, pod, nodeInfo)
		if status != nil {
			status.SetFailedPlugin(Name)
		}
		return status
	}
	state, err := getPreFilterState(cycleState)
	if err != nil {
		return whole
	}
	terms := state.podInfo.RequiredAffinityTerms
	if len(terms)+len(state.antiAffinityCounts)+len(state.existingAntiAffinityCounts) == 0 {
		return nil
	}
	nodes, err := pl.sharedLister.NodeInfos().List()
	if err != nil {
		return whole
	}
	x := podindex.BeginExisting(pl.sharedLister, nodes)
	if x == nil {
		return whole
	}
	defer x.End()
	var keys []string
	for i := range terms {
		keys = append(keys, terms[i].TopologyKey)
	}
	affinity := state.affinityCounts.positive(x, keys...)
	antiAffinity, existing := state.antiAffinityCounts.positive(x), state.existingAntiAffinityCounts.positive(x)
	// The first pod of a group with affinity to itself only needs the labels.
	first := len(state.affinityCounts) == 0 &&
		podMatchesAllAffinityTerms(terms, state.podInfo.Pod, state.enableNamespaceSelector)
	rejected := func(code framework.Code, reason string) *framework.Status {
		return framework.NewStatus(code, reason).WithFailedPlugin(Name)
	}
	noAffinity := rejected(framework.UnschedulableAndUnresolvable, ErrReasonAffinityRulesNotMatch)
	byAntiAffinity := rejected(framework.Unschedulable, ErrReasonAntiAffinityRulesNotMatch)
	byExisting := rejected(framework.Unschedulable, ErrReasonExistingAntiAffinityRulesNotMatch)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		for i := range affinity {
			number := affinity[i].Of(nodeInfo)
			if number == podindex.NoValue || !first && !affinity[i].contain(number) {
				return noAffinity
			}
		}
		for i := range antiAffinity {
			if antiAffinity[i].contain(antiAffinity[i].Of(nodeInfo)) {
				return byAntiAffinity
			}
		}
		for i := range existing {
			if existing[i].contain(existing[i].Of(nodeInfo)) {
				return byExisting
			}
		}
		return nil
	}
}

// ScoreNodes implements framework.BatchScorePlugin.
func (pl *InterPodAffinity) ScoreNodes(cycleState *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo,
	scores framework.NodeScoreList) *framework.Status {
	s, err := getPreScoreState(cycleState)
	if err != nil {
		return framework.AsStatus(err)
	}
	for i := range scores {
		scores[i].Score = s.score(nodes[i])
	}
	return nil
}

// ScoresAlike reports whether no term prefers a node.
func (pl *InterPodAffinity) ScoresAlike(cycleState *framework.CycleState) bool {
	s, err := getPreScoreState(cycleState)
	return err == nil && len(s.topologyScore) == 0 && s.sums.Empty()
}

// incoming returns PreFilter's terms of the pod if it ran in this cycle.
func (pl *InterPodAffinity) incoming(cycleState *framework.CycleState, pod *v1.Pod) *framework.PodInfo {
	if s, err := getPreFilterState(cycleState); err == nil && s.podInfo.Pod == pod {
		return s.podInfo
	}
	return framework.NewPodInfo(pod)
}
