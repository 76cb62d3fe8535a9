// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// place is the kind of object with an ignored name. It is a value of the metric's label.
type place string

const (
	ofPod    place = "pod"
	ofNode   place = "node"
	ofServer place = "server"
)

var (
	ignoredNames = pluginmetrics.NewCounterVec("data_locality_ignored_total",
		"Number of names of datasets that DataLocality ignored, by profile, by origin: 'pod' (counted at each attempt), 'node' or 'server' "+
			"(counted when they are read), and by reason: 'malformed', 'repeated' or 'too_many'.",
		"profile", "of", "reason")
	knownDatasets = pluginmetrics.NewGaugeVec("data_locality_datasets",
		"Number of datasets on any node, as of DataLocality's last decision about a pod that reads data, by profile.",
		"profile")
	rejections = pluginmetrics.NewCounterVec("data_locality_rejections_total",
		"Number of nodes that DataLocality rejected in scheduling attempts, by profile.",
		"profile")
)

// counters are the metrics of one profile.
type counters struct {
	profile  string
	datasets metrics.GaugeMetric
	rejected metrics.CounterMetric
}

// newCounters returns the metrics of the handle's profile.
func newCounters(handle framework.Handle) counters {
	profile := services.ProfileOf(handle)
	return counters{profile: profile, datasets: knownDatasets.WithLabelValues(profile), rejected: rejections.WithLabelValues(profile)}
}

// ignore counts ignored names, which are rare.
func (c *counters) ignore(where place, why reason, count int) {
	if count > 0 {
		ignoredNames.WithLabelValues(c.profile, string(where), string(why)).Add(float64(count))
	}
}
