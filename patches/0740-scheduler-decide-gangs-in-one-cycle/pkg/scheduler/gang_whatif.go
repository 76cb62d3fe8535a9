// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

// findGang implements records.Sources.WhatIfGang: an attempt that reserves, binds and evicts nothing.
func (w *whatIfs) findGang(ctx context.Context, request records.GangRequest) (answer *records.GangWhatIf, held time.Duration, err error) {
	pod := request.Pending
	if pod == nil {
		pod = request.Pods[0]
	}
	source := w.gangs.sources[pod.Spec.SchedulerName]
	if source == nil {
		return nil, 0, nil
	}
	leave, err := w.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { held = leave() }()
	var gang *gangs.Gang
	var reason string
	if request.Pending != nil {
		gang, reason = source.GangOf(pod)
	} else if drafter, ok := source.(records.GangDrafter); ok {
		gang, reason = drafter.GangOfManifest(request.Group, request.Pods)
	}
	answer = &records.GangWhatIf{Name: pod.Namespace + "/" + pod.Labels[gangs.Label], Profile: pod.Spec.SchedulerName, Result: records.Unschedulable, Reason: reason}
	if gang == nil {
		if reason == "" {
			return nil, 0, nil
		}
		return answer, 0, nil
	}
	a := w.gangs.newAttempt(source, gang)
	if a.needed <= 0 && request.Pending != nil {
		return nil, 0, nil
	}
	answer.Running, answer.Needed = gang.MinMember-a.needed, a.needed
	if len(a.waiting) < a.needed {
		answer.Reason = "PodGroup " + gang.Name + gangs.TooFew
		return answer, 0, nil
	}
	w.gangs.dryRun(ctx, a, answer)
	return answer, 0, nil
}

// dryRun fills the answer with the result of an attempt.
func (g *gangCycles) dryRun(ctx context.Context, a *gangAttempt, answer *records.GangWhatIf) {
	recorder := g.algorithm.records
	draft := recorder.Draft()
	a.dry, g.algorithm.records = true, draft
	defer func() { g.algorithm.records = recorder }()
	for _, pod := range a.waiting {
		if fwk, err := g.frameworkForPod(pod); err == nil {
			a.add(&framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(pod)}, fwk)
		}
	}
	defer func() {
		a.Undo(0)
		for _, m := range a.order {
			if m.nominated != "" {
				g.SchedulingQueue.AddNominatedPod(m.info.PodInfo, &framework.NominatingInfo{NominatingMode: framework.ModeOverride, NominatedNodeName: m.nominated})
			}
		}
	}()
	decision := a.decide(ctx)
	nodes := map[*gangMember]string{}
	for _, m := range a.placed {
		nodes[m] = m.result.SuggestedHost
		if len(m.victims) > 0 {
			answer.Victims = append(answer.Victims, records.GangVictims{Node: nodes[m], Pods: namesOf(m.victims)})
		}
	}
	for _, m := range a.order {
		answer.Pods = append(answer.Pods, records.GangPod{Name: m.info.Pod.Name, Node: nodes[m]})
	}
	if decision.Err != nil {
		answer.Reason = decision.Err.Error()
		return
	}
	switch decision.Result {
	case gangs.Placed:
		answer.Result = records.Fits
	case gangs.Preempting:
	default:
		answer.WhyNot = decision.Preemption()
	}
	for i, try := range decision.Tries {
		if domain := try.Domain.String(); i == 0 {
			answer.Domain, answer.Found = domain, try.Found
		} else if len(answer.Domains) < maxDomains {
			answer.Domains = append(answer.Domains, records.GangDomain{Domain: domain, Found: try.Found})
		}
	}
	if len(decision.Tries) == 0 {
		return
	}
	if unfit := decision.Tries[0].Unfit; unfit != nil {
		answer.Unfit = unfit.Namespace + "/" + unfit.Name
		if record, found := draft.Get(unfit.Namespace, unfit.Name); found {
			answer.Decision = record.Attempts[0].Decision
		}
	}
}

// maxDomains limits the domains in an answer.
const maxDomains = 20

func namesOf(pods []*v1.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return names
}
