// SPDX-License-Identifier: Apache-2.0

// Package record keeps the files that must outlive a run: the journal of a change, the manifests, configurations and
// images that a rollback needs, and kubeadm's patch. Each is written so that a power cut leaves the old or the new one.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// StateDirectory is the default state directory. It must never be in kubelet's static pod directory.
const StateDirectory = "/var/lib/kube-scheduler-swap"

// Directory is the directory for files that must outlive a run, and what its records say about the current one.
type Directory struct {
	Path string
	// Watched is the directory that kubelet watches.
	Watched string
	// Started is the time of the current run, in the names of saved files.
	Started time.Time
	// Say prints a line of progress.
	Say func(format string, arguments ...any)
}

// Original returns the path of the manifest from before the first swap.
func (d Directory) Original() string { return filepath.Join(d.Path, "original.yaml") }

// Previous returns the path of the manifest from before the last successful install or the last rollback.
func (d Directory) Previous() string { return filepath.Join(d.Path, "previous.yaml") }

// Undo returns the path of the manifest from before the current change. A failed install restores it.
func (d Directory) Undo() string { return filepath.Join(d.Path, "undo.yaml") }

// Stamped returns the path of a manifest or configuration that this run saves, with the time of the run.
func (d Directory) Stamped(kind string) string {
	return filepath.Join(d.Path, kind+"-"+d.Started.UTC().Format("20060102T150405Z")+".yaml")
}

// save writes a file for a rollback or for a person. what is the beginning of the error.
func (d Directory) save(path string, content []byte, what string) error {
	if err := WriteDurably(path, content, 0o600); err != nil {
		return d.NoRoom(what, err)
	}
	return nil
}

// NoRoom adds to an error what failed, and the next step.
func (d Directory) NoRoom(what string, err error) error {
	return nextstep.With(fmt.Errorf("%s: %w", what, err), "make room in %s", d.Path)
}

// SavedManifests returns the contents of all saved manifests.
func (d Directory) SavedManifests() ([][]byte, error) {
	files, err := filepath.Glob(filepath.Join(d.Path, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var contents [][]byte
	for _, file := range files {
		content, err := ReadIfExists(file)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// Configs returns the path of the saved configurations.
func (d Directory) Configs() string { return filepath.Join(d.Path, "configs") }

// ConfigFolder returns the directory of a configuration. Its name is derived from the content, so a manifest always
// finds the configuration that it was made for.
func (d Directory) ConfigFolder(sum string) string { return filepath.Join(d.Configs(), sum[:12]) }

func (d Directory) images() string { return filepath.Join(d.Path, "images") }

// ImageFile returns the path of the saved image for a rollback, by the image's name.
func (d Directory) ImageFile(name string) string {
	return filepath.Join(d.images(), manifest.Sum([]byte(name))[:12]+".tar")
}

func (d Directory) journalFile() string { return filepath.Join(d.Path, "journal.json") }

// InstalledFile returns the path of the record of the last install.
func (d Directory) InstalledFile() string { return filepath.Join(d.Path, "installed.json") }

func (d Directory) patchedFile() string { return filepath.Join(d.Path, "patched.json") }

// Lock ensures that only one run at a time makes changes. The kernel releases the lock when the process ends.
func (d Directory) Lock() (unlock func(), err error) {
	if err := CreateDirectory(d.Path); err != nil {
		return nil, err
	}
	path := filepath.Join(d.Path, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, nextstep.With(err, "make %s writable", d.Path)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		file.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nextstep.With(fmt.Errorf("cannot lock %s: %w", path, err),
				"put %s on a local disk", d.Path)
		}
		return nil, nextstep.With(
			fmt.Errorf("another run (process %s) is changing the scheduler", strings.TrimSpace(string(holder))),
			"wait until it ends, then kube-scheduler-swap status")
	}
	err = file.Truncate(0)
	if _, failed := fmt.Fprintln(file, os.Getpid()); err == nil {
		err = failed
	}
	if err != nil && !errors.Is(err, unix.ENOSPC) {
		file.Close()
		return nil, nextstep.With(fmt.Errorf("cannot write %s: %w", path, err), "make room on its disk")
	}
	return func() { file.Close() }, nil
}
