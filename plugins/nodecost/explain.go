// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// Explain returns, for the decision records, the prices of some nodes and their sources, such as
//
//	Price per hour: node-1 0.096 (table), node-2 0.05 (median, because it has no price).
func (pl *NodeCost) Explain(state *framework.CycleState, _ *v1.Pod, nodes []string) string {
	data, err := state.Read(stateKey)
	if err != nil {
		return ""
	}
	c := data.(*cycle)
	if len(pl.index.sorted) == 0 {
		return "No node has a price."
	}
	var prices []string
	for _, nodeInfo := range services.Explained(pl.handle, nodes) {
		on := pl.index.nodes[nodeInfo.Node()]
		price, from := on.price, sourceNames[on.from]
		if on.from == nowhere {
			price, from = c.unpriced, "median, because it has no price"
		}
		if on.ignored {
			from += "; its own annotation or label is not a valid price"
		}
		if on.spot && c.leaveSpot {
			from += "; spot, which the pod does not tolerate"
		}
		// Prices are in billionths.
		prices = append(prices, nodeInfo.Node().Name+" "+strconv.FormatFloat(float64(price)/1e9, 'f', -1, 64)+" ("+from+")")
	}
	if len(prices) == 0 {
		return ""
	}
	return "Price per hour: " + strings.Join(prices, ", ") + "."
}
