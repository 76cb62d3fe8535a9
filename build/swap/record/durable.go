// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kube-scheduler-fork/build/nextstep"
)

// WriteDurably replaces a file atomically: at any time, also after a power cut, a reader finds either the old or the
// new content, complete. It writes the new content next to the file, under a name with a leading dot, which kubelet
// ignores, and syncs it before the rename.
func WriteDurably(path string, content []byte, mode fs.FileMode) (err error) {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// Remove the temporary file: on a full disk, it would keep the disk full.
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
	// OpenFile ignores the mode for a file that an interrupted run left, and applies the umask.
	if err := file.Chmod(mode); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder syncs a directory, so that new names in it survive a power cut.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// RemoveDurably removes a file. A missing file is not an error.
func RemoveDurably(path string) error {
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// RefuseSpecial returns an error for an existing file that is not
// regular: reading a pipe without a writer would block forever.
func RefuseSpecial(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		// The caller's open reports any other error.
		return nil
	}
	return nextstep.With(fmt.Errorf("%s is not a regular file (%s)", path, info.Mode()),
		"ls -ld %s; save its content as a file, and use that", path)
}

// ReadRegular reads a regular file.
func ReadRegular(path string) ([]byte, error) {
	if err := RefuseSpecial(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// ReadIfExists reads a file; nil if it does not exist.
func ReadIfExists(path string) ([]byte, error) {
	content, err := ReadRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// CreateDirectory creates a directory that survives a power cut.
func CreateDirectory(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nextstep.With(err, "make %s writable", filepath.Dir(path))
	}
	return syncFolder(filepath.Dir(path))
}

// Inside reports whether folder is other or is inside it.
func Inside(folder, other string) bool {
	relative, err := filepath.Rel(other, folder)
	return err == nil && filepath.IsLocal(relative)
}
