// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// place is where something is written that is ignored. It is a value of the metric's label.
type place string

const (
	ofPod    place = "pod"
	ofNode   place = "node"
	ofServer place = "server"
)

// The vectors are one for the process, as its registry is, and are told apart by profile.
var (
	ignoredNames = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem: schedulermetrics.SchedulerSubsystem,
			Name:      "data_locality_ignored_total",
			Help: "Number of names of datasets that DataLocality ignored, by profile, by who gave them: 'pod' (counted at each attempt), 'node' or 'server' " +
				"(counted when they are read), and by reason: 'malformed', 'repeated' or 'too_many'.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "of", "reason"})
	knownDatasets = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "data_locality_datasets",
			Help:           "Number of datasets that some node holds, as DataLocality knew at its last decision about a pod that reads data, by profile.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile"})
	rejections = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "data_locality_rejections_total",
			Help:           "Number of nodes that DataLocality rejected in scheduling attempts, by profile.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile"})
	registerMetrics sync.Once
)

// counters are the metrics of one profile.
type counters struct {
	profile  string
	datasets metrics.GaugeMetric
	rejected metrics.CounterMetric
}

// newCounters returns the metrics of the profile whose framework makes the plugin; another handle has no profile.
func newCounters(handle framework.Handle) counters {
	registerMetrics.Do(func() { legacyregistry.MustRegister(ignoredNames, knownDatasets, rejections) })
	profile := services.ProfileOf(handle)
	return counters{profile: profile, datasets: knownDatasets.WithLabelValues(profile), rejected: rejections.WithLabelValues(profile)}
}

// ignore counts names that are ignored. That is rare.
func (c *counters) ignore(where place, why reason, count int) {
	if count > 0 {
		ignoredNames.WithLabelValues(c.profile, string(where), string(why)).Add(float64(count))
	}
}
