package podfilter

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// defaultActionLabel stands for the default action in the label "rule". No rule can be called so: rules have the names of
// DNS labels, which have no upper case.
const defaultActionLabel = "defaultAction"

// rejections is one for the process, as its registry is, and is told apart by profile.
var (
	rejections = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "pod_filter_rejections_total",
			Help:           "Number of scheduling attempts that PodFilter rejected, by profile and by the rule that decided; 'defaultAction' where no rule matched.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "rule"})
	registerMetrics sync.Once
)

// rejectionsOf returns what gives a profile's counter for a rule. The profile is that of the framework that makes the
// plugin; another handle has none.
func rejectionsOf(handle framework.Handle) func(rule string) metrics.CounterMetric {
	registerMetrics.Do(func() { legacyregistry.MustRegister(rejections) })
	profile := ""
	if fwk, ok := handle.(framework.Framework); ok {
		profile = fwk.ProfileName()
	}
	return func(rule string) metrics.CounterMetric {
		return rejections.WithLabelValues(profile, rule)
	}
}
