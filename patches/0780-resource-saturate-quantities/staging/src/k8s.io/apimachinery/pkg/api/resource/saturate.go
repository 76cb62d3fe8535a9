// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"math"

	inf "gopkg.in/inf.v0"
)

// bound returns the bound of int64 on the side of a sign.
func bound(sign int) int64 {
	if sign < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

// fits reports whether a decimal, rounded up at a scale, is an int64.
func fits(dec *inf.Dec, scale Scale) bool {
	if dec.Scale() >= scale.infScale() && dec.UnscaledBig().IsInt64() {
		return true
	}
	return dec.Cmp(inf.NewDec(math.MaxInt64, scale.infScale())) <= 0 && dec.Cmp(inf.NewDec(math.MinInt64, scale.infScale())) >= 0
}
