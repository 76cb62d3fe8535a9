// SPDX-License-Identifier: Apache-2.0

package staticpod

import "github.com/rogpeppe/go-internal/diff"

// Diff gives the change from one text to another as a unified diff; nil when there is none.
func Diff(oldName string, old []byte, newName string, new []byte) []byte {
	return diff.Diff(oldName, old, newName, new)
}
