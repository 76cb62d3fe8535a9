// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestSimulate runs the command in another process, which the simulator replaces.
func TestSimulate(t *testing.T) {
	if os.Getenv("SIMULATE") != "" {
		command := NewCommand("v1", genericclioptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
		command.SetArgs([]string{"simulate", "drain", "--help", "node-1"})
		t.Fatal(command.Execute())
	}
	run := func(path string) (output string, code int) {
		command := exec.Command(os.Args[0], "-test.run=^TestSimulate$")
		command.Env = append(os.Environ(), "SIMULATE=yes", "PATH="+path)
		command.Stdin = strings.NewReader("input")
		var all bytes.Buffer
		command.Stdout, command.Stderr = &all, &all
		var exit *exec.ExitError
		if err := command.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return all.String(), command.ProcessState.ExitCode()
	}
	folder := t.TempDir()
	if output, code := run(folder); code == 0 || !strings.Contains(output, "nor in PATH; next: on Linux, copy it there from the release bundle") {
		t.Errorf("without the simulator: exit code %d, output %s", code, output)
	}
	script := "#!/bin/sh\nread -r line\necho \"$line: $*\"\nexit 7\n"
	if err := os.WriteFile(filepath.Join(folder, simulator), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if output, code := run(folder); code != 7 || output != "input: drain --help node-1\n" {
		t.Errorf("exit code %d, output %q, want those of the simulator", code, output)
	}
}
