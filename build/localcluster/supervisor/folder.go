// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folderPrefix starts the name of every run's directory.
const folderPrefix = "kube-scheduler-run-"

// folder is the directory with all files of a run: keys, data, logs.
//
// The run holds an flock on the directory, which every child inherits. So if another process can lock it, no process of
// that run is left.
type folder struct {
	path string
	lock *os.File
}

// newFolder creates and locks a directory, mode 0700, in parent.
func newFolder(parent string) (*folder, error) {
	for {
		path, err := os.MkdirTemp(parent, folderPrefix)
		if err != nil {
			return nil, fmt.Errorf("cannot create the directory of this run: %w; "+
				"next: run again with TMPDIR set to a writable directory", err)
		}
		lock, err := lockFolder(path, syscall.LOCK_EX)
		if err == nil {
			return &folder{path: path, lock: lock}, nil
		}
		// Another run may have removed the directory before it was locked.
		if !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("cannot lock the directory of this run: %w; next: run again with TMPDIR "+
				"set to a directory on a local disk", err), os.RemoveAll(path))
		}
	}
}

// remove deletes the directory and then releases the lock.
func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// lockFolder opens and locks a directory. The error is os.ErrNotExist if the path is no longer the locked directory.
func lockFolder(path string, how int) (*os.File, error) {
	// Another user could have created a symbolic link in a shared temporary directory.
	lock, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := flock(lock, how); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	locked, err := lock.Stat()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	there, err := os.Lstat(path)
	if err == nil && !os.SameFile(locked, there) {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// flock waits for a lock, and retries when signals of the Go runtime interrupt it.
func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// removeLeftFolders removes the directories of crashed runs from parent, and returns their paths. It skips those in use
// and those of other users. The error names those that could not be removed.
func removeLeftFolders(parent string) (removed []string, err error) {
	candidates, err := filepath.Glob(filepath.Join(parent, folderPrefix+"[0-9]*"))
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, path := range candidates {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || ownerOf(info) != os.Getuid() {
			continue
		}
		lock, err := lockFolder(path, syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			failures = append(failures, fmt.Errorf("cannot read the directory %s: %w; next: rm -r %s", path, err, path))
			continue
		}
		if err := (&folder{path: path, lock: lock}).remove(); err != nil {
			failures = append(failures, fmt.Errorf("cannot remove the directory of a crashed run: %w; next: rm -r %s", err, path))
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(failures...)
}

// ownerOf returns the user id of a file's owner.
func ownerOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
