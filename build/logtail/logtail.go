// SPDX-License-Identifier: Apache-2.0

// Package logtail shows the end of what a program wrote.
package logtail

import "strings"

// maxBytes bounds how much is shown of lines that are very long.
const maxBytes = 16 << 10

// Last gives the last lines of a text, at most 16 KiB of them, without blanks around them.
func Last(text string, lines int) string {
	text = strings.TrimSpace(text)
	text = text[max(0, len(text)-maxBytes):]
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
