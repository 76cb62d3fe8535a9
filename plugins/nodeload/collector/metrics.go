// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
)

// A source is identified by its number: an address would add a label value with each change of the configuration.
var (
	sampleAge = pluginmetrics.NewGaugeVec("node_load_sample_age_seconds",
		"Age of NodeLoad's oldest measurement of a resource at the last refresh, by the timestamp of its raw sample.",
		"source", "resource")
	nodeStates = pluginmetrics.NewGaugeVec("node_load_nodes",
		"Number of nodes at NodeLoad's last refresh by the state of their measurement: 'fresh', or the reason why it is not used.",
		"source", "resource", "state")
	refreshDuration = pluginmetrics.NewHistogramVec("node_load_refresh_duration_seconds",
		"Time that NodeLoad's refreshes took, from the first request to the finished snapshot.",
		metrics.ExponentialBuckets(0.001, 2, 16), // to 33 s
		"source")
	refreshes = pluginmetrics.NewCounterVec("node_load_refresh_total",
		"Number of NodeLoad's refreshes by result: 'success', 'partial' if some of the queries failed, or 'failure'.",
		"source", "result")
	unmatchedSeries = pluginmetrics.NewGaugeVec("node_load_unmatched_series",
		"Number of series in the last answer to NodeLoad that matched no node.",
		"source", "resource")
	responseBytes = pluginmetrics.NewGaugeVec("node_load_response_bytes",
		"Number of bytes, uncompressed, that NodeLoad received for all requests of its last refresh with an answer.",
		"source")
)

const (
	resultSuccess = "success"
	resultPartial = "partial"
	resultFailure = "failure"
	stateFresh    = "fresh"
)

// initMetrics initializes the counters of a source: the first failure is an increase.
func initMetrics(source string) {
	for _, result := range []string{resultSuccess, resultPartial, resultFailure} {
		refreshes.WithLabelValues(source, result)
	}
}

// setMetrics sets the metrics after a refresh.
func (c *collector) setMetrics(o *outcome, t *tally) {
	result := resultSuccess
	switch {
	case o.err != nil:
		result = resultFailure
	case len(o.result.Failed) > 0:
		result = resultPartial
	}
	refreshes.WithLabelValues(c.number, result).Inc()
	refreshDuration.WithLabelValues(c.number).Observe(o.ended.Sub(o.begun).Seconds())
	if o.err == nil {
		responseBytes.WithLabelValues(c.number).Set(float64(o.result.Bytes))
	}
	for i := range o.labels {
		if o.resources[i].Pods {
			continue
		}
		resource, of := o.labels[i], &t.resources[i]
		if of.states[Present]+of.states[TooOld] > 0 {
			sampleAge.WithLabelValues(c.number, resource).Set(of.oldest.Seconds())
		} else { // without a measurement there is no age
			sampleAge.Delete(map[string]string{"source": c.number, "resource": resource})
		}
		if o.err == nil {
			unmatchedSeries.WithLabelValues(c.number, resource).Set(float64(o.unmatched[i]))
		}
		nodeStates.WithLabelValues(c.number, resource, stateFresh).Set(float64(of.states[Present]))
		for _, reason := range Reasons() {
			nodeStates.WithLabelValues(c.number, resource, reason.String()).Set(float64(of.states[reason]))
		}
	}
}
