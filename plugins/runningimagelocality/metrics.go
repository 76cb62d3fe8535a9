// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

var (
	attempts = pluginmetrics.NewCounterVec("running_image_locality_attempts_total",
		"Number of scheduling attempts that RunningImageLocality scored, by profile and by whether any node ran an image of the pod: 'match' or 'no_match'.",
		"profile", "result")
	runningImages = pluginmetrics.NewGaugeVec("running_image_locality_images",
		"Number of distinct images, by tag or digest, that RunningImageLocality knows to be running, by profile.",
		"profile")
)

// counters are the metrics of one profile.
type counters struct {
	match, noMatch metrics.CounterMetric
	running        metrics.GaugeMetric
}

// newCounters returns the metrics of the handle's profile.
func newCounters(handle framework.Handle) counters {
	profile := services.ProfileOf(handle)
	return counters{
		match:   attempts.WithLabelValues(profile, "match"),
		noMatch: attempts.WithLabelValues(profile, "no_match"),
		running: runningImages.WithLabelValues(profile),
	}
}

// count counts an attempt, and sets the number of running images.
func (c *counters) count(match bool, running int) {
	if match {
		c.match.Inc()
	} else {
		c.noMatch.Inc()
	}
	c.running.Set(float64(running))
}
