// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// shrink returns a minimal scenario that still fails: no single part of it can be removed.
func shrink(scenario *Scenario, fails func(*Scenario) bool) *Scenario {
	small := *scenario
	try := func(candidate Scenario) bool {
		if !fails(&candidate) {
			return false
		}
		small = candidate
		return true
	}
	for smaller := true; smaller; {
		smaller = false
		if small.Config != plainConfig && !small.Overcommits {
			smaller = try(withoutConfig(small))
		}
		if len(small.Features) > 0 {
			candidate := small
			candidate.Features = nil
			smaller = try(candidate) || smaller
		}
		if small.Graceful {
			candidate := small
			candidate.Graceful = false
			smaller = try(candidate) || smaller
		}
		smaller = without(&small, try, func(s *Scenario) *[]Step { return &s.Steps }) || smaller
		for i := range small.Steps {
			for n := len(small.Steps[i].Schedule) - 1; n >= 0 && len(small.Steps[i].Schedule) > 1; n-- {
				candidate := small
				candidate.Steps = append([]Step(nil), small.Steps...)
				pods := small.Steps[i].Schedule
				candidate.Steps[i].Schedule = append(pods[:n:n], pods[n+1:]...)
				smaller = try(candidate) || smaller
			}
		}
		smaller = without(&small, try, func(s *Scenario) *[]*v1.Node { return &s.Nodes }) || smaller
		smaller = shrinkObjects(&small, try) || smaller
	}
	return &small
}

func shrinkObjects(small *Scenario, try func(Scenario) bool) bool {
	smaller := without(small, try, func(s *Scenario) *[]*v1.Namespace { return &s.Namespaces })
	smaller = without(small, try, func(s *Scenario) *[]*v1.Service { return &s.Services }) || smaller
	smaller = without(small, try, func(s *Scenario) *[]*policyv1.PodDisruptionBudget { return &s.Budgets }) || smaller
	smaller = without(small, try, func(s *Scenario) *[]*storagev1.StorageClass { return &s.Classes }) || smaller
	smaller = without(small, try, func(s *Scenario) *[]*v1.PersistentVolumeClaim { return &s.Claims }) || smaller
	smaller = without(small, try, func(s *Scenario) *[]*v1.PersistentVolume { return &s.Volumes }) || smaller
	return without(small, try, func(s *Scenario) *[]*storagev1.CSINode { return &s.CSINodes }) || smaller
}

// without removes pieces of a list, large ones first, and reports whether it removed any.
func without[T any](small *Scenario, try func(Scenario) bool, list func(*Scenario) *[]T) bool {
	smaller := false
	for piece := len(*list(small)); piece > 0; piece /= 2 {
		for from := len(*list(small)) - piece; from >= 0; from -= piece {
			candidate, all := *small, *list(small)
			*list(&candidate) = append(all[:from:from], all[from+piece:]...)
			smaller = try(candidate) || smaller
		}
	}
	return smaller
}

// withoutConfig sets the default configuration, which has no second profile.
func withoutConfig(scenario Scenario) Scenario {
	scenario.Config = plainConfig
	steps := scenario.Steps
	scenario.Steps = nil
	for _, step := range steps {
		pods := step.Schedule
		step.Schedule = nil
		for _, pod := range pods {
			pod = pod.DeepCopy()
			pod.Spec.SchedulerName = ""
			step.Schedule = append(step.Schedule, pod)
		}
		scenario.Steps = append(scenario.Steps, step)
	}
	return scenario
}
