// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func TestHistory(t *testing.T) {
	const header = `{"history":1,"start":"2026-01-02T03:00:00Z","source":"watch","by":""}` + "\n"
	for _, test := range []struct{ name, content, arguments, want string }{
		{"the same version", header + "{}\n", "--convert FILE --to-version 1", header + "{}\n"},
		{"another version is wanted", header, "--convert FILE --to-version 2", "this release writes version 1 of the format, not 2"},
		{"a newer version", strings.Replace(header, "1", "2", 1), "--convert FILE", "has version 2 of the format, and this release knows version 1"},
		{"another file", "my notes", "--convert FILE", ":1: it is not the first line of a history"},
		{"no file", "", "--follow", "--output is missing"},
		{"no duration", "", "--prometheus http://127.0.0.1:1 -o FILE --since 7days", "--since 7days is not a duration"},
		{"a flag of the other source", "", "--follow --since 7d -o FILE", "none of the others can be"},
		{"too much", "", "--prometheus http://127.0.0.1:1 --follow", "none of the others can be"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, output := filepath.Join(t.TempDir(), "file"), &bytes.Buffer{}
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			command := NewCommand("v1", genericclioptions.IOStreams{Out: output, ErrOut: output})
			command.SetArgs(append([]string{"history"}, strings.Fields(strings.ReplaceAll(test.arguments, "FILE", file))...))
			if err := command.Execute(); err != nil {
				output.WriteString(err.Error())
			}
			if !strings.Contains(output.String(), test.want) {
				t.Errorf("it prints %s, want %s", output, test.want)
			}
		})
	}
}
