// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	kubernetesyaml "sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// FilesOf returns the paths in the container of the files and directories of this host that the command line or the
// configuration of a scheduler names, and those that kubeconfigs among them name. The copy of the configuration is not
// included: install makes it readable.
func FilesOf(pod *manifest.Pod, config []byte) []string {
	var files []string
	add := func(name string) {
		name = path.Clean(name)
		if _, mounted := pod.HostPath(name); path.IsAbs(name) && mounted && !record.Inside(name, manifest.ContainerConfigFolder) && !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	for _, argument := range pod.Line.Arguments() {
		for _, part := range strings.FieldsFunc(argument, func(r rune) bool { return strings.ContainsRune("=,:", r) }) {
			add(part)
		}
	}
	var content any
	if kubernetesyaml.Unmarshal(config, &content) == nil { // otherwise the scheduler rejects it
		eachText(content, add)
	}
	for i := 0; i < len(files); i++ {
		host, _ := pod.HostPath(files[i])
		for _, name := range filesOfKubeconfig(host) {
			if !path.IsAbs(name) {
				name = path.Join(path.Dir(files[i]), name)
			}
			add(name)
		}
	}
	return files
}

// eachText calls a function for every string in a decoded document.
func eachText(node any, do func(string)) {
	switch node := node.(type) {
	case string:
		do(node)
	case []any:
		for _, item := range node {
			eachText(item, do)
		}
	case map[string]any:
		for _, item := range node {
			eachText(item, do)
		}
	}
}

// filesOfKubeconfig returns the files that a kubeconfig names; none for any other file.
func filesOfKubeconfig(file string) (names []string) {
	content, err := record.ReadRegular(file)
	if err != nil {
		return nil
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil
	}
	for _, cluster := range config.Clusters {
		for _, name := range clientcmd.GetClusterFileReferences(cluster) {
			names = append(names, *name)
		}
	}
	for _, user := range config.AuthInfos {
		for _, name := range clientcmd.GetAuthInfoFileReferences(user) {
			names = append(names, *name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Unreadable returns the files that a user without capabilities cannot read in the view; of a directory, its entries.
func (v *View) Unreadable(user syscall.Credential, files []string) (closed []string, err error) {
	err = onOwnThread(func() error {
		if err := v.mount(); err != nil {
			return err
		}
		if err := errors.Join(unix.Chroot(v.root), become(user)); err != nil {
			return fmt.Errorf("cannot become the scheduler's user: %w", err)
		}
		for _, file := range files {
			closed = append(closed, unreadableIn(file)...)
		}
		return nil
	})
	return closed, err
}

// become gives this thread the rights of a user without capabilities and further groups.
func become(user syscall.Credential) error {
	// The functions of package syscall change all threads.
	if _, _, failed := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); failed != 0 {
		return failed
	}
	header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	return errors.Join(unix.Setfsgid(int(user.Gid)), unix.Setfsuid(int(user.Uid)), unix.Capset(&header, &none[0]))
}

// unreadableIn returns the file, or the entries of a directory, that this thread is not permitted to open, and the
// directories on the way that it may not search.
func unreadableIn(file string) []string {
	opened, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // of a pipe, it does not wait for the other end
	if errors.Is(err, fs.ErrPermission) {
		closed := []string{file}
		for folder := path.Dir(file); folder != "/"; folder = path.Dir(folder) {
			if _, err := os.Stat(folder + "/."); errors.Is(err, fs.ErrPermission) {
				closed = append(closed, folder)
			}
		}
		return closed
	} else if err != nil {
		return nil // the scheduler's own check reports it
	}
	defer opened.Close()
	entries, _ := opened.ReadDir(-1) // none in a file
	var closed []string
	for _, entry := range entries {
		if !entry.IsDir() {
			closed = append(closed, unreadableIn(path.Join(file, entry.Name()))...)
		}
	}
	return closed
}
