// SPDX-License-Identifier: Apache-2.0

package input

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Error is bad input. It quotes names, and no other values of objects, because those may be secrets.
type Error struct {
	// Where is FILE:LINE, or FILE.
	Where, What string
	// Next is what to do.
	Next string
}

func (e *Error) Error() string { return e.Where + ": " + e.What + "; next: " + e.Next }

// place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return p.file + ":" + strconv.Itoa(p.line)
}

func (p place) fail(next, what string, arguments ...interface{}) error {
	return &Error{Where: p.String(), What: fmt.Sprintf(what, arguments...), Next: next}
}

// short limits a name that an error quotes.
func short(name string) string {
	if most := 320; len(name) > most {
		return name[:most] + "…"
	}
	return name
}

const (
	saveAgain = "save it again, and check that the command succeeds: kubectl get nodes,pods -A -o yaml > FILE"
	saveBoth  = "save nodes and pods together: kubectl get nodes,pods -A -o yaml > FILE"
	correct   = "correct the line"
)

// failed returns the error of reading or parsing a file.
func (p place) failed(err error, format string) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "unexpected end") {
		return p.fail(saveAgain, "the file is cut: it ends inside an object or a list")
	}
	return p.fail(saveAgain, "the file is not valid %s here", format)
}

var (
	wrongType    = regexp.MustCompile(`Go struct field (\S+) of type (\S+)$`)
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"$`)
	wrongAmount  = regexp.MustCompile("^" + regexp.QuoteMeta(resource.ErrFormatWrong.Error()) + "$")
)

// reason returns what is wrong without the values that a decoder's error quotes.
func reason(err error) string {
	text := err.Error()
	if field := wrongType.FindStringSubmatch(text); field != nil {
		return "field " + field[1] + " is not of type " + field[2]
	}
	if field := unknownField.FindStringSubmatch(text); field != nil {
		return "field " + field[1] + " is unknown"
	}
	if wrongAmount.MatchString(text) {
		return "a quantity is not valid"
	}
	return "a field has a wrong value"
}
