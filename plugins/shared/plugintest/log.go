// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// Log is the scheduler's log.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// CaptureLog collects the log until the test ends.
func CaptureLog(t testing.TB) *Log {
	l := &Log{}
	klog.LogToStderr(false)
	klog.SetOutput(l)
	t.Cleanup(func() { klog.LogToStderr(true) })
	return l
}

// Write takes a line from klog.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// Contains reports whether a text was logged.
func (l *Log) Contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// field is a key and value as klog writes them: numbers bare, everything else quoted.
var field = regexp.MustCompile(` (\w+)=(?:"([^"]*)"|(\S+))`)

// Lines returns the keys and values of the lines with a message so far.
func (l *Log) Lines(t testing.TB, message string) []map[string]string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []map[string]string
	for _, line := range strings.Split(l.text.String(), "\n") {
		begin := `] "` + message + `"`
		at := strings.Index(line, begin)
		if at < 0 {
			continue
		}
		fields, parsed, values := line[at+len(begin):], 0, map[string]string{}
		for _, match := range field.FindAllStringSubmatch(fields, -1) {
			values[match[1]] = match[2] + match[3]
			parsed += len(match[0])
		}
		if parsed != len(fields) {
			t.Fatalf("cannot read the whole of %q", line)
		}
		lines = append(lines, values)
	}
	return lines
}
