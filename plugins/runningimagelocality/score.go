// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// fullWorth is what a match is worth that nothing is taken from. Worths are integers in millionths of a match, so
	// that scores are the same on every machine.
	fullWorth int64 = 1000000
	// maxSize is the size in bytes from which on an image is worth no more: 1,000 MiB, which is what Kubernetes' plugin
	// ImageLocality takes for the largest size of a container's image (maxContainerThreshold).
	maxSize int64 = 1000 * 1024 * 1024
)

// valuation says what counts as a match, and how much it is worth.
type valuation struct {
	// containers: every running container is a match; otherwise, every image is, once for each node.
	containers bool
	// sizeWeight and spreadWeight are percentages, 0 to 100.
	sizeWeight, spreadWeight int64
}

func newValuation(args *config.RunningImageLocalityArgs) valuation {
	return valuation{
		containers:   args.Count == config.CountContainers,
		sizeWeight:   int64(args.SizeWeight),
		spreadWeight: int64(args.SpreadWeight),
	}
}

// worth returns what each match of an image is worth, 0 to fullWorth:
//
//	fullWorth × (1 - sizeWeight/100 + sizeWeight/100 × size/maxSize) × (1 - spreadWeight/100 + spreadWeight/100 × running/nodes)
//
// size is the image's size in bytes, of which no more than maxSize counts. running is the number of nodes that run the
// image and nodes the number of all nodes: the factor that ImageLocality too multiplies with, so that an image that few
// nodes have does not draw all of its pods to these. Each of the two factors is rounded down to a millionth. A match is
// worth at least a millionth, so that it is always more than none.
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

// normaliseScores changes scores in millionths of a match into scores from 0 to 100, linearly:
//
//	100 × score / (the best score) × bestWorth / fullWorth
//
// rounded down, but at least 1 for a node with a match. bestWorth is the worth of the most valuable match that one of
// these nodes has. So the best node scores 100 as long as neither size nor spread takes from a match, and less by what
// they take: if the best were always 100, the weights would mean nothing to a pod with one image. If all score 0, they
// stay so.
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
		// At most 100 × 2³¹ × 1,000,000, which is a fortieth of what an int64 holds.
		scores[i].Score = framework.MaxNodeScore * scores[i].Score * bestWorth / (best * fullWorth)
		if scores[i].Score == 0 {
			scores[i].Score = 1
		}
	}
}
