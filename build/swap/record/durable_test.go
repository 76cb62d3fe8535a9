// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAFileIsReplacedWholeAndLeavesNothingBeside(t *testing.T) {
	folder := t.TempDir()
	target := swaptest.Put(t, filepath.Join(folder, "manifest.yaml"), "old")
	// An interrupted run left this.
	swaptest.Put(t, filepath.Join(folder, ".manifest.yaml.new"), "half of it, and longer than the new one")
	if err := WriteDurably(target, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := swaptest.Get(t, target); got != "new" {
		t.Errorf("content %q, want new", got)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if got := swaptest.Names(t, folder); !slices.Equal(got, []string{"manifest.yaml"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func TestAFileThatCannotBeReplacedStaysAsItIs(t *testing.T) {
	folder := t.TempDir()
	// The target is a directory, so the last step, the rename, fails.
	target := filepath.Join(folder, "manifest.yaml")
	swaptest.Put(t, filepath.Join(target, "inside"), "old")
	if err := WriteDurably(target, []byte("new"), 0o600); err == nil {
		t.Fatal("no error")
	}
	if got := swaptest.Names(t, folder); !slices.Equal(got, []string{"manifest.yaml"}) {
		t.Errorf("the folder holds %q: what could not be used has stayed", got)
	}
}
