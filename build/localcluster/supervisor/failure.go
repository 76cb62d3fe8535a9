// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"strings"

	"kube-scheduler-fork/build/logtail"
)

// tailLines limits the log lines in a Failure.
const tailLines = 15

// Failure is the error of a component that did not start or that ended early.
type Failure struct {
	// Component is its name.
	Component string
	// Reason is the reason of the failure.
	Reason string
	// Panicked reports whether it ended by a panic.
	Panicked bool
	// LogTail is the end of its log, at most 15 lines and 16 KiB, because the log file is removed with the run. After a
	// panic it begins with the panic, and has the first frames of plugins too.
	LogTail []string
	// Next is the next step for a user.
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

// failure returns a Failure with the end of the component's log.
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
