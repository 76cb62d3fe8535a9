// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAFullDiskKeepsNoRollbackFromWhatIsKeptElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a disk that is full")
	}
	swapped := swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:1", Version: "v1"})
	edited := strings.Replace(swapped, "    image:", "    - --v=9\n    image:", 1)
	for name, c := range map[string]struct {
		manifest, previous string
		where              string
	}{
		"nothing but the swap of what is put back": {swapped, "", "kube-scheduler-swap install creates it again"},
		"it is kept already":                       {edited, edited, "it is in "},
		"it is kept nowhere":                       {edited, "", ""},
	} {
		s, said := directoryFor(t)
		if err := unix.Mount("tmpfs", s.Path, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip("no disk can be mounted here: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(s.Path, 0) })
		swaptest.Put(t, s.Original(), swaptest.Stock)
		if c.previous != "" {
			swaptest.Put(t, s.Previous(), c.previous)
		}
		if err := os.WriteFile(filepath.Join(s.Path, "ballast"), make([]byte, 64<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		pod := swaptest.PodOf(t, c.manifest)
		err := s.SaveReplaced([]byte(c.manifest), pod, []byte(swaptest.Stock))
		if (err == nil) != (c.where != "") || !strings.Contains(said.String(), c.where) {
			t.Errorf("%s: %v; it says %q, want %q", name, err, said.String(), c.where)
		}
		if err != nil && !strings.Contains(err.Error(), "make room in "+s.Path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatDoesNotWorkIsNoWayBack(t *testing.T) {
	broken := swaptest.StockWith("--v=9")
	s, said := directoryFor(t)
	swaptest.Put(t, s.Original(), swaptest.Stock)
	swaptest.Put(t, s.Undo(), "from before")
	good, err := s.SaveForUndo([]byte(broken), swaptest.PodOf(t, broken), nil, func() error { return errors.New("it hangs") })
	if good != nil || err != nil {
		t.Fatalf("an undo would put back %q, %v", good, err)
	}
	if got := swaptest.Get(t, s.Original()); got != swaptest.Stock {
		t.Errorf("the original is now\n%s", got)
	}
	kept := swaptest.Names(t, s.Path)
	if index := slices.IndexFunc(kept, func(name string) bool { return strings.HasPrefix(name, "broken-") }); index < 0 {
		t.Errorf("what lay there is not kept: %q", kept)
	} else if got := swaptest.Get(t, filepath.Join(s.Path, kept[index])); got != broken {
		t.Errorf("kept is\n%s", got)
	} else if !strings.Contains(said.String(), "kept as "+filepath.Join(s.Path, kept[index])) {
		t.Errorf("it does not say where: %q", said)
	}
	if _, err := os.Stat(s.Undo()); err == nil {
		t.Error("an undo from before is left, for the next run to take")
	}
}

func TestTheWayBackIsTheLastManifestThatWorked(t *testing.T) {
	swapped := func(image string) string {
		return swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: image, Version: "v1"})
	}
	s, _ := directoryFor(t)
	crashes, works := swapped("crashes:1"), swapped("works:1")
	upgraded := strings.Replace(swaptest.Stock, "v1.23.17", "v1.23.18", 1)
	// wrote returns the journal of a run that wrote, or was about to write, a manifest.
	wrote := func(before *Journal, content string) *Journal {
		j := &Journal{Operation: "install", Unproven: []string{manifest.Identity([]byte(content))}}
		if before != nil {
			j.Unproven = append(j.Unproven, before.Unproven...)
		}
		return j
	}
	restartedNow := func(content string) string { return swaptest.Restarted(t, content) }
	for _, step := range []struct {
		name, found    string
		unfinished     *Journal
		want, original string
	}{
		{"the first swap", swaptest.Stock, nil, swaptest.Stock, swaptest.Stock},
		{"it was killed after the rename", restartedNow(crashes), wrote(nil, crashes), swaptest.Stock, swaptest.Stock},
		{"so was the one after it, before the rename", restartedNow(crashes), wrote(wrote(nil, crashes), works), swaptest.Stock, swaptest.Stock},
		{"and the third one, after the rename", restartedNow(works), wrote(wrote(nil, crashes), works), swaptest.Stock, swaptest.Stock},
		{"that was finished; the next one", works, nil, works, swaptest.Stock},
		{"it was killed, and kubeadm wrote a newer manifest", upgraded, wrote(nil, crashes), upgraded, upgraded},
	} {
		good, err := s.SaveForUndo([]byte(step.found), swaptest.PodOf(t, step.found), step.unfinished, func() error { return nil })
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if string(good) != step.want || swaptest.Get(t, s.Undo()) != step.want {
			t.Errorf("%s: an undo would put back\n%s", step.name, good)
		}
		if got := swaptest.Get(t, s.Original()); got != step.original {
			t.Errorf("%s: the original is\n%s", step.name, got)
		}
	}
}

func TestAManifestThatNamesOurConfigurationWithoutItsVolumeIsNoOriginal(t *testing.T) {
	half := swaptest.StockWith("--config=" + manifest.ContainerConfigPath)
	s, _ := directoryFor(t)
	if _, err := s.SaveForUndo([]byte(half), swaptest.PodOf(t, half), nil, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Original()); err == nil {
		t.Error("a manifest whose scheduler cannot start is kept as kubeadm's own")
	}
}

func TestAManifestThatARollbackPutBackIsNobodysEdit(t *testing.T) {
	s, _ := directoryFor(t)
	swaptest.Put(t, s.Original(), swaptest.Stock)
	again := []byte(swaptest.Restarted(t, swaptest.Stock))
	if _, err := s.SaveEdits(again, false); err != nil {
		t.Fatal(err)
	}
	if got, _ := filepath.Glob(filepath.Join(s.Path, "edited-*")); len(got) != 0 {
		t.Errorf("kept %q", got)
	}
}
