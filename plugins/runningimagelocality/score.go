// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// fullWorth is the worth of a match without any reduction. Worths are integers in millionths of a match, so that
	// scores are the same on every machine.
	fullWorth int64 = 1000000
	// maxSize is the largest size in bytes that counts: 1,000 MiB, like the maxContainerThreshold of Kubernetes' plugin
	// ImageLocality.
	maxSize int64 = 1000 * 1024 * 1024
)

// valuation determines the matches and their worth.
type valuation struct {
	// containers makes every running container a match, instead of every image once for each node.
	containers bool
	// sizeWeight and spreadWeight are percentages, 0 to 100.
	sizeWeight, spreadWeight int64
}

func newValuation(args *config.RunningImageLocalityArgs) valuation {
	return valuation{
		containers:   args.Count == config.CountContainers,
		sizeWeight:   int64(args.SizeWeight),
		spreadWeight: int64(*args.SpreadWeight),
	}
}

// worth returns the worth of each match of an image, 0 to fullWorth:
//
//	fullWorth × (1 - sizeWeight/100 + sizeWeight/100 × size/maxSize)
//	          × (1 - spreadWeight/100 + spreadWeight/100 × running/nodes)
//
// size is the image's size in bytes, limited to maxSize. running is the number of nodes that run the image, and nodes
// the number of all nodes: ImageLocality has the same factor, so that the pods of an image on few nodes do not all go
// to these nodes. Each of the two factors is rounded down to a millionth. The worth of a match is at least a millionth.
func (v valuation) worth(size int64, running, nodes int) int64 {
	worth := fullWorth
	if size < maxSize {
		worth = worth * (100*maxSize - v.sizeWeight*(maxSize-size)) / (100 * maxSize)
	}
	if running < nodes {
		all, missing := int64(nodes), int64(nodes-running)
		worth = worth * (100*all - v.spreadWeight*missing) / (100 * all)
	}
	if worth == 0 {
		return 1
	}
	return worth
}

// normaliseScores converts scores in millionths of a match to scores from 0 to 100, linearly:
//
//	100 × score / (the best score) × bestWorth / fullWorth
//
// rounded down, but at least 1 for a node with a match. bestWorth is the worth of the most valuable match of these
// nodes. So the best node scores 100, minus the reduction for size and spread: if it always scored 100, the weights
// would have no effect for a pod with one image. If all score 0, they stay at 0.
func normaliseScores(scores framework.NodeScoreList, bestWorth int64) {
	var best int64
	for i := range scores {
		if scores[i].Score > best {
			best = scores[i].Score
		}
	}
	if best == 0 {
		return
	}
	for i := range scores {
		if scores[i].Score == 0 {
			continue
		}
		// The product is at most 100 × 2³¹ × 1,000,000, a fortieth of math.MaxInt64.
		scores[i].Score = framework.MaxNodeScore * scores[i].Score * bestWorth / (best * fullWorth)
		if scores[i].Score == 0 {
			scores[i].Score = 1
		}
	}
}
