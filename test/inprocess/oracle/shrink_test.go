// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"strings"
	"testing"
)

// TestShrink finds what it takes for a failure: two pods of one step, and a node.
func TestShrink(t *testing.T) {
	var scenario *Scenario
	for number := int64(1); ; number++ {
		scenario = Generate(number)
		if len(scenario.Volumes) > 0 && strings.Contains(scenario.Config, secondProfile) {
			break
		}
	}
	var first, second string
	for _, step := range scenario.Steps {
		if len(step.Schedule) > 3 {
			first, second = step.Schedule[1].Name, step.Schedule[3].Name
		}
	}
	if first == "" {
		t.Fatal("the scenario schedules too few pods at once for this test")
	}
	node := scenario.Nodes[len(scenario.Nodes)-1].Name
	small := shrink(scenario, func(s *Scenario) bool {
		found := 0
		for _, step := range s.Steps {
			for _, pod := range step.Schedule {
				if pod.Name == first || pod.Name == second {
					found++
				}
			}
		}
		for _, n := range s.Nodes {
			if n.Name == node {
				found++
			}
		}
		return found == 3
	})
	objects := small.objects()
	if len(small.Steps) != 1 || len(small.Steps[0].Schedule) != 2 || len(small.Nodes) != 1 || len(objects) != 0 ||
		small.Config != plainConfig || len(small.Features) != 0 {
		t.Fatalf("%d steps, %d nodes, %d other objects, %v",
			len(small.Steps), len(small.Nodes), len(objects), small.Features)
	}
	for _, pod := range small.Steps[0].Schedule {
		if pod.Spec.SchedulerName != "" {
			t.Errorf("%s asks for %s, which the default configuration does not have", pod.Name, pod.Spec.SchedulerName)
		}
	}
}
