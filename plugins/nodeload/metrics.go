// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// The vectors are package variables because the registry is the process'; their label is the profile.
var (
	rejections = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_rejections_total",
			Help:           "Number of times that NodeLoad rejected a node for a pod, by profile and by the resource whose predicted load was above the threshold, or not measured.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "resource"})
	fallbackCycles = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_fallback_cycles_total",
			Help:           "Number of scheduling cycles in which NodeLoad ignored a resource's measurements because too few nodes had one, by profile and resource.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "resource"})
	inFlightPods = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_in_flight_pods",
			Help:           "Number of pods that are not fully included in the measurements, at the last refresh, by profile.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile"})
	registerMetrics sync.Once
)

// counters are the metrics of one profile. Those of resources are in the order of the resources.
type counters struct {
	rejections, blind []metrics.CounterMetric
	inFlight          metrics.GaugeMetric
}

func newCounters(profile string, resources []resource) counters {
	registerMetrics.Do(func() { legacyregistry.MustRegister(rejections, fallbackCycles, inFlightPods) })
	c := counters{inFlight: inFlightPods.WithLabelValues(profile)}
	for i := range resources {
		c.rejections = append(c.rejections, rejections.WithLabelValues(profile, resources[i].name))
		c.blind = append(c.blind, fallbackCycles.WithLabelValues(profile, resources[i].name))
	}
	return c
}
