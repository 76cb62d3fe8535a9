// SPDX-License-Identifier: Apache-2.0

package resource

import "gopkg.in/inf.v0"

// compare returns -1, 0 or 1 as x.Cmp(y) does. That function first writes out all zeros of the amount with the larger
// exponent, which can take seconds, so signs and the numbers of digits decide where they can.
func compare(x, y *inf.Dec) int {
	if x.Sign() < y.Sign() {
		return -1
	}
	if x.Sign() > y.Sign() {
		return 1
	}
	if x.Sign() == 0 {
		return 0
	}
	xLeast, xMost := integerDigits(x)
	yLeast, yMost := integerDigits(y)
	if xLeast > yMost {
		return x.Sign()
	}
	if yLeast > xMost {
		return -y.Sign()
	}
	return x.Cmp(y)
}

// negligible is a number of digits: an amount with so many fewer than another as good as does not change their sum.
const negligible = 40

// add sets x to the sum of x and y. Like inf.Dec's Cmp, its Add writes out all zeros of the larger amount.
func add(x, y *inf.Dec) {
	if y.Sign() == 0 {
		return
	}
	if x.Sign() == 0 {
		x.Set(y)
		return
	}
	xLeast, xMost := integerDigits(x)
	yLeast, yMost := integerDigits(y)
	switch {
	case xLeast > yMost+negligible:
	case yLeast > xMost+negligible:
		x.Set(y)
	default:
		x.Add(x, y)
	}
}

// integerDigits returns bounds for the number of digits before the decimal point of an amount that is not zero. The
// number is negative for zeros after the point.
func integerDigits(amount *inf.Dec) (least, most int64) {
	bits, scale := int64(amount.UnscaledBig().BitLen()), int64(amount.Scale())
	// The decimal logarithm of 2 is between 0.30102 and 0.30103.
	return (bits-1)*30102/100000 + 1 - scale, bits*30103/100000 + 1 - scale
}

// shortFormat returns the format of a quantity, but that with an exponent for one with so many zeros that BinarySI would
// take seconds to write them out, and DecimalSI has no suffix.
func (q *Quantity) shortFormat() Format {
	if q.d.Dec != nil && q.d.Dec.Scale() < -negligible {
		return DecimalExponent
	}
	return q.Format
}
