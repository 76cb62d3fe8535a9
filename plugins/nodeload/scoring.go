// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// PreScore begins the cycle if PreFilter did not.
func (pl *NodeLoad) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	pl.cycle(state, pod)
	return nil
}

// Score returns the score of a node by its load with the pod, which NormalizeScore converts to points.
func (pl *NodeLoad) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	c := pl.cycle(state, pod)
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		// The node existed when the cycle began. A neutral score is better than a failed cycle.
		return neutral * point, nil
	}
	return pl.score(c, nodeInfo, c.view.loads(nodeInfo)), nil
}

// score returns the score of a node with loads.
func (pl *NodeLoad) score(c *cycle, nodeInfo *framework.NodeInfo, loads []load) int64 {
	var sum mean
	for _, r := range c.scores {
		sum.add(pl.resources[r].strategy, pl.resources[r].weight, pl.points(c, r, &loads[r], nodeInfo))
	}
	return sum.score()
}

// points returns the points of a node for a resource: by its measurement, or else by the fallback.
//
// A node without a measurement must not look better than the others, neither now nor after some pods that show in the
// others' loads. So while there are measurements, it has at most the points of a node that is measured at the mean of
// the others and received the same pods since. It also has at most the others' average points, because the others may
// be on both sides of a target.
func (pl *NodeLoad) points(c *cycle, r int, l *load, nodeInfo *framework.NodeInfo) float64 {
	resource := &pl.resources[r]
	// If the measurements do not count, their average does not count either.
	most, variation := math.Inf(1), math.NaN()
	if !c.blind[r] {
		typical := &c.view.typical[r]
		variation = typical.variation
		if l.at >= c.oldest {
			if !math.IsNaN(l.variation) {
				variation = l.variation
			}
			return resource.points(l.with(c.estimates[r]), variation)
		}
		if typical.at != notMeasured {
			most = math.Min(typical.points, resource.points(typical.load+l.inFlight+l.share(c.estimates[r]), variation))
		}
	}
	isNeutral := pl.args.Fallback == config.NodeLoadFallbackNeutral
	requested, allocatable, has := resource.estimator.requested(nodeInfo)
	switch {
	case has && !isNeutral:
		return math.Min(most, resource.points((requested+math.Min(c.estimates[r], allocatable))/allocatable, variation))
	case isNeutral || math.IsInf(most, 1):
		return math.Min(most, neutral)
	default:
		return most
	}
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *NodeLoad) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore converts the scores to points from 0 to 100.
func (pl *NodeLoad) NormalizeScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	round(scores, pl.shifts(pl.cycle(state, pod)))
	return nil
}

// shifts reports whether the pod changes the score of its node.
func (pl *NodeLoad) shifts(c *cycle) bool {
	for _, r := range c.scores {
		accounts := c.view.typical[r].perUnit > 0
		if c.blind[r] {
			accounts = pl.args.Fallback != config.NodeLoadFallbackNeutral && pl.resources[r].estimator.Resource != ""
		}
		if accounts && c.estimates[r] > 0 {
			return true
		}
	}
	return false
}

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
