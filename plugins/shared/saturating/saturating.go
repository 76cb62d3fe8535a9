// SPDX-License-Identifier: Apache-2.0

// Package saturating calculates with amounts of resources that are as large as an int64 can be. Requests are written by
// users: a sum that wraps around is negative, and reads as free room.
package saturating

import (
	"math"
	"math/bits"
)

// Add returns a + b, or the bound of int64 that the sum exceeds.
func Add(a, b int64) int64 {
	sum := a + b
	if a > 0 && b > 0 && sum < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && sum >= 0 {
		return math.MinInt64
	}
	return sum
}

// Percent returns 100 × part / whole, rounded to zero; 100 if the product exceeds an int64 and part is not below whole.
// whole is not 0.
func Percent(part, whole int64) int64 {
	if part <= math.MaxInt64/100 {
		return part * 100 / whole
	}
	if part >= whole {
		return 100
	}
	high, low := bits.Mul64(uint64(part), 100)
	percent, _ := bits.Div64(high, low, uint64(whole))
	return int64(percent)
}
