// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"strings"
	"testing"
)

// With -trimpath, which the build and the tests of this project have, the last frame of a goroutine is in
// runtime/asm_amd64.s. As with informers, all that the goroutine runs is in the ignored packages.
func TestNameOfAGoroutine(t *testing.T) {
	name := make(chan string)
	go func() {
//line reflector.go:1
		name <- GetNameFromCallsite("reflector.go")
	}()
	if got := <-name; !strings.Contains(got, "pkg/util/naming/trimpath_test.go:") {
		t.Errorf("named %q, want the line that started the goroutine", got)
	}
}
