// SPDX-License-Identifier: Apache-2.0

package saturating

import (
	"math"
	"testing"
)

func TestAdd(t *testing.T) {
	for _, tt := range []struct{ a, b, want int64 }{
		{2, 3, 5},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MinInt64, -1},
		{math.MinInt64, -1, math.MinInt64},
		{math.MinInt64, math.MinInt64, math.MinInt64},
		{math.MaxInt64 - 1, 1, math.MaxInt64},
	} {
		if got := Add(tt.a, tt.b); got != tt.want {
			t.Errorf("Add(%d, %d) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, tt := range []struct{ part, whole, want int64 }{
		{1, 3, 33},
		{3, 2, 150},
		{math.MaxInt64 / 100, math.MaxInt64/100 + 1, 99},
		// The product is 2^64 and more.
		{1 << 62, 1<<62 + 1, 99},
		{math.MaxInt64 / 2, math.MaxInt64, 49},
		{math.MaxInt64, math.MaxInt64, 100},
		{math.MaxInt64, 1, 100},
	} {
		if got := Percent(tt.part, tt.whole); got != tt.want {
			t.Errorf("Percent(%d, %d) = %d, want %d", tt.part, tt.whole, got, tt.want)
		}
	}
}
