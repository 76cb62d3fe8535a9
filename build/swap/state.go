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

// StateFolder is where the way back lies: never in the folder that kubelet watches.
const StateFolder = "/var/lib/kube-scheduler-swap"

// state is the folder with what must outlive a run.
type state struct{ folder string }

// original is the manifest as it was before the first swap.
func (s state) original() string { return filepath.Join(s.folder, "original.yaml") }

// previous is the manifest from before the last install that worked, or the last rollback.
func (s state) previous() string { return filepath.Join(s.folder, "previous.yaml") }

// undo is the manifest from before a running change: what an install puts back if the new one does not work.
func (s state) undo() string { return filepath.Join(s.folder, "undo.yaml") }

// stamped is a manifest of a person's own, by the time of the run that kept it.
func (s state) stamped(kind string, at time.Time) string {
	return filepath.Join(s.folder, kind+"-"+at.UTC().Format("20060102T150405Z")+".yaml")
}

// manifests are the contents of all that are kept.
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

// configFolder is where a configuration lies: its name tells its content, so a manifest that names it always finds the
// configuration that it was made for.
func (s state) configFolder(sum string) string { return filepath.Join(s.configs(), sum[:12]) }

func (s state) images() string { return filepath.Join(s.folder, "images") }

// imageFile is where an image lies to which one can go back, by its name.
func (s state) imageFile(name string) string {
	return filepath.Join(s.images(), sum([]byte(name))[:12]+".tar")
}

func (s state) journalFile() string   { return filepath.Join(s.folder, "journal.json") }
func (s state) installedFile() string { return filepath.Join(s.folder, "installed.json") }
func (s state) patchedFile() string   { return filepath.Join(s.folder, "patched.json") }

// journal says that a change of the manifest is under way. It is written before the manifest is touched, and removed
// when the scheduler was seen to work, so one that is there tells of a run that did not finish.
type journal struct {
	// Operation is install or rollback.
	Operation string    `json:"operation"`
	Started   time.Time `json:"started"`
	// Process is the id of the process at work.
	Process int `json:"process"`
	// Unproven are the identities of the manifests that unfinished runs have written, this one's too: they were never
	// seen to work.
	Unproven []string `json:"unproven,omitempty"`
}

// identity is the sum of a manifest without the time of the restart, which changes whenever it is put into place.
func identity(manifest []byte) string {
	edit, err := Restart(manifest, time.Unix(0, 0))
	if err != nil {
		return sum(manifest)
	}
	return sum(edit.Manifest)
}

// installed says what the last successful install wrote.
type installed struct {
	At time.Time `json:"at"`
	// Manifest is the SHA-256 sum of the file as it was written.
	Manifest string `json:"manifest"`
	Image    string `json:"image"`
	ImageID  string `json:"imageID"`
	Version  string `json:"version"`
	// Config is the SHA-256 sum of the configuration; empty without one.
	Config string `json:"config,omitempty"`
}

// patched says where kubeadm's patch lies, which every install brings up to date. It outlives a rollback.
type patched struct {
	Folder string `json:"folder"`
	// Patch is the SHA-256 sum of the patch as it was written; empty in the record of an older release.
	Patch string `json:"patch,omitempty"`
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// readRecord reads a JSON file of the state folder into record, and tells whether it is there.
func readRecord(path string, record any) (bool, error) {
	content, err := readIfThere(path)
	if content == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, record); err != nil {
		return false, nextstep.With(fmt.Errorf("%s is damaged: %w", path, err),
			"look at it, and remove it if it says nothing to you")
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

// lock lets one run at a time change things. It ends with the process, however that ends.
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

// keepConfig puts a configuration into a folder named after its content, for a user to read, and gives the folder.
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

// giveConfig lets one user read the configuration in a folder, and no other: it may hold secrets. nil is the user of
// this process, root. The folders above need not let that user pass: the container runtime mounts this one as root.
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

// closeConfigs lets one user read all configurations that are kept, and no other. An older release let every user.
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

// dropConfigs removes the configurations that none of the manifests names. keep sees each of them first.
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
