// SPDX-License-Identifier: Apache-2.0

package datalocality

import "math/bits"

// maxLevels is how many levels there can be at most, as validation has it.
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

// sum adds up the bytes of a set's datasets.
func (s set) sum(bytes []int64) int64 {
	var sum int64
	for rest := uint64(s); rest != 0; rest &= rest - 1 {
		sum += bytes[bits.TrailingZeros64(rest)]
	}
	return sum
}

// nearest returns the bytes that a pod reads at each level of a node, if the domains of these levels hold these
// datasets. A dataset is read at the nearest level that holds it, and there alone. Domains need not lie within each
// other: racks of the same name in two zones are one rack that reaches into both.
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

// score returns what a node is worth to a pod, 0 to 100, rounded down:
//
//	sum over the levels of percent × bytes that are read there / bytes of all known datasets
//
// Both sums are at most 64 × 2⁵⁰ × 100, which an int64 holds. Where no dataset is known, it is 0.
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
