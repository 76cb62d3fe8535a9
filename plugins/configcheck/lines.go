// SPDX-License-Identifier: Apache-2.0

// Package configcheck says what is wrong with a scheduler configuration: all of it at once, each error on a line of its
// own that begins with the path of the field. It is no plugin; the command kube-scheduler calls it when it cannot
// start, and for --validate-config.
package configcheck

import (
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
)

// LogErrors logs each error of an aggregate on a line of its own, and returns in its place an error that says how many
// there are. Any other error is returned as it is. kube-scheduler prints what it returns as the reason why it ends.
func LogErrors(err error) error {
	if _, ok := err.(utilerrors.Aggregate); !ok {
		return err
	}
	messages := lines(err)
	for _, line := range messages {
		// Not as a value of structured logging, which would put a backslash before each of its quotes.
		klog.Error(line)
	}
	return fmt.Errorf("%s, logged above", count(len(messages), "error"))
}

// lines returns the message of each error of an aggregate, or of the one error; each message once, and on one line.
func lines(err error) []string {
	errs := []error{err}
	if aggregate, ok := err.(utilerrors.Aggregate); ok {
		errs = utilerrors.Flatten(aggregate).Errors()
	}
	seen := sets.NewString()
	var messages []string
	for _, err := range errs {
		if invalid, ok := err.(*field.Error); ok {
			// Upstream gives the place of a duplicate as the value, and it would be printed as a pointer.
			if path, ok := invalid.BadValue.(*field.Path); ok {
				err = &field.Error{Type: invalid.Type, Field: invalid.Field, BadValue: path.String(), Detail: invalid.Detail}
			}
		}
		message := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
		if !seen.Has(message) {
			seen.Insert(message)
			messages = append(messages, message)
		}
	}
	return messages
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
