// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// keepConfig writes a configuration for one user into a directory named after its content, and returns the directory.
func (s state) keepConfig(content []byte, user *syscall.Credential) (string, error) {
	folder := s.configFolder(sum(content))
	for _, path := range []string{s.configs(), folder} {
		if err := keepFolder(path); err != nil {
			return "", err
		}
	}
	err := writeDurably(filepath.Join(folder, ConfigFileName), content, 0o600)
	if err == nil {
		err = giveConfig(folder, user)
	}
	if err != nil {
		return "", s.noRoom("cannot keep the configuration", err)
	}
	return folder, nil
}

// giveConfig makes a configuration readable for one user only: it may contain secrets. nil is the user of this process,
// root. The user needs no access to the parent directories, since the container runtime mounts this one as root.
func giveConfig(folder string, user *syscall.Credential) error {
	if user == nil {
		user = &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	}
	for path, mode := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, ConfigFileName): 0o600} {
		err := os.Chmod(path, mode)
		if err == nil {
			err = os.Chown(path, int(user.Uid), int(user.Gid))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// closeConfigs makes all saved configurations readable for one user only. An older release made them readable for all.
func (s state) closeConfigs(user *syscall.Credential) error {
	folders, err := filepath.Glob(filepath.Join(s.configs(), "*"))
	if err != nil || len(folders) == 0 {
		return err
	}
	for _, folder := range folders {
		if err := giveConfig(folder, user); err != nil {
			return err
		}
	}
	return os.Chmod(s.configs(), 0o700)
}

// dropConfigs removes the configurations that are in none of the manifests, and saves an edited one first.
func (s state) dropConfigs(manifests ...[]byte) error {
	entries, err := os.ReadDir(s.configs())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, entry := range entries {
		folder := filepath.Join(s.configs(), entry.Name())
		used := false
		for _, manifest := range manifests {
			used = used || strings.Contains(string(manifest), folder)
		}
		if used {
			continue
		}
		if err := s.keepEditedConfig(folder); err != nil {
			return err
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// keepEditedConfig saves a configuration in the state directory if it
// differs from what was installed, so that manual edits are not lost.
func (s state) keepEditedConfig(folder string) error {
	content, err := readIfThere(filepath.Join(folder, ConfigFileName))
	if content == nil || err != nil || folder == s.configFolder(sum(content)) {
		return err
	}
	path := s.stamped("edited-config-" + filepath.Base(folder))
	if err := s.save(path, content, "cannot keep the configuration that was edited by hand"); err != nil {
		return err
	}
	s.say("the configuration in %s was edited since it was installed; kept as %s", folder, path)
	return nil
}
