// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"math"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// PreFilter begins the cycle: it takes the view that Filter and Score will go by.
func (pl *NodeLoad) PreFilter(_ context.Context, state *framework.CycleState, pod *v1.Pod) *framework.Status {
	pl.start(state, pod)
	return nil
}

// PreFilterExtensions returns nil: Filter sees the pods that preemption adds and removes in the NodeInfo.
func (pl *NodeLoad) PreFilterExtensions() framework.PreFilterExtensions {
	return nil
}

// Filter rejects a node whose load would be above a threshold with the pod. Preemption does not cool a node, so that is
// unresolvable.
func (pl *NodeLoad) Filter(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	node := nodeInfo.Node()
	if node == nil {
		return framework.NewStatus(framework.Error, "node not found")
	}
	c := pl.cycle(state, pod)
	if len(c.filters) == 0 {
		return nil
	}
	if _, passes, found := c.result(nodeInfo); found && passes {
		return nil
	}
	number := c.view.find(node.Name)
	var loads [maxResources]load
	pl.loads(c, number, nodeInfo, &loads)
	for _, f := range c.filters {
		r := int(f)
		if c.blind[r] {
			continue
		}
		if loads[r].at >= c.oldest {
			if !c.fits(r, &loads[r]) {
				return pl.tooHot(c, number, r, &loads[r])
			}
		} else if pl.closedOnStale {
			return pl.notMeasured(c, number, r)
		}
	}
	if c.kind != notKept && pl.inSnapshot(nodeInfo) {
		// Nearly all nodes that pass are scored afterwards, and here all that it takes is at hand.
		c.keep(nodeInfo, pl.score(c, nodeInfo, &loads), true, &loads)
	}
	return nil
}

// loads puts together what is known of a node; of one whose number is -1, that is what is in flight.
func (pl *NodeLoad) loads(c *cycle, number int, nodeInfo *framework.NodeInfo, into *[maxResources]load) {
	if number >= 0 && c.view.readLoads(number, nodeInfo, into) {
		return
	}
	c.view.compute(number, nodeInfo, into)
	if number >= 0 && pl.inSnapshot(nodeInfo) {
		c.view.writeLoads(number, nodeInfo, into)
	}
}

// inSnapshot says whether the scheduler's snapshot has this NodeInfo. What is computed of another, a copy that
// preemption or nominated pods changed, is not worth keeping.
func (pl *NodeLoad) inSnapshot(nodeInfo *framework.NodeInfo) bool {
	own, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeInfo.Node().Name)
	return err == nil && own == nodeInfo
}

func (pl *NodeLoad) tooHot(c *cycle, number, r int, known *load) *framework.Status {
	pl.rejected(c, number, r)
	text := hotMessage(&c.view.resources[r], known.with(c.estimates[r]), age(known.at, c.now), len(c.view.nodes))
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, text)
}

func (pl *NodeLoad) notMeasured(c *cycle, number, r int) *framework.Status {
	pl.rejected(c, number, r)
	missing := c.view.missing(number, r, c.oldest)
	if missing == measured.Present {
		missing = measured.NoCapacity // the only reason that is not in the sample
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable,
		"node(s) had no measurement of "+c.view.resources[r].name+" ("+missing.String()+")")
}

func (pl *NodeLoad) rejected(c *cycle, number, r int) {
	pl.counters.rejections[r].Inc()
	c.view.reject(number, r, c.estimates[r])
}

// A pod's condition lists every text that differs with the number of its nodes, so texts must be few however many nodes
// there are, and stay the same while nothing much changes: with many nodes loads are given in steps.
const (
	fewNodes = 50
	// coarse is the step in percent.
	coarse = 5
	// most is the load, in percent, above which all are alike.
	most = 200
)

// ages are the ages that a text knows.
var ages = [...]struct {
	below time.Duration
	text  string
}{
	{15 * time.Second, "15s"}, {30 * time.Second, "30s"}, {time.Minute, "1m"}, {2 * time.Minute, "2m"}, {5 * time.Minute, "5m"},
	{15 * time.Minute, "15m"}, {time.Hour, "1h"},
}

// hotMessage says how hot a node would be, rounded up to whole percent, such as:
//
//	node(s) would have cpu at 92 % of capacity, above 80 % (measured less than 15s ago)
func hotMessage(r *resource, load float64, age time.Duration, nodes int) string {
	text := make([]byte, 0, 128)
	text = append(text, "node(s) would have "...)
	text = append(text, r.name...)
	text = append(text, " at "...)
	percent := int64(most)
	if load < most/100 {
		percent = int64(math.Ceil(100 * (load - tolerance)))
	}
	switch {
	case percent >= most:
		text = append(strconv.AppendInt(text, most, 10), " % of capacity or more"...)
	case nodes <= fewNodes:
		text = append(strconv.AppendInt(text, percent, 10), " % of capacity"...)
	default:
		from := (percent - 1) / coarse * coarse
		if from < r.thresholdPercent {
			from = r.thresholdPercent
		}
		text = append(strconv.AppendInt(text, from, 10), '-')
		text = append(strconv.AppendInt(text, (percent-1)/coarse*coarse+coarse, 10), " % of capacity"...)
	}
	text = append(text, ", above "...)
	text = append(strconv.AppendInt(text, r.thresholdPercent, 10), " % (measured "...)
	old := "more than an hour ago)"
	for i := range ages {
		if age < ages[i].below {
			text, old = append(text, "less than "...), ages[i].text+" ago)"
			break
		}
	}
	return string(append(text, old...))
}
