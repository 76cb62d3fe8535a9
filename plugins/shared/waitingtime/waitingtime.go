// SPDX-License-Identifier: Apache-2.0

// Package waitingtime measures how long pods wait until they are bound, by PriorityClass. It is not a plugin: the
// scheduler calls it for each pod that it has bound.
package waitingtime

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

const (
	// maxClasses limits the time series, because PriorityClasses can be created at any time. The first ones have their
	// own label value.
	maxClasses = 32
	// noClass and otherClasses are not valid names of PriorityClasses.
	noClass      = "<none>"
	otherClasses = "<other>"
)

var waiting = newHistogram()

func init() { legacyregistry.MustRegister(waiting.seconds) }

// Observe records the waiting time of a pod that is now bound. queued is when it was first added to the queue.
func Observe(pod *v1.Pod, queued time.Time) {
	waiting.observe(pod.Spec.PriorityClassName, time.Since(queued))
}

// histogram is a histogram with a limited number of label values.
type histogram struct {
	seconds *metrics.HistogramVec

	mutex   sync.Mutex
	classes map[string]bool
}

func newHistogram() *histogram {
	return &histogram{
		classes: make(map[string]bool, maxClasses),
		seconds: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Subsystem: schedulermetrics.SchedulerSubsystem,
			Name:      "pod_waiting_duration_seconds",
			Help:      "Time from when a pod is first added to the scheduling queue until it is bound, by PriorityClass.",
			// Round numbers, so that a target such as 30 seconds is the bound of a bucket.
			Buckets:        []float64{0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
			StabilityLevel: metrics.ALPHA,
		}, []string{"priority_class"}),
	}
}

func (h *histogram) observe(class string, waited time.Duration) {
	h.seconds.WithLabelValues(h.label(class)).Observe(waited.Seconds())
}

// label returns the label value for a PriorityClass.
func (h *histogram) label(class string) string {
	if class == "" {
		return noClass
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.classes[class] {
		if len(h.classes) == maxClasses {
			return otherClasses
		}
		h.classes[class] = true
	}
	return class
}
