// SPDX-License-Identifier: Apache-2.0

// Package pluginmetrics creates the metrics of plugins. They belong into package variables: a process registers a
// metric once, and the plugins of all profiles share it, usually with a label "profile".
package pluginmetrics

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// NewCounterVec returns a registered counter of the scheduler.
func NewCounterVec(name, help string, labels ...string) *metrics.CounterVec {
	vector := metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: schedulermetrics.SchedulerSubsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, labels)
	legacyregistry.MustRegister(vector)
	return vector
}

// NewGaugeVec returns a registered gauge of the scheduler.
func NewGaugeVec(name, help string, labels ...string) *metrics.GaugeVec {
	vector := metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: schedulermetrics.SchedulerSubsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, labels)
	legacyregistry.MustRegister(vector)
	return vector
}

// NewHistogramVec returns a registered histogram of the scheduler.
func NewHistogramVec(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	vector := metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: schedulermetrics.SchedulerSubsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	}, labels)
	legacyregistry.MustRegister(vector)
	return vector
}
