// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// View is a pod container's file system: the files of the image, and the pod's mounts.
type View struct {
	// root is the directory with the image's files.
	root string
	// binds are the mounts of files and directories of this host, outer ones first.
	binds []bind
	// User is the container's user; nil: root.
	User *syscall.Credential
}

// bind is a file or directory of this host, and its path in the container.
type bind struct{ source, target string }

// NewView creates the view of a pod. root is a directory with the image's files. instead maps a host directory that is
// not installed yet to the directory to mount in its place. An error says what kubelet would wait for, or what the
// container runtime would reject.
func NewView(root string, pod *manifest.Pod, instead map[string]string) (*View, error) {
	v := &View{root: root, User: pod.User()}
	inside, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	mounts := slices.Clone(pod.Container().VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(len(a.MountPath), len(b.MountPath)) })
	for _, mount := range mounts {
		volume := pod.Volume(mount.Name)
		if volume == nil {
			return nil, nextstep.With(fmt.Errorf("the manifest mounts the volume %s, but does not define it", mount.Name),
				"correct the manifest")
		}
		source := ""
		if host := volume.HostPath; host != nil {
			if staged, there := instead[host.Path]; there {
				source = path.Join(staged, mount.SubPath)
			} else if source, err = hostFile(host, mount.SubPath); err != nil {
				return nil, err
			}
		}
		if err := v.add(inside, source, path.Clean(mount.MountPath)); err != nil {
			return nil, err
		}
	}
	if pod.Object.Spec.HostNetwork {
		// kubelet gives such a pod this host's DNS and hosts files.
		for _, file := range []string{"/etc/resolv.conf", "/etc/hosts"} {
			if _, err := os.Stat(file); err == nil && !v.covers(file) {
				if err := v.add(inside, file, file); err != nil {
					return nil, err
				}
			}
		}
	}
	return v, nil
}

// hostFile returns the host path of a mount; empty if it is created when the pod starts.
func hostFile(host *corev1.HostPathVolumeSource, subPath string) (string, error) {
	info, err := os.Stat(host.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nextstep.With(fmt.Errorf("the manifest mounts a path that cannot be read: %w", err), "ls -ld %s", host.Path)
	}
	kind := corev1.HostPathUnset
	if host.Type != nil {
		kind = *host.Type
	}
	var mode fs.FileMode
	if err == nil {
		mode = info.Mode()
	}
	fits := true
	switch there := err == nil; kind {
	case corev1.HostPathDirectory:
		fits = mode.IsDir()
	case corev1.HostPathFile:
		fits = there && mode.IsRegular()
	case corev1.HostPathSocket:
		fits = mode&fs.ModeSocket != 0
	case corev1.HostPathCharDev:
		fits = mode&fs.ModeCharDevice != 0
	case corev1.HostPathBlockDev:
		fits = mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	case corev1.HostPathDirectoryOrCreate:
		fits = !there || mode.IsDir()
	case corev1.HostPathFileOrCreate:
		fits = !there || mode.IsRegular()
	}
	if !fits {
		return "", nextstep.With(
			fmt.Errorf("the manifest mounts %s as a %s, but it does not exist or is of another type: kubelet would not start the pod", host.Path, kind),
			"create it, or remove the volume from the manifest")
	}
	if err != nil {
		return "", nil
	}
	return path.Join(host.Path, subPath), nil
}

// add mounts a file or directory of this host at target; without a source, an empty directory.
func (v *View) add(inside *os.Root, source, target string) error {
	if outer := v.outer(target); outer != nil {
		// The container runtime would create the mount point in the outer directory, which is on this host.
		rest := strings.TrimPrefix(target, outer.target)
		if _, err := os.Stat(outer.source + rest); err != nil {
			return nextstep.With(
				fmt.Errorf("the manifest mounts %s inside %s, but the mount point %s does not exist", target, outer.target, outer.source+rest),
				"mkdir %s", outer.source+rest)
		}
	} else if err := createMountPoint(inside, source, strings.TrimPrefix(target, "/")); err != nil {
		return fmt.Errorf("the image has no mount point for %s, where the manifest mounts a volume: %w", target, err)
	}
	if source != "" {
		v.binds = append(v.binds, bind{source, target})
	}
	return nil
}

// createMountPoint creates the mount point: a file for a file, a directory for everything else.
func createMountPoint(inside *os.Root, source, name string) error {
	if info, err := os.Stat(source); source != "" && err == nil && !info.IsDir() {
		if err := inside.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		file, err := inside.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return inside.MkdirAll(name, 0o755)
}

// outer returns the innermost mount that contains a path; nil: the path is in the image.
func (v *View) outer(target string) *bind {
	for i := len(v.binds) - 1; i >= 0; i-- {
		if strings.HasPrefix(target, strings.TrimSuffix(v.binds[i].target, "/")+"/") {
			return &v.binds[i]
		}
	}
	return nil
}

// covers reports whether anything is mounted at a path or above it.
func (v *View) covers(target string) bool {
	return v.outer(target) != nil || slices.ContainsFunc(v.binds, func(b bind) bool { return b.target == target })
}

// Run runs a command of the image in the view. Its mounts are not visible to other processes.
func (v *View) Run(command *exec.Cmd) error {
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: v.root, Credential: v.User, Pdeathsig: syscall.SIGKILL}
	return onOwnThread(func() error {
		if err := v.mount(); err != nil {
			return nextstep.With(err, "run this as root on the node itself, not in a container")
		}
		return command.Run()
	})
}

// onOwnThread calls a function on a thread of its own. The thread stays locked, so it ends with the function, and no
// other goroutine gets its mounts, its root and its rights.
func onOwnThread(do func() error) error {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread()
		done <- do()
	}()
	return <-done
}

// mount makes the mounts of the view, for this thread alone.
func (v *View) mount() error {
	const failed = "cannot recreate the mounts of the scheduler's pod: "
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf(failed+"unshare: %w", err)
	}
	// Keep the following mounts invisible to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf(failed+"making mounts private: %w", err)
	}
	for _, b := range v.binds {
		if err := unix.Mount(b.source, filepath.Join(v.root, b.target), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf(failed+"%s at %s: %w", b.source, b.target, err)
		}
	}
	return nil
}
