// SPDX-License-Identifier: Apache-2.0

package nodeload

import "k8s.io/kubernetes/pkg/scheduler/framework"

// HighestLoad returns the highest of a node's loads in percent of the capacities, measured and in flight, without the pod
// that is scheduled: of the resources by which the profile's NodeLoad filters or scores it. Other plugins of the profile
// share the cycle's snapshot by it. Nothing is known where NodeLoad is not enabled, where no measurement of the node is
// fresh, and of resources of which too few nodes have one.
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
