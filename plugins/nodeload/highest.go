// SPDX-License-Identifier: Apache-2.0

package nodeload

import "k8s.io/kubernetes/pkg/scheduler/framework"

// HighestLoad returns the highest load of a node in percent of its capacity, measured and in flight, without the pod
// that is being scheduled, over the resources by which the profile's NodeLoad filters or scores. Other plugins of the
// profile can use it to read the cycle's snapshot. The load is unknown if NodeLoad is not enabled, or if the node has
// no fresh measurement that counts.
func HighestLoad(state *framework.CycleState, nodeInfo *framework.NodeInfo) (percent float64, known bool) {
	data, err := state.Read(stateKey)
	if err != nil || nodeInfo.Node() == nil {
		return 0, false
	}
	c := data.(*cycle)
	loads := c.view.loads(nodeInfo)
	for _, taking := range [...][]int{c.filters, c.scores} {
		for _, r := range taking {
			if c.blind[r] || loads[r].at < c.oldest || loads[r].at == notMeasured {
				continue
			}
			if load := 100 * loads[r].now(); !known || load > percent {
				percent, known = load, true
			}
		}
	}
	return percent, known
}
