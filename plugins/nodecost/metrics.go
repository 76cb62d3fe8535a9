// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

var (
	pricedNodes = pluginmetrics.NewGaugeVec("node_cost_nodes",
		"Number of nodes that NodeCost knows, by profile and by where their price comes from: 'annotation', 'label', 'table', or 'none', which counts as the median.",
		"profile", "source")
	ignoredPrices = pluginmetrics.NewGaugeVec("node_cost_ignored_prices",
		"Number of nodes with an annotation or a label that NodeCost ignores, because it is not a valid price, by profile.",
		"profile")
)

// gauges are the metrics of one profile.
type gauges struct {
	nodes   [sources]metrics.GaugeMetric
	ignored metrics.GaugeMetric
}

// newGauges returns the metrics of the handle's profile.
func newGauges(handle framework.Handle) gauges {
	profile := services.ProfileOf(handle)
	g := gauges{ignored: ignoredPrices.WithLabelValues(profile)}
	for from := range g.nodes {
		g.nodes[from] = pricedNodes.WithLabelValues(profile, sourceNames[from])
	}
	return g
}

// set sets the metrics from an index.
func (g *gauges) set(x *index) {
	for from := range g.nodes {
		g.nodes[from].Set(float64(x.from[from]))
	}
	g.ignored.Set(float64(x.ignored))
}
