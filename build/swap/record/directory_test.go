// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kube-scheduler-fork/build/swap/manifest"
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

// directoryFor returns an empty state directory, and what it says.
func directoryFor(t *testing.T) (Directory, *strings.Builder) {
	t.Helper()
	said := &strings.Builder{}
	return Directory{Path: t.TempDir(), Started: time.Now(), Say: func(format string, arguments ...any) { fmt.Fprintf(said, format+"\n", arguments...) }}, said
}

func TestADamagedRecordIsNotTakenForNone(t *testing.T) {
	file := swaptest.Put(t, filepath.Join(t.TempDir(), "journal.json"), `{"operation": "inst`)
	if there, err := ReadJSON(file, &Journal{}); there || err == nil {
		t.Errorf("there %v, error %v", there, err)
	}
	if there, err := ReadJSON(file+".not", &Journal{}); there || err != nil {
		t.Errorf("no record: there %v, error %v", there, err)
	}
}

func TestAManifestOfAnUnfinishedRunIsInDoubtUntilItWasSeen(t *testing.T) {
	s, _ := directoryFor(t)
	unfinished := &Journal{Unproven: []string{manifest.Identity([]byte(swaptest.Stock))}}
	again := []byte(swaptest.Restarted(t, swaptest.Stock))
	other := []byte(strings.Replace(swaptest.Stock, "v1.23.17", "v1.23.18", 1))
	expect := func(when string, unfinished *Journal, manifest []byte, want bool) {
		t.Helper()
		if got, err := s.IsUnproven(unfinished, manifest); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	expect("no run is unfinished", nil, again, false)
	expect("the run wrote it", unfinished, again, true)
	expect("another program wrote another one", unfinished, other, false)
	if err := WriteJSON(s.InstalledFile(), Installed{Manifest: manifest.Sum(again)}); err != nil {
		t.Fatal(err)
	}
	expect("the run saw it work, and was ended as it cleared up", unfinished, again, false)
}

func TestConfigurationsThatNoManifestNamesAreRemoved(t *testing.T) {
	s := Directory{Path: t.TempDir()}
	var folders []string
	for _, content := range []string{"one", "two", "three"} {
		folder, err := s.SaveConfig([]byte(content), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := s.ConfigFolder(manifest.Sum([]byte(content))); folder != want {
			t.Errorf("kept in %s, want %s", folder, want)
		}
		folders = append(folders, folder)
	}
	if err := s.removeUnusedConfigs([]byte("path: "+folders[0]+"\n"), nil, []byte("path: "+folders[2]+"\n")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if _, err := os.Stat(folders[i]); (err == nil) != want {
			t.Errorf("configuration %d: %v, want it there: %v", i, err, want)
		}
	}
	if got := swaptest.Get(t, filepath.Join(folders[2], manifest.ConfigFileName)); got != "three" {
		t.Errorf("content %q", got)
	}
}

func TestAConfigurationIsReadableForItsSchedulerAlone(t *testing.T) {
	s := Directory{Path: t.TempDir()}
	old := filepath.Join(s.Configs(), "0123456789ab", manifest.ConfigFileName)
	swaptest.Put(t, old, "token: of an older release\n")
	user := &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	if os.Geteuid() == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65533}
	}
	folder, err := s.SaveConfig([]byte("token: secret\n"), user)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(path string, mode os.FileMode, user *syscall.Credential) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if info.Mode().Perm() != mode || owner.Uid != user.Uid || owner.Gid != user.Gid {
			t.Errorf("%s is %v of %d:%d, want %v of %d:%d", path, info.Mode().Perm(), owner.Uid, owner.Gid, mode, user.Uid, user.Gid)
		}
	}
	expect(folder, 0o700, user)
	expect(filepath.Join(folder, manifest.ConfigFileName), 0o600, user)
	if err := s.ChownConfigs(user); err != nil {
		t.Fatal(err)
	}
	self := &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	expect(s.Configs(), 0o700, self)
	expect(old, 0o600, user)
	expect(filepath.Dir(old), 0o700, user)
	// The pod runs as root again.
	if err := ChownConfig(folder, nil); err != nil {
		t.Fatal(err)
	}
	expect(folder, 0o700, self)
	expect(filepath.Join(folder, manifest.ConfigFileName), 0o600, self)
}
