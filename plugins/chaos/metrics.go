// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
)

// disturbances is shared by all profiles.
var disturbances = pluginmetrics.NewCounterVec("chaos_disturbances_total",
	"Number of scheduling attempts that the plugin Chaos disturbed, by action: 'reject' nodes, 'score' them "+
		"at random, 'redirect' the pod to a random node; 'spare' counts attempts that it left alone, after repeated "+
		"rejections or because pods were preempted for the pod.",
	"action")

// counters are the plugin's counters for each action.
type counters struct {
	rejected, scored, redirected, spared metrics.CounterMetric
}

func newCounters() counters {
	return counters{
		rejected:   disturbances.WithLabelValues("reject"),
		scored:     disturbances.WithLabelValues("score"),
		redirected: disturbances.WithLabelValues("redirect"),
		spared:     disturbances.WithLabelValues("spare"),
	}
}
