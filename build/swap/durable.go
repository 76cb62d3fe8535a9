// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
)

// writeDurably replaces a file in one step: a reader, at any instant and after a power cut, finds the old content
// or the new one, whole. The new content is written beside the old under a name that begins with a dot, which kubelet
// ignores, and is on the disk before it is renamed.
func writeDurably(path string, content []byte, mode fs.FileMode) (err error) {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// What cannot be used must not stay: a full disk would stay full.
			os.Remove(temporary)
		}
	}()
	if err := errors.Join(write(file, content, mode), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func write(file *os.File, content []byte, mode fs.FileMode) error {
	// The mode given to OpenFile does not count for a file that an interrupted run left, nor against the umask.
	if err := file.Chmod(mode); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder brings the names in a folder to the disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// removeDurably removes a file; that it is not there is no error.
func removeDurably(path string) error {
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// refuseSpecial refuses what is there and no regular file: to read a pipe is to wait for its writer, for ever if there
// is none.
func refuseSpecial(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		// What cannot be looked at, or is not there, is for the one who opens it.
		return nil
	}
	return nextstep.With(fmt.Errorf("%s is not a regular file (%s)", path, info.Mode()),
		"ls -ld %s; write what it gives to a file, and name that", path)
}

// readRegular reads a regular file.
func readRegular(path string) ([]byte, error) {
	if err := refuseSpecial(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// readIfThere reads a file; nil if it is not there.
func readIfThere(path string) ([]byte, error) {
	content, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// keepFolder makes a folder that survives a power cut.
func keepFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nextstep.With(err, "make %s writable", filepath.Dir(path))
	}
	return syncFolder(filepath.Dir(path))
}
