// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

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
	age := pl.clock.Now().Sub(c.view.snapshot.Taken).Round(100 * time.Millisecond)
	text := fmt.Sprintf("Measurements were taken %v before the decision.", age)
	for _, nodeInfo := range services.Explained(pl.handle, nodes) {
		loads := c.view.loads(nodeInfo)
		text += " " + nodeInfo.Node().Name + ": " + c.list(func(r int) string {
			if loads[r].at < c.oldest {
				return "not measured"
			}
			return fmt.Sprintf("%d%%", int64(math.Round(100*loads[r].now())))
		})
	}
	text += " The pod is estimated to use: " + c.list(func(r int) string {
		return strconv.FormatFloat(math.Round(1000*c.estimates[r])/1000, 'f', -1, 64)
	})
	if c.exempt {
		text += " The filter does not apply to this pod."
	}
	return text
}

// list returns a sentence's end with the value of each resource.
func (c *cycle) list(value func(r int) string) string {
	var values []string
	for r := range c.view.resources {
		values = append(values, c.view.resources[r].name+" "+value(r))
	}
	return strings.Join(values, ", ") + "."
}
