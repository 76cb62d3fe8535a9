// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// Loads are shares of a node's capacity: 1 is all of it. Scores are points: 100 for the best node, 0 for a full one, and
// less, down to -100, for one that would have more to do than it can. The functions here know nothing of pods and nodes.

// tolerance is how far two loads that are added up of different parts may differ and still be equal: 0.1 + 0.2 is more
// than 0.3 to a computer. It is a share of the capacity.
const tolerance = 1e-9

// exceeds says whether a load is above a threshold. Equal is not above.
func exceeds(load, threshold float64) bool {
	return load > threshold+tolerance
}

// neutral are the points of a node of which nothing is known.
const neutral = 50

// pressure is the load as scores see it: the load itself up to 1, and above that 2 - 1/load, which goes on from there at
// the same slope and never reaches 2. So nodes keep their order however much more than all of them is predicted.
func pressure(load float64) float64 {
	if load <= 1 {
		return math.Max(0, load)
	}
	return 2 - 1/load
}

// leastUsed gives 100 points to an idle node and none to a full one: (1 - load) x 100.
func leastUsed(load float64) float64 {
	return 100 * (1 - pressure(load))
}

// targetUtilization gives most points at the target X, in percent, as Trimaran's TargetLoadPacking does (KEP-61). With
// the load U in percent:
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

// risk takes as many points for a load that varies as for one that is high, as Trimaran's LoadVariationRiskBalancing
// does: (1 - (load + variation) / 2) x 100.
func risk(load, variation float64) float64 {
	return 100 * (1 - (pressure(load)+variation)/2)
}

// variation is what a standard deviation counts for in risk, 0 to 1: deviation^(1/sensitivity) x margin, each of them
// no more than 1. The deviation is a share of the capacity.
func variation(deviation, sensitivity, margin float64) float64 {
	deviation = clamp01(deviation)
	if sensitivity != 1 {
		deviation = clamp01(math.Pow(deviation, 1/sensitivity))
	}
	return clamp01(deviation * margin)
}

func clamp01(share float64) float64 {
	if share < 0 {
		return 0
	}
	if share > 1 {
		return 1
	}
	return share
}

// whole rounds points, which are not negative, as the strategy's origin does: LeastUsed as Kubernetes' own plugins,
// down; the others half away from zero.
func whole(strategy config.NodeLoadStrategy, points float64) int64 {
	if strategy == config.NodeLoadLeastUsed {
		return int64(points + 100*tolerance)
	}
	return int64(points + 0.5 + 100*tolerance)
}

// lowest are the fewest points that there are. Those that are added up are counted from there.
const lowest = -100

// mean adds up the points of a node's resources: their weighted mean, rounded down, in which all resources with the
// strategy Risk count as the worst of them, with the weight of all: a node is as risky as its riskiest resource.
type mean struct {
	weight, points int64
	exact          float64

	riskWeight, riskPoints int64
	riskExact              float64
}

func (m *mean) add(strategy config.NodeLoadStrategy, weight int64, points float64) {
	points -= lowest
	rounded := whole(strategy, points)
	if strategy != config.NodeLoadRisk {
		m.weight += weight
		m.points += weight * rounded
		m.exact += float64(weight) * points
		return
	}
	if m.riskWeight == 0 || points < m.riskExact {
		m.riskPoints, m.riskExact = rounded, points
	}
	m.riskWeight += weight
}

// A score has two parts until all nodes' are known: the points, and what they were before they were rounded, both
// counted from the lowest. It is points x exactParts + exact, and exact in units of 1/exactUnit points is less than
// exactParts.
const (
	exactUnit  = 10000000
	exactParts = 100 * exactUnit * 10
)

// score returns both parts in one number.
func (m *mean) score() int64 {
	weight := m.weight + m.riskWeight
	if weight == 0 {
		return scoreOf(0)
	}
	points := (m.points + m.riskWeight*m.riskPoints) / weight
	exact := (m.exact + float64(m.riskWeight)*m.riskExact) / float64(weight)
	return points*exactParts + int64(exact*exactUnit+0.5)
}

// scoreOf returns the score of whole points.
func scoreOf(points int64) int64 {
	return (points - lowest) * (exactParts + exactUnit)
}

// round turns scores of two parts into points from 0 to 100.
//
// If a node has less than 0 points, all are moved up by what the worst lacks, so that the differences between nodes,
// which are all that counts, stay as they are. Should the best then have more than 100, the differences shrink.
//
// Of the nodes with most points those are put back by one that are not the best when looked at exactly. Without that,
// equal nodes whose loads differ by less than a hundredth of their capacity would be drawn by lot, and hundreds of small
// pods would pile up here and there. That takes a pod which shows in the scores: if the pods that have come do not make
// a node look fuller (apart is false), the best one would be the same for all of them until the next measurement, and
// the lot is better.
func round(scores framework.NodeScoreList, apart bool) {
	worst, best := int64(math.MaxInt64), int64(0)
	for i := range scores {
		exact := scores[i].Score % exactParts
		if exact < worst {
			worst = exact
		}
		if exact > best {
			best = exact
		}
	}
	const hundred = 100 * exactUnit
	width := best - worst
	if width < hundred {
		width = hundred
	}
	move := worst < -lowest*exactUnit
	best = 0
	for i := range scores {
		if move {
			// Up to the next point, so that the worst alone has none.
			above := scores[i].Score%exactParts - worst
			scores[i].Score = (100*above+width-1)/width*exactParts + above
		} else {
			scores[i].Score += lowest * exactParts
		}
		if scores[i].Score > best {
			best = scores[i].Score
		}
	}
	most := best / exactParts
	for i := range scores {
		points := scores[i].Score / exactParts
		if apart && points == most && points > 0 && scores[i].Score < best {
			points--
		}
		scores[i].Score = points
	}
}
