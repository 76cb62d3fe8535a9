// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
)

// TestFailure checks what a person reads when a component ends while it starts. That a run leaves no processes and no
// files is tested in test/integration/localcluster.
func TestFailure(t *testing.T) {
	const before = "echo I0101 a line before >&2; "
	for name, test := range map[string]struct {
		script string
		says   []string
		begins bool // with the line before
	}{
		"a component that ends": {
			"echo missing port in address >&2; exit 1", []string{"exit status 1", "missing port in address", "\nnext: look into it"}, true,
		},
		"a component that panics": {
			`printf 'panic: what is wrong\n\ngoroutine 1 [running]:\nmain.main()\n' >&2; exit 2`,
			[]string{"exit status 2", "its log, from the panic on:\n    panic: what is wrong\n", "goroutine 1", "\nnext: fix it"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(t.TempDir(), &tls.Config{MinVersion: tls.VersionTLS12}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			}()
			_, _, err = s.Start(t.Context(), Component{
				Name: "it", Executable: "/bin/sh", Listens: true, Next: "look into it", NextPanic: "fix it",
				Arguments: func(int) []string { return []string{"-c", before + test.script} },
			})
			var failure *Failure
			if !errors.As(err, &failure) {
				t.Fatalf("got %v, want a Failure", err)
			}
			for _, part := range test.says {
				if !strings.Contains(failure.Error(), part) {
					t.Errorf("%q is not in the message:\n%v", part, failure)
				}
			}
			if strings.Contains(failure.Error(), "a line before") != test.begins {
				t.Errorf("it has the line before: %v, want %v:\n%v", !test.begins, test.begins, failure)
			}
		})
	}
}
