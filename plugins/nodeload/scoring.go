package nodeload

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PreScore begins the cycle if PreFilter did not.
func (pl *NodeLoad) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, _ []*v1.Node) *framework.Status {
	pl.start(state, pod)
	return nil
}

// Score scores a node by what its load would be with the pod. The result has two parts, which NormalizeScore makes one.
func (pl *NodeLoad) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	c := pl.cycle(state, pod)
	if len(c.scores) == 0 {
		return 0, nil
	}
	nodeInfo, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		// It was there when the cycle began. A score that means nothing is better than a cycle that fails.
		return int64(neutral) * exactParts, nil
	}
	number := c.view.findObject(nodeInfo.Node())
	var loads [maxResources]load
	if number >= 0 && !c.view.readLoads(number, nodeInfo, &loads) {
		c.view.compute(number, nodeInfo, &loads)
		c.view.writeLoads(number, nodeInfo, &loads)
	}
	var sum mean
	for _, s := range c.scores {
		r := int(s)
		resource := &pl.resources[r]
		sum.add(resource.strategy, resource.weight, pl.points(c, number, r, loads[r], nodeInfo))
	}
	return sum.score(), nil
}

// points returns the points of a resource of a node: by what is measured, or else as the fallback says.
func (pl *NodeLoad) points(c *cycle, number, r int, known load, nodeInfo *framework.NodeInfo) float64 {
	resource := &pl.resources[r]
	// What is not known of a node is taken to be as it is on the average: nodes that are not measured should be neither the best
	// nor the worst of those that are. While nothing goes by the measurements, there is no average either.
	typical := average{variation: math.NaN()}
	if !c.blind[r] {
		typical = c.view.typical[r]
		if number >= 0 && known.at >= c.oldest {
			if math.IsNaN(known.variation) {
				known.variation = typical.variation
			}
			return resource.points(known.now+c.estimates[r]*known.perUnit, known.variation)
		}
	}
	if pl.neutralFallback {
		return neutral
	}
	requested, allocatable, has := resource.estimator.requested(nodeInfo)
	if !has {
		return neutral
	}
	// Of a node whose exporter is dead requests may say little, so it counts at least as loaded as the others.
	return resource.points(math.Max(requested/allocatable, typical.load)+c.estimates[r]/allocatable, typical.variation)
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *NodeLoad) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore rounds the scores to points from 0 to 100.
func (pl *NodeLoad) NormalizeScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	round(scores, pl.shifts(pl.cycle(state, pod)))
	return nil
}

// shifts says whether the score of a node changes with the pod, by one resource at least.
func (pl *NodeLoad) shifts(c *cycle) bool {
	for _, s := range c.scores {
		accounts := c.view.typical[s].capacity
		if c.blind[s] {
			accounts = !pl.neutralFallback && pl.resources[s].estimator.resource != ""
		}
		if accounts && c.estimates[s] > 0 {
			return true
		}
	}
	return false
}
