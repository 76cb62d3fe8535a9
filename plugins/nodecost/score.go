// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/saturating"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// left is the cost of a spot node for a pod that must leave it to other pods.
const left int64 = -1

// cost returns the cost of a node, in billionths per hour, 0 to maxPrice, or left. cpu and memory are its allocatable
// resources. An unknown node has no price.
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

// share returns price × requested / allocatable, rounded up, so that no share of a price is free. It is at most the
// price, even if the node has less than is requested, or nothing.
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

// requests returns the requests of a pod, in thousandths of a CPU and in bytes, with the scheduler's defaults for
// scores: a container without requests counts as 100m and 200 MiB. So does a pod with explicit requests of 0, because
// otherwise all nodes would be free for it.
func requests(pod *v1.Pod) (cpu, memory int64) {
	for i := range pod.Spec.Containers {
		c, m := schedutil.GetNonzeroRequests(&pod.Spec.Containers[i].Resources.Requests)
		cpu, memory = saturating.Add(cpu, c), saturating.Add(memory, m)
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
		cpu = saturating.Add(cpu, pod.Spec.Overhead.Cpu().MilliValue())
		memory = saturating.Add(memory, pod.Spec.Overhead.Memory().Value())
	}
	if cpu <= 0 && memory <= 0 {
		return schedutil.DefaultMilliCPURequest, schedutil.DefaultMemoryRequest
	}
	return cpu, memory
}

// tolerates reports whether a pod has a toleration of the key, or of every key.
func tolerates(pod *v1.Pod, key string) bool {
	for i := range pod.Spec.Tolerations {
		if toleration := &pod.Spec.Tolerations[i]; toleration.Key == key ||
			toleration.Key == "" && toleration.Operator == v1.TolerationOpExists {
			return true
		}
	}
	return false
}

// normaliseCosts converts costs to scores from 1 to 100:
//
//	100 × lowest cost / cost
//
// rounded to the nearest, but at least 1. So scores are inversely proportional to costs: twice the cost is half the
// score, and a node that costs 1 % more scores 99. If scores were stretched between the lowest and the highest cost, it
// could score 0. Nodes that are left to other pods score 0, and do not affect the other scores.
//
// A free node scores 100. With free nodes, the lowest cost is half of the lowest price, so that a free node is better
// than any other, and the scores of the others still differ.
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

// score returns best × lowest / cost, rounded to the nearest, but at least 1.
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
	// The quotient is at most 2 × best, because no cost is below the lowest.
	doubled, _ := bits.Div64(high, low, uint64(cost))
	if doubled < 2 {
		return 1
	}
	return int64(doubled+1) / 2
}
