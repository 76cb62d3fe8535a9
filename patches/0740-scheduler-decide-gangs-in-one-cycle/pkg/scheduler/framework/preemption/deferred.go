// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// Deferred has the evictions of several preemptions, which only happen if all of them find victims.
type Deferred struct {
	evictions []eviction
	runs      *dryRuns
}

type eviction struct {
	victims []*v1.Pod
	evict   func() *framework.Status
}

const deferredKey framework.StateKey = "preemption/deferred"

// Clone implements framework.StateData.
func (d *Deferred) Clone() framework.StateData { return d }

// Defer makes Preempt add to d in a scheduling cycle, and change nothing else.
func (d *Deferred) Defer(state *framework.CycleState) { state.Write(deferredKey, d) }

// Len returns the number of preemptions, and Keep forgets all but the first n.
func (d *Deferred) Len() int   { return len(d.evictions) }
func (d *Deferred) Keep(n int) { d.evictions = d.evictions[:n] }

// Victims returns the victims of the preemptions from the nth on.
func (d *Deferred) Victims(n int) (victims []*v1.Pod) {
	for _, eviction := range d.evictions[n:] {
		victims = append(victims, eviction.victims...)
	}
	return victims
}

// Evict does what Preempt would have done.
func (d *Deferred) Evict() {
	for _, eviction := range d.evictions {
		if status := eviction.evict(); !status.IsSuccess() {
			klog.ErrorS(status.AsError(), "Evicting pods for a gang; it is tried again with the gang")
		}
	}
}

func (ev *Evaluator) deferred() *Deferred {
	data, err := ev.State.Read(deferredKey)
	if err != nil {
		return nil
	}
	return data.(*Deferred)
}

func (ev *Evaluator) prepareOrDefer(c Candidate, pod *v1.Pod, pluginName string) *framework.Status {
	d := ev.deferred()
	if d == nil {
		return ev.prepareCandidate(c, pod, pluginName)
	}
	victims := c.Victims()
	d.evictions = append(d.evictions, eviction{victims.Pods, func() *framework.Status {
		left := &extenderv1.Victims{}
		for _, victim := range victims.Pods {
			// Meanwhile it may have ended, and another pod have its name.
			if now, err := ev.PodLister.Pods(victim.Namespace).Get(victim.Name); err == nil && now.UID == victim.UID {
				left.Pods = append(left.Pods, victim)
			}
		}
		return ev.prepareCandidate(&candidate{victims: left, name: c.Name()}, pod, pluginName)
	}})
	return nil
}

// maxCandidates limits the candidates of a deferred preemption: there is one for each pod of a gang, in one cycle.
const maxCandidates = 100

// offsetAndCandidates is GetOffsetAndNumCandidates with this limit.
func (ev *Evaluator) offsetAndCandidates(nodes int32) (offset, candidates int32) {
	offset, candidates = ev.GetOffsetAndNumCandidates(nodes)
	if ev.deferred() != nil && candidates > maxCandidates {
		candidates = maxCandidates
	}
	return offset, candidates
}

// withoutOwnGang returns the candidates without a victim of the pod's own gang.
func (ev *Evaluator) withoutOwnGang(candidates []Candidate, pod *v1.Pod) (others []Candidate) {
	if ev.deferred() == nil {
		return candidates
	}
next:
	for _, candidate := range candidates {
		for _, victim := range candidate.Victims().Pods {
			if victim.Namespace == pod.Namespace && victim.Labels[gangs.Label] == pod.Labels[gangs.Label] {
				continue next
			}
		}
		others = append(others, candidate)
	}
	return others
}

// latest returns the informer's version of a pod.
func (ev *Evaluator) latest(pod *v1.Pod) (*v1.Pod, error) {
	if ev.deferred() != nil {
		return pod, nil
	}
	now, err := ev.PodLister.Pods(pod.Namespace).Get(pod.Name)
	if err == nil && now.UID != pod.UID {
		return nil, apierrors.NewNotFound(v1.Resource("pods"), pod.Name) // Another pod has its name.
	}
	return now, err
}

func (ev *Evaluator) clearNomination(pod *v1.Pod) error {
	if ev.deferred() != nil {
		return nil
	}
	return util.ClearNominatedNodeName(ev.Handler.ClientSet(), pod)
}

// budgets returns what the PodDisruptionBudgets allow after the deferred evictions.
func (ev *Evaluator) budgets() ([]*policy.PodDisruptionBudget, error) {
	ev.reuseDryRuns()
	budgets, err := getPodDisruptionBudgets(ev.PdbLister)
	d := ev.deferred()
	if err != nil || d == nil || d.Len() == 0 || len(budgets) == 0 {
		return budgets, err
	}
	victims := d.Victims(0)
	left := make([]*policy.PodDisruptionBudget, len(budgets))
	for i, budget := range budgets {
		left[i] = budget.DeepCopy()
		uses := usesUp(budget)
		for _, victim := range victims {
			if uses(victim) {
				left[i].Status.DisruptionsAllowed--
			}
		}
	}
	return left, nil
}
