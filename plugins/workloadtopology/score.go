// SPDX-License-Identifier: Apache-2.0

package workloadtopology

// farthest is the cost of a peer with which a node shares no domain.
const farthest = 100

// nearness returns the nearness of a node to a pod's peers, 0 to 100:
//
//	100 - (the sum of weight × cost over all peers) / (the sum of their weights)
//
// rounded down. The cost of a peer is the cost of the nearest level at which the node is in the peer's domain, or 100
// without such a level. So a node with all peers in its nearest domain has 100, if that level's cost is 0, and a node
// that shares no domain with any peer has 0. The result is not stretched between the best and the worst node: if nodes
// differ little, other plugins decide. Without peers all nodes have 100.
//
// numbers are the numbers of the node's domains, or none without a domain. sums has the weights of the peers in each
// domain, by its number.
func nearness(numbers []int32, costs, sums []int64, weight int64) int64 {
	if weight == 0 {
		return 100
	}
	var near, sum int64
	for level, number := range numbers {
		if number == none {
			continue
		}
		// At nested levels the sum never decreases. Other levels, such as racks that span zones, must not reduce it.
		if at := sums[number]; at > near {
			sum += (at - near) * costs[level]
			near = at
		}
	}
	sum += (weight - near) * farthest
	return (farthest*weight - sum) / weight
}

// spread returns 100 / (1 + pods), rounded down, for a node with this number of pods of the group.
func spread(pods int32) int64 {
	return 100 / (1 + int64(pods))
}

// combine returns the score of a node that is not hot, 1 to 100:
//
//	(nearness × (100 - spreadWeight) + spread × spreadWeight) / 100
//
// rounded down, but at least 1, because a hot node has 0.
func combine(nearness, spread, spreadWeight int64) int64 {
	score := (nearness*(100-spreadWeight) + spread*spreadWeight) / 100
	if score < 1 {
		return 1
	}
	return score
}
