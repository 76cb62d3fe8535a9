// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"runtime"
	"testing"
)

// wantSmall fails if a function allocates as much as one of the amounts written out, 40 kB.
func wantSmall(t *testing.T, what string, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 10_000 {
		t.Errorf("%s allocates %d bytes", what, bytes)
	}
}

func TestCmpOfAmountsFarApart(t *testing.T) {
	increasing := []string{
		"-12345678901234567890e100000", "-1e100000", "-10000000000000000000", "-1", "-1n", "0", "1n", "999n", "1u", "1", "1024", "1Ki",
		"9223372036854775807", "9223372036854775808", "1e19", "18446744073709551616", "1e100000", "12345678901234567890e100000",
	}
	equal := map[string]string{"1024": "1Ki", "1000n": "1u"}
	for i, x := range increasing {
		for j, y := range increasing {
			want := 0
			if i < j && equal[x] != y {
				want = -1
			} else if i > j && equal[y] != x {
				want = 1
			}
			wantSmall(t, x+".Cmp("+y+")", func() {
				a, b := MustParse(x), MustParse(y)
				if got := a.Cmp(b); got != want {
					t.Errorf("%s.Cmp(%s) = %d, want %d", x, y, got, want)
				}
			})
		}
	}
	for x, want := range map[string]int{"1e100000": 1, "12345678901234567890e100000": 1, "-12345678901234567890e100000": -1, "7": 0} {
		a := MustParse(x)
		if got := a.CmpInt64(7); got != want {
			t.Errorf("%s.CmpInt64(7) = %d, want %d", x, got, want)
		}
	}
}

func TestSumsOfAmountsFarApart(t *testing.T) {
	for _, test := range []struct{ x, y, sum, difference string }{
		{"0", "1e100000", "1e100000", "-1e100000"},
		{"1e100000", "0", "1e100000", "1e100000"},
		{"1n", "1e100000", "1e100000", "-1e100000"},
		{"12345678901234567890e100000", "1n", "12345678901234567890e100000", "12345678901234567890e100000"},
		{"12345678901234567890", "1n", "12345678901234567890000000001n", "12345678901234567889999999999n"},
	} {
		sum, difference := MustParse(test.x), MustParse(test.x)
		wantSmall(t, test.x+" and "+test.y, func() {
			sum.Add(MustParse(test.y))
			difference.Sub(MustParse(test.y))
		})
		if sum.Cmp(MustParse(test.sum)) != 0 || difference.Cmp(MustParse(test.difference)) != 0 {
			t.Errorf("%s and %s: got the sum %s and the difference %s, want %s and %s", test.x, test.y, &sum, &difference, test.sum, test.difference)
		}
	}
}

func TestStringOfLargeSums(t *testing.T) {
	for _, x := range []string{"1", "1Ki"} {
		sum := MustParse(x)
		sum.Sub(MustParse("12345678901234567890e100000"))
		wantSmall(t, "the text of "+x+" less a large amount", func() {
			if got, want := sum.String(), "-123456789012345678900e99999"; got != want {
				t.Errorf("%s less a large amount is %s, want %s", x, got, want)
			}
		})
	}
}
