// SPDX-License-Identifier: Apache-2.0

package workloadtopology

// farthest is what a peer costs with which a node shares no level.
const farthest = 100

// nearness returns how near a node is to a pod's peers, 0 to 100:
//
//	100 - (the sum of weight × cost over all peers) / (the sum of their weights)
//
// rounded down. The cost of a peer is that of the nearest level of which the node shares the peer's domain, and 100 if
// there is none. So 100 is a node that has all peers in its nearest domain, if that costs nothing, and 0 one that shares
// no domain with any. The same sums give the same result. It is not stretched between the best node and the worst one:
// nodes between which it hardly matters score nearly the same, and others decide. Without peers all nodes are at 100.
//
// numbers are those of the node's domains, none where it has no domain, and sums the weights of the peers in each domain by
// its number.
func nearness(numbers []int32, costs, sums []int64, weight int64) int64 {
	if weight == 0 {
		return 100
	}
	var near, sum int64
	for level, number := range numbers {
		if number == none {
			continue
		}
		// Of a nested level it is no less than of the one before. Others, such as racks that cross zones, do not take back
		// what was nearer.
		if at := sums[number]; at > near {
			sum += (at - near) * costs[level]
			near = at
		}
	}
	sum += (weight - near) * farthest
	return (farthest*weight - sum) / weight
}

// spread returns what speaks for a node that has some pods of the group already: 100 / (1 + pods), rounded down.
func spread(pods int32) int64 {
	return 100 / (1 + int64(pods))
}

// combine returns the score of a node that is not hot, 1 to 100:
//
//	(nearness × (100 - spreadWeight) + spread × spreadWeight) / 100
//
// rounded down, and at least 1, which is more than a hot node has.
func combine(nearness, spread, spreadWeight int64) int64 {
	score := (nearness*(100-spreadWeight) + spread*spreadWeight) / 100
	if score < 1 {
		return 1
	}
	return score
}
