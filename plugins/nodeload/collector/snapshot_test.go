// SPDX-License-Identifier: Apache-2.0

package collector

import "testing"

// TestReasons checks that each reason has its own name in metrics, and that Present is not among them.
func TestReasons(t *testing.T) {
	seen := map[string]bool{Present.String(): true}
	if Present.String() != "" {
		t.Errorf("Present is called %q", Present)
	}
	reasons := Reasons()
	for _, reason := range reasons {
		if seen[reason.String()] {
			t.Errorf("two reasons are called %q", reason)
		}
		seen[reason.String()] = true
	}
	if len(reasons) != int(TooOld) || reasons[0] != NoSeries || reasons[len(reasons)-1] != TooOld {
		t.Errorf("the reasons are %v, want those from no_series to too_old", reasons)
	}
}
