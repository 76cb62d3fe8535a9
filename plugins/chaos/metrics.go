// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"strconv"

	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
)

// disturbances is shared by all profiles.
var disturbances = pluginmetrics.NewCounterVec("chaos_disturbances_total",
	"Number of scheduling attempts that the plugin Chaos disturbed, by action: 'reject' nodes, 'score' them "+
		"at random, 'delay' the binding, 'redirect' it to a random node; 'spare' counts attempts that it left "+
		"alone, after repeated rejections or because pods were preempted for the pod. With dry_run 'true', what it "+
		"would have done.",
	"action", "dry_run")

// counters are the plugin's counters for each action.
type counters struct {
	rejected, scored, delayed, redirected, spared metrics.CounterMetric
}

func newCounters(dryRun bool) counters {
	counter := func(action string) metrics.CounterMetric {
		return disturbances.WithLabelValues(action, strconv.FormatBool(dryRun))
	}
	return counters{
		rejected:   counter("reject"),
		scored:     counter("score"),
		delayed:    counter("delay"),
		redirected: counter("redirect"),
		spared:     counter("spare"),
	}
}
