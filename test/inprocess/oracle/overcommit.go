// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"kube-scheduler-fork/test/inprocess/decision"
)

// Ordinary pods are placed as if the overcommitting pods ran there with a CPU request of 0 and without their resource. So
// the scheduler with Overcommit runs a scenario first. In the other one the overcommitting pods are such pods, each
// cycle of theirs has the outcome that it had in the first, and everything else must be equal.

// Lines of the configuration that the other scheduler does not have.
const (
	overcommitEnabled = "      multiPoint: {enabled: [{name: Overcommit}]}\n"
	overcommitArgs    = "      - {name: Overcommit, args: {predictor: Requests}}\n"
)

// overcommitsMark is in the line of a trace that has the outcome of an overcommitting pod's cycle.
const overcommitsMark = " overcommits: "

// overcommits reports whether a pod, with or without its namespace, overcommits.
func (s *Scenario) overcommits(pod string) bool {
	return s.Overcommits && strings.ContainsAny(pod[len(pod)-1:], "147")
}

// overcommit makes pods of the generated scenario overcommit. They do not preempt, so that one outcome is enough.
func (s *Scenario) overcommit() {
	none, never := resource.MustParse("0"), v1.PreemptNever
	s.eachOvercommitting(func(pod *v1.Pod) {
		pod.Spec.PreemptionPolicy = &never
		for i := range pod.Spec.InitContainers {
			pod.Spec.InitContainers[i].Resources.Requests[v1.ResourceCPU] = none
		}
		for i := range pod.Spec.Containers {
			of := &pod.Spec.Containers[i].Resources
			amount, found := of.Requests[v1.ResourceCPU]
			if of.Requests[v1.ResourceCPU] = none; !found {
				amount = resource.MustParse("100m")
			}
			of.Limits = v1.ResourceList{v1.ResourceCPU: amount}
			of.Requests[config.OvercommitResource] = *resource.NewQuantity(amount.MilliValue(), resource.DecimalSI)
			if of.Requests.Memory().IsZero() {
				of.Requests[v1.ResourceMemory] = resource.MustParse("64Mi")
			}
		}
	})
}

func (s *Scenario) eachOvercommitting(do func(pod *v1.Pod)) {
	for i := range s.Steps {
		pods := s.Steps[i].Schedule
		if s.Steps[i].Place != nil {
			pods = []*v1.Pod{s.Steps[i].Place}
		}
		for _, pod := range pods {
			if s.overcommits(pod.Name) {
				do(pod)
			}
		}
	}
}

// without returns the scenario without Overcommit, with the outcomes in another scheduler's trace; the scenario itself
// if no pod overcommits.
func (s *Scenario) without(trace []string) *Scenario {
	if !s.Overcommits {
		return s
	}
	other := *s
	other.Config = strings.NewReplacer(overcommitEnabled, "", overcommitArgs, "").Replace(s.Config)
	other.Outcomes, other.Steps = []string{}, append([]Step(nil), s.Steps...)
	for i := range other.Steps {
		step := &other.Steps[i]
		if step.Place != nil {
			step.Place = step.Place.DeepCopy()
		}
		step.Schedule = nil
		for _, pod := range s.Steps[i].Schedule {
			step.Schedule = append(step.Schedule, pod.DeepCopy())
		}
	}
	other.eachOvercommitting(func(pod *v1.Pod) {
		for i := range pod.Spec.Containers {
			delete(pod.Spec.Containers[i].Resources.Requests, config.OvercommitResource)
		}
	})
	for _, line := range trace {
		if _, outcome, found := strings.Cut(line, overcommitsMark); found {
			other.Outcomes = append(other.Outcomes, outcome)
		}
	}
	return &other
}

// follow returns a function that returns the known outcomes one after the other, or nil.
func (s *Scenario) follow() func(pod string) (string, bool) {
	if s.Outcomes == nil {
		return nil
	}
	left := s.Outcomes
	return func(pod string) (outcome string, known bool) {
		if !s.overcommits(pod) {
			return "", false
		}
		if outcome = decision.NoNode; len(left) > 0 {
			outcome, left = left[0], left[1:]
		}
		return outcome, true
	}
}

// outcome returns the outcome of a decision.
func outcome(d decision.Decision) string {
	switch {
	case d.Node != "":
		return d.Node
	case strings.HasPrefix(d.Failure, "0/"):
		return decision.NoNode
	}
	return "an error"
}

// ordinary returns the lines without those on why an overcommitting pod has no node.
func (s *Scenario) ordinary(lines []string) (ordinary []string) {
	for _, line := range lines {
		pod, rest, _ := strings.Cut(line, ": ")
		if !s.overcommits(pod) || !strings.HasPrefix(rest, "Warning FailedScheduling") && !strings.HasPrefix(rest, "PodScheduled ") {
			ordinary = append(ordinary, line)
		}
	}
	return ordinary
}
