// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

const (
	notEligible = "The pod cannot preempt others now: its preemptionPolicy is Never, or pods that were evicted for it are still terminating."
	noCandidate = "Evicting pods of lower priority would not make room on any node."
)

// record records the candidates, and the best one with its victims.
func (ev *Evaluator) record(candidates []Candidate, best Candidate) {
	var names []string
	for i := range candidates {
		names = append(names, candidates[i].Name())
	}
	records.Of(ev.State).Preempts(names, len(candidates), best.Name(), best.Victims().Pods, "")
}

// recordFailure records why no pods are preempted.
func (ev *Evaluator) recordFailure(status *framework.Status) {
	if status.Code() != framework.Unschedulable {
		return
	}
	whyNot := notEligible
	if ev.search.pod != nil {
		whyNot = noCandidate
	}
	records.Of(ev.State).Preempts(nil, int(ev.search.candidates), "", nil, whyNot)
}
