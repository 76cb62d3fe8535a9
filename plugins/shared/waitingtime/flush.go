// SPDX-License-Identifier: Apache-2.0

package waitingtime

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// afterFlush has the name that later releases give it.
var afterFlush = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem:      schedulermetrics.SchedulerSubsystem,
	Name:           "pod_scheduled_after_flush_total",
	Help:           "Number of pods bound in an attempt that no event has triggered, but only the time they had waited: 60 seconds or more.",
	StabilityLevel: metrics.ALPHA,
})

func init() { legacyregistry.MustRegister(afterFlush) }

// ObserveRetry counts a pod that is now bound, by the event that triggered its last attempt.
func ObserveRetry(wokenBy string) {
	if wokenBy == internalqueue.UnschedulableTimeout.Label {
		afterFlush.Inc()
	}
}
