// SPDX-License-Identifier: Apache-2.0

package host

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/build/swap/swaptest"
)

func TestTheEndOfALogIsReadInBothFormats(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"container runtime interface": {"2026-01-01T00:00:00.0Z stderr F E1 it failed here\n2026-01-01T00:00:01.0Z stdout P part\n", []string{"E1 it failed here", "part"}},
		"Docker":                      {`{"log":"E1 it failed\n","stream":"stderr","time":"2026"}` + "\n", []string{"E1 it failed"}},
		"nothing":                     {"", nil},
	} {
		got, err := logTail(swaptest.Put(t, filepath.Join(t.TempDir(), "0.log"), c.content))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	long := strings.Repeat("2026 stderr F "+strings.Repeat("x", 100)+"\n", 1000) + "2026 stderr F last\n"
	got, err := logTail(swaptest.Put(t, filepath.Join(t.TempDir(), "0.log"), long))
	if err != nil || len(got) != tailLines || got[tailLines-1] != "last" {
		t.Errorf("a long log: %d lines, %v", len(got), err)
	}
}
