// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// Loads are shares of a node's capacity: 1 is full. Scores are in points: 100 for the best node, 0 for a full one, and
// less, down to -100, for an overcommitted one. The functions here do not use pods and nodes.

// tolerance is the maximum difference between two equal loads that are sums of different parts: 0.1 + 0.2 is more than
// 0.3 in floating point. It is a share of the capacity.
const tolerance = 1e-9

// exceeds reports whether a load is above a threshold. Equal is not above.
func exceeds(load, threshold float64) bool {
	return load > threshold+tolerance
}

// neutral is the score, in points, of a node about which nothing is known.
const neutral = 50

// pressure maps a load for scoring: the load itself up to 1, and above that 2 - 1/load, which never reaches 2. So nodes
// keep their order however far the prediction exceeds their capacity.
func pressure(load float64) float64 {
	if load <= 1 {
		return math.Max(0, load)
	}
	return 2 - 1/load
}

// leastUsed returns 100 points for an idle node and 0 for a full one: (1 - load) x 100.
func leastUsed(load float64) float64 {
	return 100 * (1 - pressure(load))
}

// targetUtilization returns most points at the target X, in percent, as Trimaran's TargetLoadPacking does (KEP-61).
// With the load U in percent:
//
//	U <= X:         (100 - X) x U / X + X
//	X < U <= 100:   X x (100 - U) / (100 - X)
//	U > 100:        as leastUsed
func targetUtilization(load, target float64) float64 {
	percent := 100 * load
	switch {
	case !exceeds(load, target/100):
		return math.Min(100, (100-target)*percent/target+target)
	case percent <= 100:
		return target * (100 - percent) / (100 - target)
	default:
		return leastUsed(load)
	}
}

// risk returns fewer points for a higher load and for more variation, as Trimaran's LoadVariationRiskBalancing does: (1
// - (load + variation) / 2) x 100.
func risk(load, variation float64) float64 {
	return 100 * (1 - (pressure(load)+variation)/2)
}

// variation returns the variation for risk, 0 to 1: deviation^(1/sensitivity) x margin, both factors capped at 1. The
// deviation is a standard deviation as a share of the capacity.
func variation(deviation, sensitivity, margin float64) float64 {
	return clamp01(clamp01(math.Pow(clamp01(deviation), 1/sensitivity)) * margin)
}

func clamp01(share float64) float64 { return math.Max(0, math.Min(1, share)) }

// mean is the weighted mean of the points of a node's resources. All resources with the strategy Risk count with the
// points of the worst of them and their total weight: a node is as risky as its riskiest resource.
type mean struct {
	weight, riskWeight int64
	sum, risk          float64
}

func (m *mean) add(strategy config.NodeLoadStrategy, weight int64, points float64) {
	if strategy != config.NodeLoadRisk {
		m.weight += weight
		m.sum += float64(weight) * points
		return
	}
	if m.riskWeight == 0 || points < m.risk {
		m.risk = points
	}
	m.riskWeight += weight
}

// point is one point in a score before round, which has a finer resolution. It also rounds off floating-point errors.
const point = 10000000

// score returns the mean's score; 0 points without resources.
func (m *mean) score() int64 {
	weight := m.weight + m.riskWeight
	if weight == 0 {
		return 0
	}
	return int64(math.Round(point * (m.sum + float64(m.riskWeight)*m.risk) / float64(weight)))
}

// round converts scores to points from 0 to 100, rounded down.
//
// If a node has less than 0 points, all scores are raised so that the worst has 0, which keeps the differences between
// nodes. If the best then has more than 100, the differences shrink.
//
// If apart is true, nodes that share the top points with the best but were worse before rounding lose one point.
// Otherwise nodes whose loads differ by less than a hundredth of their capacity would be chosen at random, and hundreds
// of small pods would pile up on some of them. If the pod does not change the scores, apart is false: the best node
// would be the same for all such pods until the next measurement, and a random choice is better.
func round(scores framework.NodeScoreList, apart bool) {
	worst, best := int64(0), int64(math.MinInt64)
	for i := range scores {
		if scores[i].Score < worst {
			worst = scores[i].Score
		}
		if scores[i].Score > best {
			best = scores[i].Score
		}
	}
	width, up := best-worst, int64(0)
	if width < 100*point {
		width = 100 * point
	}
	if worst < 0 {
		// Round up, so that only the worst has 0 points.
		up = width - 1
	}
	points := func(score int64) int64 { return (100*(score-worst) + up) / width }
	most := points(best)
	for i := range scores {
		score := scores[i].Score
		scores[i].Score = points(score)
		if apart && scores[i].Score == most && most > 0 && score < best {
			scores[i].Score--
		}
	}
}
