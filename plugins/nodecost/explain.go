// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// explainedNodes is the largest number of nodes in an explanation.
const explainedNodes = 5

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
	if len(nodes) > explainedNodes {
		nodes = nodes[:explainedNodes]
	}
	const beginning = "Price per hour: "
	text := append(make([]byte, 0, 256), beginning...)
	for _, name := range nodes {
		nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			continue
		}
		on := pl.index.nodes[nodeInfo.Node()]
		if len(text) > len(beginning) {
			text = append(text, ", "...)
		}
		text = append(append(text, name...), ' ')
		if on.from == nowhere {
			text = append(appendPrice(text, c.unpriced), " (median, because it has no price"...)
		} else {
			text = append(append(appendPrice(text, on.price), " ("...), sourceNames[on.from]...)
		}
		if on.ignored {
			text = append(text, "; its own annotation or label is not a valid price"...)
		}
		if on.spot && c.leaveSpot {
			text = append(text, "; spot, which the pod does not tolerate"...)
		}
		text = append(text, ')')
	}
	if len(text) == len(beginning) {
		return ""
	}
	return string(append(text, '.'))
}

// appendPrice appends a price in billionths as a decimal number without trailing zeros.
func appendPrice(text []byte, price int64) []byte {
	return strconv.AppendFloat(text, float64(price)/1e9, 'f', -1, 64)
}
