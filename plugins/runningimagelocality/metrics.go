// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// The vectors are one for the process, as its registry is, and are told apart by profile.
var (
	attempts = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "running_image_locality_attempts_total",
			Help:           "Number of scheduling attempts that RunningImageLocality scored, by profile and by whether any node ran an image of the pod: 'match' or 'no_match'.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "result"})
	runningImages = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "running_image_locality_images",
			Help:           "Number of different image names, tags and digests, that RunningImageLocality knows to be running, by profile.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile"})
	registerMetrics sync.Once
)

// counters are the metrics of one profile.
type counters struct {
	match, noMatch metrics.CounterMetric
	running        metrics.GaugeMetric
}

// newCounters returns the metrics of the profile whose framework makes the plugin; another handle has no profile.
func newCounters(handle framework.Handle) counters {
	registerMetrics.Do(func() { legacyregistry.MustRegister(attempts, runningImages) })
	profile := services.ProfileOf(handle)
	return counters{
		match:   attempts.WithLabelValues(profile, "match"),
		noMatch: attempts.WithLabelValues(profile, "no_match"),
		running: runningImages.WithLabelValues(profile),
	}
}

// count counts an attempt, and says how many images run.
func (c *counters) count(match bool, running int) {
	if match {
		c.match.Inc()
	} else {
		c.noMatch.Inc()
	}
	c.running.Set(float64(running))
}
