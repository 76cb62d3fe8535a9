// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"math"
	"testing"
)

func TestValueAndMilliValueSaturate(t *testing.T) {
	for quantity, want := range map[string]struct{ value, milli int64 }{
		"1":                   {1, 1000},
		"2.5":                 {3, 2500},
		"-2.5":                {-3, -2500},
		"9223372036854775807": {math.MaxInt64, math.MaxInt64},
		// 2^64 - 10^12 and 2^64 + 1: the low 64 bits are -10^12 and 1.
		"18446743073709551616":   {math.MaxInt64, math.MaxInt64},
		"18446744073709551617":   {math.MaxInt64, math.MaxInt64},
		"-18446744073709551617":  {math.MinInt64, math.MinInt64},
		"-18446744073709551617m": {-18446744073709551, math.MinInt64},
		"18446744073709551617m":  {18446744073709552, math.MaxInt64},
		"9223372036854775807.1":  {math.MaxInt64, math.MaxInt64},
		"50E":                    {math.MaxInt64, math.MaxInt64},
		"50e20":                  {math.MaxInt64, math.MaxInt64},
		"16Ei":                   {math.MaxInt64, math.MaxInt64},
		// It fits, but not in thousandths.
		"10P":    {1e16, math.MaxInt64},
		"-10P":   {-1e16, math.MinInt64},
		"9000T":  {9e15, 9e18},
		"0.001u": {1, 1},
	} {
		q := MustParse(quantity)
		if got := q.Value(); got != want.value {
			t.Errorf("%s has the value %d, want %d", quantity, got, want.value)
		}
		if got := q.MilliValue(); got != want.milli {
			t.Errorf("%s has the value %dm, want %dm", quantity, got, want.milli)
		}
		decimal := q.DeepCopy()
		if got := decimal.ToDec().MilliValue(); got != want.milli {
			t.Errorf("%s as a decimal has the value %dm, want %dm", quantity, got, want.milli)
		}
	}
}
