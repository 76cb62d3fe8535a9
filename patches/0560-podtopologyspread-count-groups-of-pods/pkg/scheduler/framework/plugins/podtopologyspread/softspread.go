// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
)

var (
	_ framework.BatchScorePlugin = &PodTopologySpread{}
	_ framework.AlikeScorePlugin = &PodTopologySpread{}
)

// softSpread is PreScore's result for a pod with soft constraints: a preScoreState, and the score of each of its
// nodes.
type softSpread struct {
	*preScoreState
	nodes  []*v1.Node
	scores []int64
}

// Clone returns the same value, because it is immutable.
func (s *softSpread) Clone() framework.StateData { return s }

// scoreSoftSpread completes a state that has constraints, and returns the scores of nodes. It returns nil and does
// not change the state if there is no index, or if one of the nodes is not in the snapshot, for example because an
// extender returned another object.
func (pl *PodTopologySpread) scoreSoftSpread(
	s *preScoreState, pod *v1.Pod, filteredNodes []*v1.Node, nodes []*framework.NodeInfo, requireAllTopologies bool,
) []int64 {
	x := pl.begin(pod, s.Constraints, nodes)
	if x == nil {
		return nil
	}
	defer x.End()
	slots := make([]int32, len(filteredNodes))
	for i, node := range filteredNodes {
		var ok bool
		if slots[i], ok = x.Slot(node); !ok {
			return nil
		}
	}
	// Pods are counted by node for the hostname.
	all := x.newDomains(s.Constraints, v1.LabelHostname)
	sizes := make([]int, len(s.Constraints))
	for i, slot := range slots {
		if requireAllTopologies && !x.haveAll(slot) {
			// Nodes which don't have all required topologyKeys present are ignored when scoring later.
			s.IgnoredNodes.Insert(filteredNodes[i].Name)
			continue
		}
		for i := range all {
			if all[i] == nil {
				continue
			}
			if pods := x.domain(all, i, slot); *pods == uncounted {
				*pods = 0
				sizes[i]++
			}
		}
	}
	s.TopologyNormalizingWeight = make([]float64, len(s.Constraints))
	for i, d := range all {
		if d == nil {
			sizes[i] = len(filteredNodes) - len(s.IgnoredNodes)
		}
		s.TopologyNormalizingWeight[i] = topologyNormalizingWeight(sizes[i])
	}

	for slot := int32(0); slot < x.Slots(); slot++ {
		if x.matches(slot) && (!requireAllTopologies || x.haveAll(slot)) && x.allowed(slot) {
			x.count(all, slot)
		}
	}
	for i, d := range all {
		if d == nil || sizes[i] == 0 {
			continue
		}
		for number, n := range d.pods {
			if n != uncounted {
				count := int64(n)
				s.TopologyPairToPodCounts[topologyPair{s.Constraints[i].TopologyKey, d.Names[number]}] = &count
			}
		}
	}

	scores := make([]int64, len(slots))
	for i, slot := range slots {
		if len(s.IgnoredNodes) > 0 && s.IgnoredNodes.Has(filteredNodes[i].Name) {
			continue
		}
		// The order of this sum decides the last digits.
		var score float64
		for i, c := range s.Constraints {
			number := x.topologies[i].BySlot[slot]
			if number == podindex.NoValue {
				continue
			}
			count := int64(x.matching[i][slot])
			if all[i] != nil {
				count = int64(all[i].pods[number])
			}
			score += scoreForCount(count, c.MaxSkew, s.TopologyNormalizingWeight[i])
		}
		scores[i] = int64(score)
	}
	return scores
}

// matches reports whether a node has pods that match a constraint.
func (x *indexed) matches(slot int32) bool {
	for i := range x.matching {
		if x.matching[i][slot] != 0 {
			return true
		}
	}
	return false
}

// ScoreNodes sets the scores of nodes to the results of Score.
func (pl *PodTopologySpread) ScoreNodes(
	cycleState *framework.CycleState, pod *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList,
) *framework.Status {
	c, err := cycleState.Read(preScoreStateKey)
	if err != nil {
		_, err = getPreScoreState(cycleState)
		return framework.AsStatus(err)
	}
	place := -1
	soft, ok := c.(*softSpread)
	for i, nodeInfo := range nodes {
		if ok {
			if place = soft.find(nodeInfo.Node(), place+1); place >= 0 {
				scores[i].Score = soft.scores[place]
				continue
			}
		}
		score, status := pl.Score(context.Background(), cycleState, pod, scores[i].Name)
		if !status.IsSuccess() {
			return status
		}
		scores[i].Score = score
	}
	return nil
}

// ScoresAlike reports whether the pod has no soft constraints.
func (pl *PodTopologySpread) ScoresAlike(cycleState *framework.CycleState) bool {
	s, err := getPreScoreState(cycleState)
	return err == nil && s != nil && len(s.Constraints) == 0
}

// find returns the index of a node among those of PreScore, or -1. It searches from the given index on, then before
// it.
func (s *softSpread) find(node *v1.Node, from int) int {
	for i := range s.nodes {
		if at := (from + i) % len(s.nodes); s.nodes[at] == node {
			return at
		}
	}
	return -1
}
