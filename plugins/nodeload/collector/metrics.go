// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// The vectors are one for the process, as its registry is. A source is told by its number, in the order in which they
// were made: an address would be one more label value with each change of the configuration.
var (
	sampleAge = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_sample_age_seconds",
			Help:           "Age of the oldest measurement of a resource that NodeLoad has, by its raw sample's own timestamp, at the last refresh.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source", "resource"})
	nodeStates = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_nodes",
			Help:           "Number of nodes at NodeLoad's last refresh by what is known of their resource: 'fresh', or why there is no measurement that counts.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source", "resource", "state"})
	refreshDuration = metrics.NewHistogramVec(
		&metrics.HistogramOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_refresh_duration_seconds",
			Help:           "Time that NodeLoad's refreshes took, from the first request to the finished snapshot.",
			Buckets:        metrics.ExponentialBuckets(0.001, 2, 16), // to 33 s
			StabilityLevel: metrics.ALPHA,
		}, []string{"source"})
	refreshes = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_refresh_total",
			Help:           "Number of NodeLoad's refreshes by result: 'success', 'partial' if some of the queries failed, or 'failure'.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source", "result"})
	unmatchedSeries = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_unmatched_series",
			Help:           "Number of series in the last answer to NodeLoad that were about no node that there is.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source", "resource"})
	responseBytes = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_response_bytes",
			Help:           "Number of bytes that NodeLoad's last refresh with an answer received, uncompressed, of all its requests together.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source"})
	registered sync.Once
)

const (
	resultSuccess = "success"
	resultPartial = "partial"
	resultFailure = "failure"
	stateFresh    = "fresh"
)

// registerMetrics makes the metrics, and those of a source that counts with them: the first failure is an increase.
func registerMetrics(source string) {
	registered.Do(func() {
		legacyregistry.MustRegister(sampleAge, nodeStates, refreshDuration, refreshes, unmatchedSeries, responseBytes)
	})
	for _, result := range []string{resultSuccess, resultPartial, resultFailure} {
		refreshes.WithLabelValues(source, result)
	}
}

// setMetrics says how a refresh went.
func (c *collector) setMetrics(o *outcome, t *tally) {
	result := resultSuccess
	switch {
	case o.err != nil:
		result = resultFailure
	case len(o.result.Failed) > 0:
		result = resultPartial
	}
	refreshes.WithLabelValues(c.label, result).Inc()
	refreshDuration.WithLabelValues(c.label).Observe(o.ended.Sub(o.begun).Seconds())
	if o.err == nil {
		responseBytes.WithLabelValues(c.label).Set(float64(o.result.Bytes))
	}
	for i := range c.slots {
		resource, of := c.slots[i].label, &t.slots[i]
		if of.states[measured.Present]+of.states[measured.TooOld] > 0 {
			sampleAge.WithLabelValues(c.label, resource).Set(of.oldest.Seconds())
		} else { // what is not there has no age
			sampleAge.Delete(map[string]string{"source": c.label, "resource": resource})
		}
		if o.err == nil {
			unmatchedSeries.WithLabelValues(c.label, resource).Set(float64(o.strangers[c.slots[i].asked]))
		}
		nodeStates.WithLabelValues(c.label, resource, stateFresh).Set(float64(of.states[measured.Present]))
		for _, reason := range measured.Reasons() {
			nodeStates.WithLabelValues(c.label, resource, reason.String()).Set(float64(of.states[reason]))
		}
	}
}
