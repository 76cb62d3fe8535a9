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
		}, []string{"source"})
	responseBytes = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_load_response_bytes",
			Help:           "Number of bytes that NodeLoad's last refresh with an answer received, uncompressed, of all its requests together.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source"})
	registerMetrics sync.Once
)

const (
	resultSuccess = "success"
	resultPartial = "partial"
	resultFailure = "failure"
	stateFresh    = "fresh"
)

// gauges are the metrics of one source.
type gauges struct {
	source string
	// resources are those that have metrics. Of the goroutine; of what removes them when that has ended.
	resources map[string]bool
}

// newGauges returns the metrics of a source. The counts begin at 0, so that the first failure is an increase.
func newGauges(source string) *gauges {
	registerMetrics.Do(func() {
		legacyregistry.MustRegister(sampleAge, nodeStates, refreshDuration, refreshes, unmatchedSeries, responseBytes)
	})
	for _, result := range []string{resultSuccess, resultPartial, resultFailure} {
		refreshes.WithLabelValues(source, result)
	}
	return &gauges{source: source, resources: map[string]bool{}}
}

// set says how a refresh went.
func (g *gauges) set(p *plan, o *outcome, t *tally) {
	refreshDuration.WithLabelValues(g.source).Observe(o.ended.Sub(o.begun).Seconds())
	switch {
	case o.err != nil:
		refreshes.WithLabelValues(g.source, resultFailure).Inc()
	case len(o.failed) > 0:
		refreshes.WithLabelValues(g.source, resultPartial).Inc()
	default:
		refreshes.WithLabelValues(g.source, resultSuccess).Inc()
	}
	if o.err == nil {
		unmatchedSeries.WithLabelValues(g.source).Set(float64(o.snapshot.Unmatched))
		responseBytes.WithLabelValues(g.source).Set(float64(o.result.Bytes))
	}

	used := map[string]bool{}
	for i := range p.slots {
		if p.slots[i].users == 0 {
			continue
		}
		resource, of := p.slots[i].label, &t.slots[i]
		used[resource] = true
		if of.states[measured.Present]+of.states[measured.TooOld] > 0 {
			sampleAge.WithLabelValues(g.source, resource).Set(of.oldest.Seconds())
		} else { // what is not there has no age
			sampleAge.Delete(map[string]string{"source": g.source, "resource": resource})
		}
		nodeStates.WithLabelValues(g.source, resource, stateFresh).Set(float64(of.states[measured.Present]))
		for _, reason := range measured.Reasons() {
			nodeStates.WithLabelValues(g.source, resource, reason.String()).Set(float64(of.states[reason]))
		}
	}
	for resource := range g.resources {
		if !used[resource] {
			g.removeResource(resource)
		}
	}
	g.resources = used
}

func (g *gauges) removeResource(resource string) {
	sampleAge.Delete(map[string]string{"source": g.source, "resource": resource})
	nodeStates.Delete(map[string]string{"source": g.source, "resource": resource, "state": stateFresh})
	for _, reason := range measured.Reasons() {
		nodeStates.Delete(map[string]string{"source": g.source, "resource": resource, "state": reason.String()})
	}
}

// remove removes what is only true as long as there is a source. Counts stay: they are of what was.
func (g *gauges) remove() {
	for resource := range g.resources {
		g.removeResource(resource)
	}
	unmatchedSeries.Delete(map[string]string{"source": g.source})
	responseBytes.Delete(map[string]string{"source": g.source})
}
