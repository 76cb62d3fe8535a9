// SPDX-License-Identifier: Apache-2.0

package datalocality

import "math/bits"

// maxLevels is the largest number of levels that validation accepts.
const maxLevels = 8

// set is a set of a pod's known datasets, one bit each, in the order of the pod's annotation.
type set uint64

// all returns the set of n datasets.
func all(n int) set {
	if n == maxReads {
		return ^set(0)
	}
	return 1<<uint(n) - 1
}

// sum returns the sum of the bytes of a set's datasets.
func (s set) sum(bytes []int64) int64 {
	var sum int64
	for rest := uint64(s); rest != 0; rest &= rest - 1 {
		sum += bytes[bits.TrailingZeros64(rest)]
	}
	return sum
}

// nearest returns the bytes that a pod reads at each level of a node, given the datasets of the domains of these
// levels. A dataset is read only at the nearest level that holds it. Domains need not be nested: racks of the same name
// in two zones are one rack in both.
func nearest(held *[maxLevels]set, bytes []int64) (at [maxLevels]int64) {
	var found set
	for level, datasets := range held {
		if fresh := datasets &^ found; fresh != 0 {
			at[level] = fresh.sum(bytes)
			found |= fresh
		}
	}
	return at
}

// score returns the score of a node for a pod, 0 to 100, rounded down:
//
//	sum over the levels of percent × bytes read at the level / bytes of all known datasets
//
// Both sums are at most 64 × 2⁵⁰ × 100, which an int64 holds. Without known datasets, it is 0.
func score(at *[maxLevels]int64, percents []int64, total int64) int64 {
	if total == 0 {
		return 0
	}
	var sum int64
	for level, percent := range percents {
		sum += percent * at[level]
	}
	return sum / total
}
