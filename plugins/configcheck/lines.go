// SPDX-License-Identifier: Apache-2.0

// Package configcheck reports all errors of a scheduler configuration at once, each on its own line that begins with
// the path of the field. It is not a plugin: the command kube-scheduler calls it when it cannot start, and for
// --validate-config.
package configcheck

import (
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
)

// LogErrors logs each error of an aggregate on its own line, and returns an error with their number. It returns any
// other error unchanged. kube-scheduler prints the returned error as the reason for its exit.
func LogErrors(err error) error {
	if _, ok := err.(utilerrors.Aggregate); !ok {
		return err
	}
	messages := Lines(err)
	for _, line := range messages {
		// Structured logging would escape the quotes.
		klog.Error(line)
	}
	return fmt.Errorf("%s, logged above", count(len(messages), "error"))
}

// Lines returns the messages of an error or of an aggregate's errors, without duplicates, each on one line.
func Lines(err error) []string {
	errs := []error{err}
	if aggregate, ok := err.(utilerrors.Aggregate); ok {
		errs = utilerrors.Flatten(aggregate).Errors()
	}
	seen := sets.NewString()
	var messages []string
	for _, err := range errs {
		if invalid, ok := err.(*field.Error); ok {
			// Upstream's value of a duplicate is a *field.Path, which would be printed as a pointer.
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
