// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Screener is an Interface whose SelectVictimsOnNode only adds pods to the state that it removed before, and does not
// read the state itself.
type Screener interface {
	Interface
	// HasNoVictims reports whether SelectVictimsOnNode would find no pod to remove from a node. It must not change
	// the node, which is not a copy.
	HasNoVictims(pod *v1.Pod, nodeInfo *framework.NodeInfo) bool
	// NoVictims returns the status that SelectVictimsOnNode would return for such a node.
	NoVictims(pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status
}

func (ev *Evaluator) hasNoVictims(pod *v1.Pod, nodeInfo *framework.NodeInfo) bool {
	return ev.search != nil && ev.search.HasNoVictims(pod, nodeInfo)
}

// potentialNodesOf returns the same nodes as nodesWherePreemptionMightHelp.
func potentialNodesOf(nodes []*framework.NodeInfo, m framework.NodeToStatusMap) []*framework.NodeInfo {
	unresolvable := 0
	for _, status := range m {
		if status.Code() == framework.UnschedulableAndUnresolvable {
			unresolvable++
		}
	}
	if unresolvable == 0 {
		return nodes
	}
	var potentialNodes []*framework.NodeInfo
	for _, node := range nodes {
		if m[node.Node().Name].Code() != framework.UnschedulableAndUnresolvable {
			potentialNodes = append(potentialNodes, node)
		}
	}
	return potentialNodes
}

// search is the state of a search for victims with a Screener.
type search struct {
	Screener
	pod        *v1.Pod
	statuses   framework.NodeToStatusMap // the filters' statuses by node
	evaluated  framework.NodeToStatusMap // statuses of nodes that were fully evaluated and are not candidates
	candidates int32
}

// PreemptWith is Preempt for an Evaluator whose Interface is a Screener.
func (ev *Evaluator) PreemptWith(ctx context.Context, screener Screener, pod *v1.Pod, m framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	ev.Interface, ev.search = screener, &search{Screener: screener}
	result, status := ev.Preempt(ctx, pod, m)
	return result, ev.explain(status)
}

// beginSearch returns the same as nodesWherePreemptionMightHelp. With a Screener it omits the statuses; explain
// builds them when they are read.
func (ev *Evaluator) beginSearch(pod *v1.Pod, nodes []*framework.NodeInfo, m framework.NodeToStatusMap) ([]*framework.NodeInfo, framework.NodeToStatusMap) {
	if ev.search == nil {
		return nodesWherePreemptionMightHelp(nodes, m)
	}
	ev.search.pod, ev.search.statuses = pod, m
	return potentialNodesOf(nodes, m), nil
}

// end records the result of a search. A nil search has no Screener.
func (s *search) end(candidates int32, evaluated framework.NodeToStatusMap) {
	if s != nil {
		s.candidates, s.evaluated = candidates, evaluated
	}
}

// explain returns the status of Preempt. If no node has victims whose removal would help, the status lists the reason
// for each node, built when it is read. It must be read in the same scheduling cycle.
func (ev *Evaluator) explain(status *framework.Status) *framework.Status {
	search := ev.search
	if search.pod == nil || search.candidates > 0 || status.Code() != framework.Unschedulable {
		return status
	}
	return framework.NewLazyStatus(framework.Unschedulable, func() string {
		nodes, err := ev.Handler.SnapshotSharedLister().NodeInfos().List()
		if err != nil {
			return err.Error()
		}
		potentialNodes, statuses := nodesWherePreemptionMightHelp(nodes, search.statuses)
		for _, node := range potentialNodes {
			name := node.Node().Name
			if status, ok := search.evaluated[name]; ok {
				statuses[name] = status
			} else {
				statuses[name] = search.NoVictims(search.pod, node)
			}
		}
		fitError := &framework.FitError{
			Pod: search.pod, NumAllNodes: len(statuses), Diagnosis: framework.Diagnosis{NodeToStatusMap: statuses},
		}
		return fitError.Error()
	})
}
