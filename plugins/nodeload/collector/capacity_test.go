// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"strings"
	"testing"
)

// TestParseQuantity includes quantities that would take minutes to parse.
func TestParseQuantity(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "2": 2, "1.5": 1.5, "250m": 0.25, "200M": 2e8, "1Gi": 1 << 30, "3E": 3e18, "1Ei": 1 << 60, "12e6": 12e6, "1e-3": 0.001, "1E+2": 100, "9e99": 9e99,
	} {
		if got, ok := ParseQuantity(text); !ok || math.Abs(got-want) > 1e-9*want {
			t.Errorf("%q is %v, %v; want %v", text, got, ok, want)
		}
	}
	ones := strings.Repeat("1", 20)
	for _, text := range []string{
		"", "many", "-1", "1e400", "9e999999", ones + "e100000000", ones + "e999", "1e-100", ones + "E+100", strings.Repeat("1", 300000),
		"0." + ones + "1234", "1e1e1", "0x10",
	} {
		if got, ok := ParseQuantity(text); ok {
			t.Errorf("%.40q is %v, want none", text, got)
		}
	}
}
