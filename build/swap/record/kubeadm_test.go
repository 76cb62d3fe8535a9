// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAPatchThatThisToolWroteIsNoEdit(t *testing.T) {
	s, said := directoryFor(t)
	s.Watched = t.TempDir()
	folder := filepath.Join(t.TempDir(), "patches")
	swapped := manifest.Swap{Image: "registry.k8s.io/kube-scheduler:v1.23.17-fork", Version: "v1.23.17+fork"}
	if err := s.WritePatch(folder, swapped); err != nil {
		t.Fatal(err)
	}
	// This patch is computed after a rollback, so it differs from the one on disk.
	ours, err := manifest.KubeadmPatch(manifest.Swap{Image: "registry.k8s.io/kube-scheduler:v1.23.17"})
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(s.Path, "edited-kubeadm-patch-*")
	keptFiles := func() int {
		t.Helper()
		found, err := filepath.Glob(kept)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if err := s.RemovePatches(ours); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, manifest.KubeadmPatchFile)
	if !strings.Contains(said.String(), "removed "+file) || keptFiles() != 0 {
		t.Errorf("our own patch: %d are kept:\n%s", keptFiles(), said)
	}
	// An update does not mistake its own patch for an edited one either.
	for _, version := range []string{"v1.23.17+fork", "v1.23.17+other"} {
		swapped.Version = version
		if err := s.WritePatch(folder, swapped); err != nil {
			t.Fatal(err)
		}
	}
	if keptFiles() != 0 {
		t.Errorf("an update keeps its own patch as an edit:\n%s", said)
	}
	for what, change := range map[string]func() error{
		"uninstall": func() error { return s.RemovePatches(ours) },
		"install":   func() error { return s.WritePatch(folder, swapped) },
	} {
		if err := s.WritePatch(folder, swapped); err != nil {
			t.Fatal(err)
		}
		swaptest.Put(t, file, swaptest.Get(t, file)+"# of a person\n")
		if err := change(); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(kept)
		if err != nil || len(found) != 1 || !strings.HasSuffix(swaptest.Get(t, found[0]), "# of a person\n") {
			t.Fatalf("%s: an edit is lost: %q, %v", what, found, err)
		}
		if err := os.Remove(found[0]); err != nil {
			t.Fatal(err)
		}
	}
}
