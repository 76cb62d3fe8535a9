// SPDX-License-Identifier: Apache-2.0

// Package nextstep has the errors of this project's programs: each says what is wrong, and the next command to run.
package nextstep

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Error is an error with the next step.
type Error struct {
	Err error
	// Next is a command to run, or what to do.
	Next string
}

// With adds the next step to an error.
func With(err error, format string, arguments ...any) error {
	return &Error{Err: err, Next: fmt.Sprintf(format, arguments...)}
}

// Error gives both in one text; the next step is on a line of its own when there are several lines.
func (e *Error) Error() string { return e.Err.Error() + e.clause() }

func (e *Error) clause() string {
	if strings.Contains(e.Err.Error(), "\n") {
		return "\nnext: " + e.Next
	}
	return "; next: " + e.Next
}

func (e *Error) Unwrap() error { return e.Err }

// Split takes an error apart into what is wrong and the next step: the outermost one, which knows best what was to be
// done. An error of the system, a full disk for one, has none, and gets the one that is given as otherwise.
func Split(err error, otherwise string) (what, next string) {
	what, next = err.Error(), otherwise
	var outer *Error
	if errors.As(err, &outer) {
		next = outer.Next
	}
	for found := outer; found != nil; {
		what = strings.Replace(what, found.clause(), "", 1)
		var inner *Error
		if !errors.As(found.Err, &inner) {
			break
		}
		found = inner
	}
	return what, next
}

// Print tells a person of an error.
func Print(output io.Writer, err error, otherwise string) {
	what, next := Split(err, otherwise)
	fmt.Fprintf(output, "error: %s\nnext:  %s\n", what, next)
}
