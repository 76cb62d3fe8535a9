// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
)

func TestEveryMessageSaysWhatIsNext(t *testing.T) {
	for text, want := range map[string][2]string{
		"x is missing; next: make x": {"x is missing", "make x"},
		"a\nb\nnext: make y":         {"a\nb", "make y"},
		"no space left on device":    {"no space left on device", "fix what is said above"},
	} {
		what, next := message(errors.New(text))
		if what != want[0] || !strings.HasPrefix(next, want[1]) {
			t.Errorf("message(%q) = %q, %q, want %q, %q", text, what, next, want[0], want[1])
		}
	}
}
