// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

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
