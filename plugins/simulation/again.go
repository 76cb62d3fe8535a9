// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
)

// method says how the pods of the snapshot are placed again, or is empty if they are not.
func (w *work) method() string {
	if !w.Again {
		return ""
	}
	again, _, stay, reasons := replay.Again(w.cluster.Pods, false)
	var parts []string
	for _, reason := range sets.StringKeySet(reasons).List() {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	text := fmt.Sprintf("Placed again from empty nodes: %d pods in the order of their creation", len(again))
	if len(stay) > 0 {
		text += fmt.Sprintf("; %d are not: %s", len(stay), strings.Join(parts, ", "))
	}
	return text + "."
}

// same says why the configurations cannot differ, or is empty if they can.
func (w *work) same() string {
	if w.trace == nil {
		again, waiting, _, _ := replay.Again(w.cluster.Pods, false)
		if len(w.Workloads)+len(waiting) == 0 && (!w.Again || len(again) == 0) {
			next := "add --pod FILE or --trace FILE"
			if !w.Again {
				next += ", or leave out --pending-only"
			}
			return "No pod is to be placed, so nothing could differ; next: " + next + "."
		}
	}
	for _, c := range w.Configurations[1:] {
		if !reflect.DeepEqual(c.simulated(), w.Configurations[0].simulated()) {
			return ""
		}
	}
	if len(w.Configurations) < 2 {
		return ""
	}
	return "The configurations are the same, with their defaults, in all that a simulation depends on: nothing could differ."
}

// simulated returns the part of a configuration that replay.New uses.
func (c configuration) simulated() []interface{} {
	of, err := c.load()
	if err != nil {
		return nil // It was loaded before.
	}
	return []interface{}{of.APIVersion, of.Profiles, of.PercentageOfNodesToScore, of.PodInitialBackoffSeconds, of.PodMaxBackoffSeconds, of.Extenders}
}
