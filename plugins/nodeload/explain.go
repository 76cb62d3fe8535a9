// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// explainedNodes is the maximum number of nodes in an explanation.
const explainedNodes = 5

// Explain returns, for the decision records, the age of the cycle's measurements, the loads of some nodes without the
// pod, in percent, and the estimated use of the pod.
func (pl *NodeLoad) Explain(state *framework.CycleState, _ *v1.Pod, nodes []string) string {
	data, err := state.Read(stateKey)
	if err != nil {
		return ""
	}
	c := data.(*cycle)
	if c.view.snapshot == nil {
		return "Nothing is measured yet."
	}
	text := append(make([]byte, 0, 256), "Measurements were taken "...)
	age := pl.clock.Now().Sub(c.view.snapshot.Taken).Round(100 * time.Millisecond)
	text = append(append(text, age.String()...), " before the decision."...)
	if len(nodes) > explainedNodes {
		nodes = nodes[:explainedNodes]
	}
	for _, name := range nodes {
		nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			continue
		}
		loads := c.view.loads(nodeInfo)
		text = c.list(append(append(append(text, ' '), name...), ':'), func(text []byte, r int) []byte {
			if loads[r].at < c.oldest {
				return append(text, "not measured"...)
			}
			return append(strconv.AppendInt(text, int64(math.Round(100*loads[r].now())), 10), '%')
		})
	}
	text = c.list(append(text, " The pod is estimated to use:"...), func(text []byte, r int) []byte {
		return strconv.AppendFloat(text, math.Round(1000*c.estimates[r])/1000, 'f', -1, 64)
	})
	if c.exempt {
		text = append(text, " The filter does not apply to this pod."...)
	}
	return string(text)
}

// list appends a sentence's end with the value of each resource.
func (c *cycle) list(text []byte, value func([]byte, int) []byte) []byte {
	for r := range c.view.resources {
		if r > 0 {
			text = append(text, ',')
		}
		text = value(append(append(append(text, ' '), c.view.resources[r].name...), ' '), r)
	}
	return append(text, '.')
}
