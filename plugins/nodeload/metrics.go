// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
)

var (
	rejections = pluginmetrics.NewCounterVec("node_load_rejections_total", "Number of times that NodeLoad rejected a node "+
		"for a pod, by profile and by the resource whose predicted load was above the threshold, or not measured.", "profile", "resource")
	fallbackCycles = pluginmetrics.NewCounterVec("node_load_fallback_cycles_total", "Number of scheduling cycles in which "+
		"NodeLoad ignored a resource's measurements because too few nodes had one, by profile and resource.", "profile", "resource")
	inFlightPods = pluginmetrics.NewGaugeVec("node_load_in_flight_pods", "Number of pods that are not fully included in "+
		"the measurements, at the last refresh, by profile.", "profile")
)

// counters are the metrics of one profile. Those of resources are in the order of the resources.
type counters struct {
	rejections, blind []metrics.CounterMetric
	inFlight          metrics.GaugeMetric
}

func newCounters(profile string, resources []resource) counters {
	c := counters{inFlight: inFlightPods.WithLabelValues(profile)}
	for i := range resources {
		c.rejections = append(c.rejections, rejections.WithLabelValues(profile, resources[i].name))
		c.blind = append(c.blind, fallbackCycles.WithLabelValues(profile, resources[i].name))
	}
	return c
}
