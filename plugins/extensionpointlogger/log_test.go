// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger_test

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// capture collects the scheduler's log until the test ends.
type capture struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func captureLog(tb testing.TB) *capture {
	c := &capture{}
	klog.LogToStderr(false)
	klog.SetOutput(c)
	tb.Cleanup(func() { klog.LogToStderr(true) })
	return c
}

// Write takes a line from klog.
func (c *capture) Write(line []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.text.Write(line)
}

// call is a line of the plugin, by key.
type call map[string]string

// field is a key and value as klog writes them: numbers bare, everything else quoted.
var field = regexp.MustCompile(` (\w+)=(?:"([^"]*)"|(\S+))`)

// calls returns the plugin's lines so far.
func (c *capture) calls(tb testing.TB) []call {
	tb.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var calls []call
	for _, line := range strings.Split(c.text.String(), "\n") {
		const message = `] "Extension point called"`
		at := strings.Index(line, message)
		if at < 0 {
			continue
		}
		fields, parsed := line[at+len(message):], 0
		one := make(call)
		for _, match := range field.FindAllStringSubmatch(fields, -1) {
			one[match[1]] = match[2] + match[3]
			parsed += len(match[0])
		}
		if parsed != len(fields) {
			tb.Fatalf("cannot read the whole of %q", line)
		}
		calls = append(calls, one)
	}
	return calls
}

// where keeps the calls that have a value.
func where(calls []call, key, value string) []call {
	var kept []call
	for _, one := range calls {
		if one[key] == value {
			kept = append(kept, one)
		}
	}
	return kept
}
