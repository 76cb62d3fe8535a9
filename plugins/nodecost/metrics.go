// SPDX-License-Identifier: Apache-2.0

package nodecost

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
	pricedNodes = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_cost_nodes",
			Help:           "Number of nodes that NodeCost knows, by profile and by where their price comes from: 'annotation', 'label', 'table', or 'none', which counts as the median.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile", "source"})
	ignoredPrices = metrics.NewGaugeVec(
		&metrics.GaugeOpts{
			Subsystem:      schedulermetrics.SchedulerSubsystem,
			Name:           "node_cost_ignored_prices",
			Help:           "Number of nodes with an annotation or a label that NodeCost ignores, because it is no price, by profile.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"profile"})
	registerMetrics sync.Once
)

// gauges are the metrics of one profile.
type gauges struct {
	nodes   [sources]metrics.GaugeMetric
	ignored metrics.GaugeMetric
}

// newGauges returns the metrics of the profile whose framework makes the plugin; another handle has no profile.
func newGauges(handle framework.Handle) gauges {
	registerMetrics.Do(func() { legacyregistry.MustRegister(pricedNodes, ignoredPrices) })
	profile := services.ProfileOf(handle)
	g := gauges{ignored: ignoredPrices.WithLabelValues(profile)}
	for from := range g.nodes {
		g.nodes[from] = pricedNodes.WithLabelValues(profile, sourceNames[from])
	}
	return g
}

// set shows the numbers of an index.
func (g *gauges) set(x *index) {
	for from := range g.nodes {
		g.nodes[from].Set(float64(x.from[from]))
	}
	g.ignored.Set(float64(x.ignored))
}
