// SPDX-License-Identifier: Apache-2.0

package nextstep

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestAnErrorIsTakenApart(t *testing.T) {
	missing := With(fmt.Errorf("x is missing: %w", fs.ErrNotExist), "make %s", "x")
	for _, c := range []struct {
		name             string
		err              error
		text, what, next string
	}{
		{"one", missing, "x is missing: file does not exist; next: make x", "x is missing: file does not exist", "make x"},
		{"wrapped", fmt.Errorf("y (%w) failed", missing), "y (x is missing: file does not exist; next: make x) failed",
			"y (x is missing: file does not exist) failed", "make x"},
		{"the outermost counts", With(fmt.Errorf("z: %w", missing), "make z"),
			"z: x is missing: file does not exist; next: make x; next: make z", "z: x is missing: file does not exist", "make z"},
		{"several lines", With(errors.New("a\nb"), "make y"), "a\nb\nnext: make y", "a\nb", "make y"},
		{"text that looks like one", With(errors.New("it printed: ; next: no"), "make y"),
			"it printed: ; next: no; next: make y", "it printed: ; next: no", "make y"},
		{"of the system", errors.New("no space left on device"), "no space left on device", "no space left on device", "see above"},
	} {
		if got := c.err.Error(); got != c.text {
			t.Errorf("%s: the text is %q, want %q", c.name, got, c.text)
		}
		if what, next := Split(c.err, "see above"); what != c.what || next != c.next {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, what, next, c.what, c.next)
		}
	}
	if !errors.Is(missing, fs.ErrNotExist) {
		t.Error("the cause cannot be found")
	}
	var printed strings.Builder
	Print(&printed, missing, "")
	if want := "error: x is missing: file does not exist\nnext:  make x\n"; printed.String() != want {
		t.Errorf("printed %q, want %q", &printed, want)
	}
}
