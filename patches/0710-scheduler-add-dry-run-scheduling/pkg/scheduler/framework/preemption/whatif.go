// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

// whatIfCandidates limits the candidates of a dry run. An attempt has another limit, and starts at a random node.
const whatIfCandidates = 100

// WouldPreempt simulates PreemptWith and returns the result. It does not call extenders.
func (ev *Evaluator) WouldPreempt(ctx context.Context, screener Screener, pod *v1.Pod, m framework.NodeToStatusMap) (*records.PreemptionRecord, error) {
	ev.Interface, ev.search = screener, &search{Screener: screener}
	if !ev.PodEligibleToPreemptOthers(pod, m[pod.Status.NominatedNodeName]) {
		return records.Preemption(nil, 0, "", nil, notEligible), nil
	}
	nodes, err := ev.Handler.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, err
	}
	potentialNodes, _ := ev.beginSearch(pod, nodes, m)
	own := make([]*framework.NodeInfo, len(potentialNodes))
	for i, node := range potentialNodes {
		own[i] = node.WithOwnClaims()
	}
	pdbs, err := getPodDisruptionBudgets(ev.PdbLister)
	if err != nil {
		return nil, err
	}
	candidates := []Candidate(nil)
	if len(own) > 0 {
		if candidates, _, err = ev.DryRunPreemption(ctx, pod, own, pdbs, 0, whatIfCandidates); err != nil && len(candidates) == 0 {
			return nil, err
		}
	}
	best := ev.SelectCandidate(candidates)
	if best == nil {
		return records.Preemption(nil, 0, "", nil, noCandidate), nil
	}
	names := make([]string, len(candidates))
	for i := range candidates {
		names[i] = candidates[i].Name()
	}
	return records.Preemption(names, len(names), best.Name(), best.Victims().Pods, ""), nil
}
