// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// explainedNodes is the largest number of nodes in an explanation.
const explainedNodes = 5

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
	text := make([]byte, 0, 256)
	text = append(append(append(text, "Group "...), c.name...), ". "...)
	text = append(strconv.AppendInt(append(text, "Weight of the placed peers: "...), c.weight, 10), '.')
	if len(nodes) > explainedNodes {
		nodes = nodes[:explainedNodes]
	}
	for _, name := range nodes {
		nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			continue
		}
		on := pl.index.nodes[nodeInfo.Node()]
		if on == nil {
			continue
		}
		text = append(append(append(text, ' '), name...), ": near "...)
		text = strconv.AppendInt(text, nearness(on.numbers, pl.costs, pl.index.marks.sums, c.weight), 10)
		if n := on.podsIn(c.round); n > 0 {
			text = strconv.AppendInt(append(text, ", pods of the group "...), int64(n), 10)
		}
		if pl.hot(cycleState, nodeInfo) {
			text = append(text, ", hot"...)
		}
		text = append(text, '.')
	}
	return string(text)
}
