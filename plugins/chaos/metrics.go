// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"strconv"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// disturbances is shared by all profiles, as the registry of a process is.
var (
	disturbances = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem: schedulermetrics.SchedulerSubsystem,
			Name:      "chaos_disturbances_total",
			Help: "Number of scheduling attempts that the plugin Chaos disturbed, by what it did: 'reject' nodes, 'score' them " +
				"with a die, 'delay' the binding, 'redirect' it to a random node; 'spare' counts attempts that it left " +
				"alone, after rejections in a row or because pods were preempted for the pod. With dry_run 'true', what it " +
				"would have done.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"action", "dry_run"})
	registerOnce sync.Once
)

// counters are the plugin's counters, looked up once.
type counters struct {
	rejected, scored, delayed, redirected, spared metrics.CounterMetric
}

func newCounters(dryRun bool) counters {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(disturbances)
	})
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
