// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// left is the cost of a spot node for a pod that is to leave it to others.
const left int64 = -1

// cost returns what a node costs in a cycle, in billionths per hour, 0 to maxPrice; or left. cpu and memory are what pods
// can have of it. A node that is not known has no price.
func (c *cycle) cost(on node, cpu, memory int64) int64 {
	if on.spot && c.leaveSpot {
		return left
	}
	price := on.price
	if on.from == nowhere {
		price = c.unpriced
	}
	if !c.share {
		return price
	}
	cost := share(price, c.cpu, cpu)
	if ofMemory := share(price, c.memory, memory); ofMemory > cost {
		return ofMemory
	}
	return cost
}

// share returns price × requested / allocatable, rounded up, so that no share of a price is free. It is at most the whole
// price: also where the node has nothing to give, or less than is requested.
func share(price, requested, allocatable int64) int64 {
	if requested >= allocatable {
		return price
	}
	high, low := bits.Mul64(uint64(price), uint64(requested))
	quotient, rest := bits.Div64(high, low, uint64(allocatable))
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}

// requests returns what a pod requests, in thousandths of a CPU and bytes, as the scheduler counts it to score nodes: a
// container that requests nothing counts with 100m and 200 MiB. A pod that requests zero of both, in so many words,
// counts with these too: it is no reason to take all nodes for free.
func requests(pod *v1.Pod) (cpu, memory int64) {
	for i := range pod.Spec.Containers {
		c, m := schedutil.GetNonzeroRequests(&pod.Spec.Containers[i].Resources.Requests)
		cpu, memory = cpu+c, memory+m
	}
	for i := range pod.Spec.InitContainers {
		c, m := schedutil.GetNonzeroRequests(&pod.Spec.InitContainers[i].Resources.Requests)
		if c > cpu {
			cpu = c
		}
		if m > memory {
			memory = m
		}
	}
	if pod.Spec.Overhead != nil && utilfeature.DefaultFeatureGate.Enabled(features.PodOverhead) {
		cpu += pod.Spec.Overhead.Cpu().MilliValue()
		memory += pod.Spec.Overhead.Memory().Value()
	}
	if cpu <= 0 && memory <= 0 {
		return schedutil.DefaultMilliCPURequest, schedutil.DefaultMemoryRequest
	}
	return cpu, memory
}

// tolerates says whether a pod has a toleration of the key, or of every key.
func tolerates(pod *v1.Pod, key string) bool {
	for i := range pod.Spec.Tolerations {
		if toleration := &pod.Spec.Tolerations[i]; toleration.Key == key ||
			toleration.Key == "" && toleration.Operator == v1.TolerationOpExists {
			return true
		}
	}
	return false
}

// normaliseCosts changes costs into scores from 1 to 100:
//
//	100 × lowest cost / cost
//
// rounded to the nearest, but at least 1. So equal costs score equal, and proportion is kept: twice the cost is half the
// score, and a node that costs 1 % more scores 99, not 0 as it would if the scores were stretched between the lowest and
// the highest cost. Nodes that are left to others score 0, and their cost is nothing to the rest.
//
// A free node scores 100. Beside free nodes the lowest cost is half the lowest of the others: free is better than any
// price, and the others still differ.
func normaliseCosts(scores framework.NodeScoreList) {
	var lowest int64
	best := framework.MaxNodeScore
	for i := range scores {
		switch cost := scores[i].Score; {
		case cost == 0:
			best = framework.MaxNodeScore / 2
		case cost > 0 && (lowest == 0 || cost < lowest):
			lowest = cost
		}
	}
	for i := range scores {
		scores[i].Score = score(scores[i].Score, lowest, best)
	}
}

// score returns best × lowest / cost, rounded to the nearest, and at least 1.
func score(cost, lowest, best int64) int64 {
	switch {
	case cost == left:
		return 0
	case cost == 0:
		return framework.MaxNodeScore
	case cost == lowest:
		return best
	}
	high, low := bits.Mul64(uint64(2*best), uint64(lowest))
	// At most 2 × best, because no cost is lower than the lowest.
	doubled, _ := bits.Div64(high, low, uint64(cost))
	if doubled < 2 {
		return 1
	}
	return int64(doubled+1) / 2
}
