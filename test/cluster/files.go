// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// Program gives the value of an environment variable that names a program. It fails the test when it is missing: a test
// that passed without having run would say that all is well.
func Program(t testing.TB, variable string) string {
	t.Helper()
	file := os.Getenv(variable)
	if file == "" {
		t.Fatalf("the environment variable %s is not set; next: run this test with make, which builds its inputs and names them "+
			"(make help lists the target)", variable)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s: %v; next: build it, and give its absolute path", variable, err)
	}
	if !filepath.IsAbs(file) {
		t.Fatalf("%s=%s: go test runs in another directory; next: give its absolute path", variable, file)
	}
	return file
}

// Read gives the content of a file. It fails the test when it cannot be read.
func Read(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Write writes a file that only its owner may read. It fails the test when it cannot be written.
func Write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
