// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheControlGroupsOfPodsAreFoundInBothVersions(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{
		"memory/kubepods/burstable/pod0123abc/1234", "cpu/kubepods/burstable/pod0123abc", "memory/kubepods/podother",
		"unified/kubepods/burstable/pod0123abc", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice/x",
	} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := podCgroups(root, map[string]bool{"0123abc": true, "aa-bb": true})
	for i, path := range got {
		got[i] = strings.TrimPrefix(path, root+"/")
	}
	want := []string{"cpu/kubepods/burstable/pod0123abc", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice", "memory/kubepods/burstable/pod0123abc"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if gone([]string{filepath.Join(root, want[0])}) || !gone([]string{filepath.Join(root, "not-there")}) {
		t.Error("gone does not tell what is there")
	}
}
