// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/filterrule"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// rejections is one for the process, as its registry is, and is told apart by profile.
var (
	rejections = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_filter_rejections_total",
			Help:           "Number of nodes that NodeFilter rejected in scheduling attempts, by profile and by the rule that decided; 'defaultAction' where no rule matched.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "rule"})
	registerMetrics sync.Once
)

// rejectionsOf returns what gives a profile's counter for a rule.
func rejectionsOf(handle framework.Handle) func(rule string) metrics.CounterMetric {
	registerMetrics.Do(func() { legacyregistry.MustRegister(rejections) })
	return filterrule.Counters(handle, rejections)
}
