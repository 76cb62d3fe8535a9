// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/nextstep"
)

// StateFolder is the default state directory. It must never be in kubelet's static pod directory.
const StateFolder = "/var/lib/kube-scheduler-swap"

// state is the directory for files that must outlive a run.
type state struct{ folder string }

// original returns the path of the manifest from before the first swap.
func (s state) original() string { return filepath.Join(s.folder, "original.yaml") }

// previous returns the path of the manifest from before the last successful install or the last rollback.
func (s state) previous() string { return filepath.Join(s.folder, "previous.yaml") }

// undo returns the path of the manifest from before the current change. A failed install restores it.
func (s state) undo() string { return filepath.Join(s.folder, "undo.yaml") }

// stamped returns the path of a manifest or configuration that a run saved, with the time of that run.
func (s state) stamped(kind string, at time.Time) string {
	return filepath.Join(s.folder, kind+"-"+at.UTC().Format("20060102T150405Z")+".yaml")
}

// manifests returns the contents of all saved manifests.
func (s state) manifests() ([][]byte, error) {
	files, err := filepath.Glob(filepath.Join(s.folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var contents [][]byte
	for _, file := range files {
		content, err := readIfThere(file)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

func (s state) configs() string { return filepath.Join(s.folder, "configs") }

// configFolder returns the directory of a configuration. Its name is derived from the content, so a manifest always
// finds the configuration that it was made for.
func (s state) configFolder(sum string) string { return filepath.Join(s.configs(), sum[:12]) }

func (s state) images() string { return filepath.Join(s.folder, "images") }

// imageFile returns the path of the saved image for a rollback, by the image's name.
func (s state) imageFile(name string) string {
	return filepath.Join(s.images(), sum([]byte(name))[:12]+".tar")
}

func (s state) journalFile() string   { return filepath.Join(s.folder, "journal.json") }
func (s state) installedFile() string { return filepath.Join(s.folder, "installed.json") }
func (s state) patchedFile() string   { return filepath.Join(s.folder, "patched.json") }

// journal records a change of the manifest in progress. It is written before the manifest, and removed once the
// scheduler has been seen working. So an existing journal means an unfinished run.
type journal struct {
	// Operation is install or rollback.
	Operation string    `json:"operation"`
	Started   time.Time `json:"started"`
	// Process is the ID of the process that makes the change.
	Process int `json:"process"`
	// Unproven are the identities of the manifests that unfinished
	// runs, including this one, have written. None was seen working.
	Unproven []string `json:"unproven,omitempty"`
}

// identity returns the sum of a manifest without its restart time, which changes with every write.
func identity(manifest []byte) string {
	edit, err := Restart(manifest, time.Unix(0, 0))
	if err != nil {
		return sum(manifest)
	}
	return sum(edit.Manifest)
}

// installed records the last successful install.
type installed struct {
	At time.Time `json:"at"`
	// Manifest is the SHA-256 sum of the file as written.
	Manifest string `json:"manifest"`
	Image    string `json:"image"`
	ImageID  string `json:"imageID"`
	Version  string `json:"version"`
	// Config is the SHA-256 sum of the configuration; empty without one.
	Config string `json:"config,omitempty"`
	// Mounts and Hardened are those of the swap.
	Mounts   string `json:"mounts,omitempty"`
	Hardened bool   `json:"hardened,omitempty"`
}

// patched records the directory of kubeadm's patch, which every install updates. The record outlives a rollback.
type patched struct {
	Folder string `json:"folder"`
	// Patch is the SHA-256 sum of the patch as written; empty in the record of an older release.
	Patch string `json:"patch,omitempty"`
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// readRecord reads a JSON file of the state directory into record, and reports whether the file exists.
func readRecord(path string, record any) (bool, error) {
	content, err := readIfThere(path)
	if content == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, record); err != nil {
		return false, nextstep.With(fmt.Errorf("%s is damaged: %w", path, err),
			"read it, and remove it if you do not need it")
	}
	return true, nil
}

func writeRecord(path string, record any) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return writeDurably(path, append(content, '\n'), 0o644)
}

// lock ensures that only one run at a time makes changes. The kernel releases the lock when the process ends.
func (s state) lock() (unlock func(), err error) {
	if err := keepFolder(s.folder); err != nil {
		return nil, err
	}
	path := filepath.Join(s.folder, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, nextstep.With(err, "make %s writable", s.folder)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		file.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nextstep.With(fmt.Errorf("cannot lock %s: %w", path, err),
				"put %s on a local disk", s.folder)
		}
		return nil, nextstep.With(
			fmt.Errorf("another run (process %s) is changing the scheduler", strings.TrimSpace(string(holder))),
			"wait until it ends, then kube-scheduler-swap status")
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid())+"\n")); err != nil && !errors.Is(err, unix.ENOSPC) {
		file.Close()
		return nil, nextstep.With(fmt.Errorf("cannot write %s: %w", path, err), "make room on its disk")
	}
	return func() { file.Close() }, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// keepConfig writes a configuration for one user into a directory named after its content, and returns the directory.
func (s state) keepConfig(content []byte, user *syscall.Credential) (string, error) {
	folder := s.configFolder(sum(content))
	if err := keepFolder(s.configs()); err != nil {
		return "", err
	}
	if err := keepFolder(folder); err != nil {
		return "", err
	}
	err := writeDurably(filepath.Join(folder, ConfigFileName), content, 0o600)
	if err == nil {
		err = giveConfig(folder, user)
	}
	if err != nil {
		return "", nextstep.With(fmt.Errorf("cannot keep the configuration: %w", err),
			"make room in %s", s.folder)
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

// dropConfigs removes the configurations that are in none of the manifests, and calls keep for each one first.
func (s state) dropConfigs(keep func(folder string) error, manifests ...[]byte) error {
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
		if err := keep(folder); err != nil {
			return err
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}
