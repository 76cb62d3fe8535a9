// SPDX-License-Identifier: Apache-2.0

// Package logtail extracts the end of a program's output.
package logtail

import (
	"slices"
	"strings"
)

// maxBytes limits the output if lines are very long.
const maxBytes = 16 << 10

// pluginsPath is in the names of all functions of scheduler plugins.
const pluginsPath = "/pkg/scheduler/framework/plugins/"

// Last returns the last lines of a text, at most 16 KiB, without surrounding whitespace.
func Last(text string, lines int) string {
	text = strings.TrimSpace(text)
	text = text[max(0, len(text)-maxBytes):]
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// pluginFrames limits the stack frames that Panic adds.
const pluginFrames = 3

// Panic returns the end of the output of a Go program that ended with a panic or a fatal runtime error: the lines from
// the panic on, and then the first stack frames in scheduler plugins, two lines each. It returns "" for any other text.
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
	// A frame is a function with its file on the next line. The stacks of other goroutines come after the panicking
	// one's.
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
