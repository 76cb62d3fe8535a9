// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/nextstep"
)

// StateFolder is the default state directory. It must never be in kubelet's static pod directory.
const StateFolder = "/var/lib/kube-scheduler-swap"

// state is the directory for files that must outlive a run, and what its records say about the current one.
type state struct {
	folder string
	// manifests is the directory that kubelet watches.
	manifests string
	// started is the time of the current run, in the names of saved files.
	started time.Time
	// say prints a line of progress.
	say func(format string, arguments ...any)
}

// original returns the path of the manifest from before the first swap.
func (s state) original() string { return filepath.Join(s.folder, "original.yaml") }

// previous returns the path of the manifest from before the last successful install or the last rollback.
func (s state) previous() string { return filepath.Join(s.folder, "previous.yaml") }

// undo returns the path of the manifest from before the current change. A failed install restores it.
func (s state) undo() string { return filepath.Join(s.folder, "undo.yaml") }

// stamped returns the path of a manifest or configuration that this run saves, with the time of the run.
func (s state) stamped(kind string) string {
	return filepath.Join(s.folder, kind+"-"+s.started.UTC().Format("20060102T150405Z")+".yaml")
}

// save writes a file for a rollback or for a person. what is the beginning of the error.
func (s state) save(path string, content []byte, what string) error {
	if err := writeDurably(path, content, 0o600); err != nil {
		return s.noRoom(what, err)
	}
	return nil
}

// noRoom adds to an error what failed, and the next step.
func (s state) noRoom(what string, err error) error {
	return nextstep.With(fmt.Errorf("%s: %w", what, err), "make room in %s", s.folder)
}

// manifests returns the contents of all saved manifests.
func (s state) savedManifests() ([][]byte, error) {
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
