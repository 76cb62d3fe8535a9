// SPDX-License-Identifier: Apache-2.0

package myscoreplugin

// place rates a label value by its place among the preferred ones. With n of them, the one at place i (from 0) gets n -
// i: n for the first, 1 for the last. A value not among them gets 0.
func place(value string, preferred []string) int64 {
	for i := range preferred {
		if preferred[i] == value {
			return int64(len(preferred) - i)
		}
	}
	return 0
}
