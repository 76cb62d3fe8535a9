// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"strings"

	"kube-scheduler-fork/build/logtail"
)

// tailLines bounds how much of a component's log a Failure shows.
const tailLines = 15

// Failure says that a component did not come up, or ended when it should not have.
type Failure struct {
	// Component is its name.
	Component string
	// Reason is why it is taken for failed.
	Reason string
	// Panicked says that it ended by a panic.
	Panicked bool
	// LogTail is the end of what it wrote, at most 15 lines and 16 KiB; its log file is gone when the error is read.
	// After a panic it begins with that, and has the first frames of plugins besides.
	LogTail []string
	// Next is what to do.
	Next string
}

func (f *Failure) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", f.Component, f.Reason)
	if len(f.LogTail) > 0 {
		shown := "the last lines of its log"
		if f.Panicked {
			shown = "its log, from the panic on"
		}
		fmt.Fprintf(&text, "\n%s:\n    %s", shown, strings.Join(f.LogTail, "\n    "))
	}
	fmt.Fprintf(&text, "\nnext: %s", f.Next)
	return text.String()
}

// failure reads the end of a component's log for a Failure.
func (p *Process) failure(reason string, component Component) *Failure {
	failure := &Failure{Component: p.name, Reason: reason, Next: component.Next}
	content, err := os.ReadFile(p.logFile)
	text := logtail.Panic(string(content), tailLines)
	if failure.Panicked = text != ""; !failure.Panicked {
		text = logtail.Last(string(content), tailLines)
	} else if component.NextPanic != "" {
		failure.Next = component.NextPanic
	}
	switch {
	case err != nil:
		failure.LogTail = []string{fmt.Sprintf("(its log cannot be read: %v)", err)}
	case text != "":
		failure.LogTail = strings.Split(text, "\n")
	}
	return failure
}
