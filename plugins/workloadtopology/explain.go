// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// Explain returns, for the decision records, the pod's group, the weight of its peers, and the nearness of some nodes.
func (pl *WorkloadTopology) Explain(cycleState *framework.CycleState, _ *v1.Pod, nodes []string) string {
	data, err := cycleState.Read(stateKey)
	if err != nil {
		return ""
	}
	c := data.(*state).cycle
	if c.round == 0 {
		return ""
	}
	text := fmt.Sprintf("Group %s. Weight of the placed peers: %d.", c.name, c.weight)
	for _, nodeInfo := range services.Explained(pl.handle, nodes) {
		on := pl.index.nodes[nodeInfo.Node()]
		if on == nil {
			continue
		}
		text += fmt.Sprintf(" %s: near %d", nodeInfo.Node().Name, nearness(on.numbers, pl.costs, pl.index.marks.sums, c.weight))
		if n := on.podsIn(c.round); n > 0 {
			text += fmt.Sprintf(", pods of the group %d", n)
		}
		if pl.hot(cycleState, nodeInfo) {
			text += ", hot"
		}
		text += "."
	}
	return text
}
