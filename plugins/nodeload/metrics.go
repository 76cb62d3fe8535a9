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
	rejections = metrics.NewCounterVec((*metrics.CounterOpts)(options("rejections_total", "Number of times that NodeLoad rejected a node "+
		"for a pod, by profile and by the resource whose predicted load was above the threshold, or not measured.")), []string{"profile", "resource"})
	fallbackCycles = metrics.NewCounterVec((*metrics.CounterOpts)(options("fallback_cycles_total", "Number of scheduling cycles in which "+
		"NodeLoad ignored a resource's measurements because too few nodes had one, by profile and resource.")), []string{"profile", "resource"})
	inFlightPods = metrics.NewGaugeVec((*metrics.GaugeOpts)(options("in_flight_pods", "Number of pods that are not fully included in "+
		"the measurements, at the last refresh, by profile.")), []string{"profile"})
	registerMetrics sync.Once
)

func options(name, help string) *metrics.KubeOpts {
	return &metrics.KubeOpts{Subsystem: schedulermetrics.SchedulerSubsystem, Name: "node_load_" + name, Help: help, StabilityLevel: metrics.ALPHA}
}

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
