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
	// LogTail is the end of what it wrote, at most 15 lines and 16 KiB; its log file is gone when the error is read.
	LogTail []string
	// Next is what to do.
	Next string
}

func (f *Failure) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", f.Component, f.Reason)
	if len(f.LogTail) > 0 {
		fmt.Fprintf(&text, "\nthe last lines of its log:\n    %s", strings.Join(f.LogTail, "\n    "))
	}
	fmt.Fprintf(&text, "\nnext: %s", f.Next)
	return text.String()
}

// failure reads the end of a component's log for a Failure.
func (p *Process) failure(reason, next string) *Failure {
	var tail []string
	content, err := os.ReadFile(p.logFile)
	switch text := logtail.Last(string(content), tailLines); {
	case err != nil:
		tail = []string{fmt.Sprintf("(its log cannot be read: %v)", err)}
	case text != "":
		tail = strings.Split(text, "\n")
	}
	return &Failure{Component: p.name, Reason: reason, LogTail: tail, Next: next}
}
