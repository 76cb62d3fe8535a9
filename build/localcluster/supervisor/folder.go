// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folderPrefix starts the name of every run's folder; what removeLeftFolders looks for.
const folderPrefix = "kube-scheduler-run-"

// folder is the one directory that holds every file of a run: keys, data, logs.
//
// Its owner holds an flock on the directory itself, and every child inherits that lock. So a folder that can be
// locked by another process belongs to a run of which no process is left, whatever became of its process ids.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes a locked folder, mode 0700, in parent.
func newFolder(parent string) (*folder, error) {
	for {
		path, err := os.MkdirTemp(parent, folderPrefix)
		if err != nil {
			return nil, fmt.Errorf("cannot make the folder of this run: %w; "+
				"next: run again with TMPDIR set to a directory that you may write to", err)
		}
		lock, err := lockFolder(path, syscall.LOCK_EX)
		if err == nil {
			return &folder{path: path, lock: lock}, nil
		}
		// A run that started at the same moment took the folder for a left one before it was locked.
		if !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("cannot lock the folder of this run: %w; next: run again with TMPDIR "+
				"set to a directory on a local disk", err), os.RemoveAll(path))
		}
	}
}

// remove deletes the folder with everything in it, and only then lets go of the lock.
func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// lockFolder opens and locks a directory. It answers os.ErrNotExist when the path is not, or no longer, the directory
// that was locked.
func lockFolder(path string, how int) (*os.File, error) {
	// Never through a symbolic link: in a shared temporary directory another user could have put one there.
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

// flock waits for a lock; signals of the Go runtime interrupt the wait, so it is taken up again.
func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// removeLeftFolders removes from parent the folders of runs that crashed, and names them. Folders that are in use, or
// that belong to another user, are left alone. What could not be removed is in the error.
func removeLeftFolders(parent string) (removed []string, err error) {
	candidates, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
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
			failures = append(failures, fmt.Errorf("cannot look into %s: %w; next: rm -r %s", path, err, path))
			continue
		}
		if err := (&folder{path: path, lock: lock}).remove(); err != nil {
			failures = append(failures, fmt.Errorf("cannot remove the left folder of a crashed run: %w; next: rm -r %s", err, path))
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(failures...)
}

// ownerOf gives the user id that a file belongs to.
func ownerOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
