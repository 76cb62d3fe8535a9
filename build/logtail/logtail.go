// SPDX-License-Identifier: Apache-2.0

// Package logtail shows the end of what a program wrote.
package logtail

import (
	"slices"
	"strings"
)

// maxBytes bounds how much is shown of lines that are very long.
const maxBytes = 16 << 10

// pluginsPath is what the functions of all scheduler plugins have in their names.
const pluginsPath = "/pkg/scheduler/framework/plugins/"

// Last gives the last lines of a text, at most 16 KiB of them, without blanks around them.
func Last(text string, lines int) string {
	text = strings.TrimSpace(text)
	text = text[max(0, len(text)-maxBytes):]
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// pluginFrames bounds how many frames of a stack Panic adds.
const pluginFrames = 3

// Panic gives the end of the text of a Go program that ended by a panic, or by a fatal error of Go's own: lines from
// where it says so, and after them the first frames of the stack that are a scheduler plugin's, two lines each. Of any
// other text it gives nothing.
func Panic(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	begin := slices.IndexFunc(all, func(line string) bool {
		return strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:")
	})
	if begin < 0 {
		return ""
	}
	all = all[begin:]
	shown := slices.Clone(all[:min(lines, len(all))])
	// A frame is a function and, below it, its file. The stacks of other goroutines come after this one's.
	for i, frames, goroutines := 1, 0, 0; i < len(all) && frames < pluginFrames && goroutines < 2; i++ {
		if strings.HasPrefix(all[i], "goroutine ") {
			goroutines++
		}
		if goroutines == 1 && strings.HasPrefix(all[i], "\t") && strings.Contains(all[i-1], pluginsPath) {
			frames++
			if i >= lines {
				shown = append(shown, all[max(i-1, lines):i+1]...)
			}
		}
	}
	end := strings.Join(shown, "\n")
	return end[:min(len(end), maxBytes)]
}
