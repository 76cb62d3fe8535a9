// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	kubernetesyaml "sigs.k8s.io/yaml"
)

// NonRootUser is the user and the group of a hardened scheduler that does not run as root. Nothing else uses the number:
// systemd assigns none above 65519, and images often have 65532.
const NonRootUser = 65530

// securityContext returns the fields of the container's securityContext that Hardened and NonRoot set.
func (s Swap) securityContext() []entry {
	typed := func(tag, value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value} }
	fields := []entry{
		{"allowPrivilegeEscalation", typed(yaml.NodeTagBool, "false")},
		{"capabilities", mapping(entry{"drop", sequence(scalar("ALL"))})},
		{"readOnlyRootFilesystem", typed(yaml.NodeTagBool, "true")},
	}
	if s.NonRoot {
		user := strconv.Itoa(NonRootUser)
		fields = append(fields, entry{"runAsGroup", typed(yaml.NodeTagInt, user)},
			entry{"runAsNonRoot", typed(yaml.NodeTagBool, "true")}, entry{"runAsUser", typed(yaml.NodeTagInt, user)})
	}
	return fields
}

// describeSecurity sets Hardened and NonRoot of the swap.
func (p *Pod) describeSecurity() {
	c := p.Container().SecurityContext
	if c == nil {
		return
	}
	is := func(field *bool, want bool) bool { return field != nil && *field == want }
	p.Swap.Hardened = is(c.AllowPrivilegeEscalation, false) && is(c.ReadOnlyRootFilesystem, true) &&
		c.Capabilities != nil && len(c.Capabilities.Add) == 0 && slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"})
	p.Swap.NonRoot = is(c.RunAsNonRoot, true) && value(c.RunAsUser, 0) == NonRootUser && value(c.RunAsGroup, 0) == NonRootUser
}

// withoutSecurity removes the fields that securityContext sets.
func withoutSecurity(container *corev1.Container) {
	c := container.SecurityContext
	if c == nil {
		return
	}
	c.AllowPrivilegeEscalation, c.Capabilities, c.ReadOnlyRootFilesystem = nil, nil, nil
	c.RunAsGroup, c.RunAsNonRoot, c.RunAsUser = nil, nil, nil
	if *c == (corev1.SecurityContext{}) {
		container.SecurityContext = nil
	}
}

// planUser makes a hardened scheduler run as NonRootUser if that user can read all its files, and lists the files that
// the scheduler's user cannot read: without capabilities, even root cannot read every file.
func (p *plan) planUser(request Request, v *view, config []byte) (err error) {
	if !p.swap.Hardened {
		return nil
	}
	files := filesOf(p.afterPod, config)
	if v.user == nil && request.Hardened {
		nonRoot := syscall.Credential{Uid: NonRootUser, Gid: NonRootUser}
		if p.rootOnly, err = v.unreadable(nonRoot, files); err != nil {
			return err
		}
		if len(p.rootOnly) == 0 {
			p.swap.NonRoot, v.user = true, &nonRoot
			return p.apply()
		}
	}
	user := syscall.Credential{}
	if v.user != nil {
		user = *v.user
	}
	p.unreadable, err = v.unreadable(user, files)
	return err
}

// checkHardened reports the files because of which a hardened scheduler runs as root, or could not start.
func checkHardened(findings *Findings, p *plan) {
	report := func(files []string, add func(next, format string, arguments ...any), group uint32, format string, arguments ...any) {
		var hosts []string
		for _, file := range files {
			host, _ := p.afterPod.HostPath(file)
			hosts = append(hosts, host)
		}
		if names := strings.Join(hosts, " "); names != "" {
			add(fmt.Sprintf("chgrp %d %s && chmod g+rX %s, if you want that, then run this again; this tool does not change the modes of files",
				group, names, names), format, append(arguments, names)...)
		}
	}
	report(p.rootOnly, findings.warn, NonRootUser, "the scheduler keeps running as root, because the user %d cannot read %s", NonRootUser)
	var user syscall.Credential
	if other := userOf(p.afterPod); other != nil {
		user = *other
	}
	report(p.unreadable, findings.problem, user.Gid, "the new scheduler has no capabilities, so its user %d could not read %s", user.Uid)
}

// filesOf returns the paths in the container of the files and directories of this host that the command line or the
// configuration of a scheduler names, and those that kubeconfigs among them name. The copy of the configuration is not
// included: install makes it readable.
func filesOf(pod *Pod, config []byte) []string {
	var files []string
	add := func(name string) {
		name = path.Clean(name)
		if _, mounted := pod.HostPath(name); path.IsAbs(name) && mounted && !inside(name, ContainerConfigFolder) && !slices.Contains(files, name) {
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
	content, err := readRegular(file)
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

// unreadable returns the files that a user without capabilities cannot read in the view; of a directory, its entries.
func (v *view) unreadable(user syscall.Credential, files []string) (closed []string, err error) {
	done := make(chan error)
	go func() {
		// The thread stays locked, so it ends with this function, and no other goroutine gets its root and its rights.
		goruntime.LockOSThread()
		done <- func() error {
			if err := v.mount(); err != nil {
				return err
			}
			if err := errors.Join(unix.Chroot(v.root), become(user)); err != nil {
				return fmt.Errorf("cannot become the scheduler's user: %w", err)
			}
			for _, file := range files {
				closed = append(closed, closedIn(file)...)
			}
			return nil
		}()
	}()
	err = <-done
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

// closedIn returns the file, or the entries of a directory, that this thread is not permitted to open, and the
// directories on the way that it may not search.
func closedIn(file string) []string {
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
			closed = append(closed, closedIn(path.Join(file, entry.Name()))...)
		}
	}
	return closed
}
