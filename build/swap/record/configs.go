// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kube-scheduler-fork/build/swap/manifest"
)

// SaveConfig writes a configuration for one user into a directory named after its content, and returns the directory.
func (d Directory) SaveConfig(content []byte, user *syscall.Credential) (string, error) {
	folder := d.ConfigFolder(manifest.Sum(content))
	for _, path := range []string{d.Configs(), folder} {
		if err := CreateDirectory(path); err != nil {
			return "", err
		}
	}
	err := WriteDurably(filepath.Join(folder, manifest.ConfigFileName), content, 0o600)
	if err == nil {
		err = ChownConfig(folder, user)
	}
	if err != nil {
		return "", d.NoRoom("cannot keep the configuration", err)
	}
	return folder, nil
}

// ChownConfig makes a configuration readable for one user only: it may contain secrets. nil is the user of this
// process, root. The user needs no access to the parent directories, since the container runtime mounts this one as
// root.
func ChownConfig(folder string, user *syscall.Credential) error {
	if user == nil {
		user = &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	}
	for path, mode := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, manifest.ConfigFileName): 0o600} {
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

// ChownConfigs makes all saved configurations readable for one user only. An older release made them readable for all.
func (d Directory) ChownConfigs(user *syscall.Credential) error {
	folders, err := filepath.Glob(filepath.Join(d.Configs(), "*"))
	if err != nil || len(folders) == 0 {
		return err
	}
	for _, folder := range folders {
		if err := ChownConfig(folder, user); err != nil {
			return err
		}
	}
	return os.Chmod(d.Configs(), 0o700)
}

// removeUnusedConfigs removes the configurations that are in none of the manifests, and saves an edited one first.
func (d Directory) removeUnusedConfigs(manifests ...[]byte) error {
	entries, err := os.ReadDir(d.Configs())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, entry := range entries {
		folder := filepath.Join(d.Configs(), entry.Name())
		if slices.ContainsFunc(manifests, func(m []byte) bool { return strings.Contains(string(m), folder) }) {
			continue
		}
		if err := d.SaveEditedConfig(folder); err != nil {
			return err
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// SaveEditedConfig saves a configuration in the state directory if it
// differs from what was installed, so that manual edits are not lost.
func (d Directory) SaveEditedConfig(folder string) error {
	content, err := ReadIfExists(filepath.Join(folder, manifest.ConfigFileName))
	if content == nil || err != nil || folder == d.ConfigFolder(manifest.Sum(content)) {
		return err
	}
	path := d.Stamped("edited-config-" + filepath.Base(folder))
	if err := d.save(path, content, "cannot keep the configuration that was edited by hand"); err != nil {
		return err
	}
	d.Say("the configuration in %s was edited since it was installed; kept as %s", folder, path)
	return nil
}
