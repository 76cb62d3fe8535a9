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

// hierarchies returns the mount points of the cgroup hierarchies: one with cgroup v2, one for each controller with v1.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("cannot find the cgroups: %w; next: mount | grep cgroup", err)
	}
	var folders []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			folders = append(folders, fields[1])
		}
	}
	if len(folders) == 0 {
		return nil, errors.New("no cgroups are mounted, but kubelet needs them; next: run the test where /sys/fs/cgroup is mounted")
	}
	return folders, nil
}

// makeCgroup creates a cgroup, PARENT/CHILD, in every hierarchy, ready for processes.
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
				return fmt.Errorf("cannot create a cgroup: %w; next: run %s where cgroups are writable", err, nextScript)
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

// prefer gives a cgroup nearly all CPU time that it requests, so that kubelet, kubeadm and the swap do not exceed their
// timeouts because of other work on the machine, such as compiling.
func prefer(folder string) error {
	for name, weight := range map[string]string{"cpu.shares": "65536", "cpu.weight": "6400"} {
		file := filepath.Join(folder, name)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.WriteFile(file, []byte(weight), 0o644); err != nil {
			return fmt.Errorf("cannot set the CPU weight of a cgroup: %w; next: cat %s", err, file)
		}
	}
	return nil
}

// delegate enables all controllers of a cgroup for its children. With cgroup v1 they are always enabled. The part for
// v2 is untested.
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
			return fmt.Errorf("the controller %s is not available in new cgroups: %w; "+
				"next: run the test on the machine itself, not in a container", controller, err)
		}
	}
	return nil
}

// inheritProcessors copies the CPUs and memory nodes of the parent to a new
// cgroup of the v1 cpuset controller, which cannot have processes without them.
func inheritProcessors(parent, child string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		if _, err := os.Stat(filepath.Join(child, "cgroup.clone_children")); err != nil {
			return nil // with cgroup v2, an empty value means that of the parent
		}
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(child, name), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("cannot set the CPUs of a cgroup: %w; next: cat %s", err, filepath.Join(parent, name))
		}
	}
	return nil
}

// removeCgroup removes a cgroup and its descendants from every hierarchy. Its processes must have been killed. It waits
// until the last of them has ended, because the kernel refuses earlier.
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

// removeFolders removes the directories of a cgroup in one hierarchy,
// the innermost first; their files cannot be removed.
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
