// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
)

var _ framework.PreparedFilterPlugin = &PodTopologySpread{}

// hardSpread is a preFilterState with numbers instead of label values.
type hardSpread struct {
	constraints []topologySpreadConstraint
	domains     []*domains
	// selfMatch is 1 if the pod itself matches the constraint with the same index.
	selfMatch []int32
}

// Clone copies the counts.
func (s *hardSpread) Clone() framework.StateData {
	clone := &hardSpread{s.constraints, make([]*domains, len(s.domains)), s.selfMatch}
next:
	for i, d := range s.domains {
		for j := range s.domains[:i] {
			if s.domains[j] == d {
				clone.domains[i] = clone.domains[j]
				continue next
			}
		}
		c := *d
		c.pods = append([]int32(nil), d.pods...)
		clone.domains[i] = &c
	}
	return clone
}

// countHardSpread counts the pods that match the hard constraints. It returns nil if there is no index.
func (pl *PodTopologySpread) countHardSpread(
	pod *v1.Pod, constraints []topologySpreadConstraint, nodes []*framework.NodeInfo,
) *hardSpread {
	x := pl.begin(pod, constraints, nodes)
	if x == nil {
		return nil
	}
	defer x.End()
	s := &hardSpread{constraints, x.newDomains(constraints, ""), make([]int32, len(constraints))}
	for i, c := range constraints {
		if c.Selector.Matches(labels.Set(pod.Labels)) {
			s.selfMatch[i] = 1
		}
	}
	// In accordance to design, if NodeAffinity or NodeSelector is defined, spreading is applied to nodes that pass
	// those filters. Their labels must contain all topology keys.
	for slot := int32(0); slot < x.Slots(); slot++ {
		if x.haveAll(slot) && x.allowed(slot) {
			for i := range s.domains {
				*x.domain(s.domains, i, slot) = 0
			}
		}
	}
	// The pods of a domain count for all of its nodes.
	for slot := int32(0); slot < x.Slots(); slot++ {
		x.count(s.domains, slot)
	}
	for _, d := range s.domains {
		for i := range d.critical {
			d.critical[i].value, d.critical[i].pods = podindex.NoValue, math.MaxInt32
		}
		for number, n := range d.pods {
			if n != uncounted {
				d.update(int32(number))
			}
		}
	}
	return s
}

// update does what criticalPaths.update does.
func (d *domains) update(number int32) {
	p, n := &d.critical, d.pods[number]
	switch {
	case number == p[0].value || number == p[1].value:
		if number == p[0].value {
			p[0].pods = n
		} else {
			p[1].pods = n
		}
		if p[0].pods > p[1].pods {
			p[0], p[1] = p[1], p[0]
		}
	case n < p[0].pods:
		p[1] = p[0]
		p[0].value, p[0].pods = number, n
	case n < p[1].pods:
		p[1].value, p[1].pods = number, n
	}
}

// updateWithPod does what preFilterState.updateWithPod does.
func (s *hardSpread) updateWithPod(updated, preemptor *v1.Pod, node *v1.Node, delta int32) {
	if updated.Namespace != preemptor.Namespace || node == nil ||
		!nodeLabelsMatchSpreadConstraints(node.Labels, s.constraints) {
		return
	}
	if match, _ := nodeaffinity.GetRequiredNodeAffinity(preemptor).Match(node); !match {
		return
	}
	for i, c := range s.constraints {
		if d := s.domains[i]; c.Selector.Matches(labels.Set(updated.Labels)) {
			number := d.Numbers[node.Labels[c.TopologyKey]]
			d.pods[number] += delta
			d.update(number)
		}
	}
}

var (
	lacksLabel = framework.NewStatus(framework.UnschedulableAndUnresolvable, ErrReasonNodeLabelNotMatch).
			WithFailedPlugin(Name)
	tooSkewed = framework.NewStatus(framework.Unschedulable, ErrReasonConstraintsNotMatch).WithFailedPlugin(Name)
)

// filter returns the result for a node that Filter returns with a preFilterState.
func (s *hardSpread) filter(nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	for i := range s.constraints {
		c, d := &s.constraints[i], s.domains[i]
		number := d.Of(nodeInfo)
		if number == podindex.NoValue {
			if verbose := klog.V(5); verbose.Enabled() {
				verbose.InfoS("Node doesn't have required label", "node", klog.KObj(node), "label", c.TopologyKey)
			}
			return lacksLabel
		}
		matchNum := int32(0)
		if number >= 0 && int(number) < len(d.pods) && d.pods[number] != uncounted {
			matchNum = d.pods[number]
		}
		// 'existing matching num' + 'if self-match (1 or 0)' - 'global min matching num' <= 'maxSkew'
		if least := d.critical[0].pods; matchNum+s.selfMatch[i]-least > c.MaxSkew {
			if verbose := klog.V(5); verbose.Enabled() {
				verbose.InfoS("Node failed spreadConstraint: matchNum + selfMatchNum - minMatchNum > maxSkew",
					"node", klog.KObj(node), "topologyKey", c.TopologyKey, "matchNum", matchNum,
					"selfMatchNum", s.selfMatch[i], "minMatchNum", least, "maxSkew", c.MaxSkew)
			}
			return tooSkewed
		}
	}
	return nil
}

func getHardSpread(cycleState *framework.CycleState) *hardSpread {
	c, _ := cycleState.Read(preFilterStateKey)
	hard, _ := c.(*hardSpread)
	return hard
}

// PrepareFilter returns a function with the results of Filter, or nil for a pod without hard constraints.
func (pl *PodTopologySpread) PrepareFilter(
	cycleState *framework.CycleState, pod *v1.Pod,
) func(nodeInfo *framework.NodeInfo) *framework.Status {
	if hard := getHardSpread(cycleState); hard != nil {
		return hard.filter
	}
	if s, err := getPreFilterState(cycleState); err == nil && len(s.Constraints) == 0 {
		return nil
	}
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		status := pl.Filter(context.Background(), cycleState, pod, nodeInfo)
		if status != nil {
			status.SetFailedPlugin(Name)
		}
		return status
	}
}
