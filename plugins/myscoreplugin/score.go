// SPDX-License-Identifier: Apache-2.0

package myscoreplugin

// place scores a label value by its place among the n preferred ones: n for the first, 1 for the last, and 0 for any
// other value.
func place(value string, preferred []string) int64 {
	for i := range preferred {
		if preferred[i] == value {
			return int64(len(preferred) - i)
		}
	}
	return 0
}
