// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// hierarchies gives the folders at which cgroup hierarchies are mounted: one with cgroup v2, one for each controller
// with v1.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("the cgroups cannot be found: %w; next: mount | grep cgroup", err)
	}
	var folders []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			folders = append(folders, fields[1])
		}
	}
	if len(folders) == 0 {
		return nil, errors.New("no cgroups are mounted, and kubelet needs them; next: run it where /sys/fs/cgroup is mounted")
	}
	return folders, nil
}

// makeCgroup makes a cgroup, PARENT/CHILD, in every hierarchy, ready to take processes.
func makeCgroup(path string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		for depth, name := range strings.Split(path, "/") {
			if err := delegate(folder); err != nil {
				return err
			}
			parent := folder
			folder = filepath.Join(folder, name)
			if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("a cgroup cannot be made: %w; next: %s, where cgroups may be written to", err, nextScript)
			}
			if err := inheritProcessors(parent, folder); err != nil {
				return err
			}
			if depth > 0 {
				continue
			}
			if err := prefer(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// prefer gives a cgroup nearly all of the processors when it wants them. kubelet, kubeadm and the swap have time limits
// of their own, and a machine that compiles at the same time must not make them pass.
func prefer(folder string) error {
	for name, weight := range map[string]string{"cpu.shares": "65536", "cpu.weight": "6400"} {
		file := filepath.Join(folder, name)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.WriteFile(file, []byte(weight), 0o644); err != nil {
			return fmt.Errorf("a cgroup gets no preference: %w; next: cat %s", err, file)
		}
	}
	return nil
}

// delegate gives a cgroup's children every controller that it has itself. With cgroup v1 they have them anyway.
// Not tried: the machine where this was written has v1 only.
func delegate(folder string) error {
	controllers, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(controllers)) {
		if err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("the controller %s is not to be had in new cgroups: %w; "+
				"next: run it on the machine itself, not in a container", controller, err)
		}
	}
	return nil
}

// inheritProcessors fills in what a new cgroup of the v1 cpuset controller lacks, and without which it takes no
// process.
func inheritProcessors(parent, child string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		if _, err := os.Stat(filepath.Join(child, "cgroup.clone_children")); err != nil {
			return nil // cgroup v2, where empty means: the parent's
		}
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(child, name), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("a cgroup gets no processors: %w; next: cat %s", err, filepath.Join(parent, name))
		}
	}
	return nil
}

// removeCgroup removes a cgroup and all below it, from every hierarchy. Its processes were killed; until the last of
// them is gone the kernel refuses.
func removeCgroup(path string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err = nil
		for _, folder := range folders {
			err = errors.Join(err, removeFolders(filepath.Join(folder, path)))
		}
		if err == nil || !errors.Is(err, syscall.EBUSY) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a cgroup is still in use: %w; next: cat /sys/fs/cgroup/*/%s/cgroup.procs", err, path)
		}
	}
}

// removeFolders removes a cgroup of one hierarchy, the innermost first: its files are not to be removed, its folders
// are.
func removeFolders(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeFolders(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
