// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/logtail"
)

// nodeNamespaces are the namespaces that a process enters to run on a node.
const nodeNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWCGROUP

// Command is a command to run inside a node. It is used like an exec.Cmd. Its
// process is the command itself, without a wrapper, so signals reach the command.
type Command struct {
	*exec.Cmd
	node *Node
}

// Command returns a command from the node's PATH that runs as root in /root,
// with the administrator's kubeconfig. It is killed when ctx is done.
func (n *Node) Command(ctx context.Context, name string, arguments ...string) *Command {
	// env looks the name up inside the node; exec.Cmd would do so outside.
	cmd := exec.CommandContext(ctx, "/usr/bin/env", append([]string{name}, arguments...)...)
	cmd.Dir = "/root"
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "LC_ALL=C", "TZ=UTC", "KUBECONFIG=/etc/kubernetes/admin.conf",
	}
	return &Command{Cmd: cmd, node: n}
}

// Start starts the command.
func (c *Command) Start() error {
	pid, err := c.node.process()
	if err != nil {
		return err
	}
	inOwnThread(func() {
		// A file descriptor of the node's first process cannot refer to a later process with the same id.
		var node int
		if node, err = unix.PidfdOpen(pid, 0); err != nil {
			return
		}
		defer unix.Close(node)
		// A thread that shares its root directory with others cannot enter another mount namespace.
		if err = unix.Unshare(unix.CLONE_FS); err != nil {
			return
		}
		if err = unix.Setns(node, nodeNamespaces); err != nil {
			return
		}
		err = c.Cmd.Start()
	})
	if err != nil {
		return fmt.Errorf("%s cannot be started on %s: %w; next: check whether the node runs: %s",
			strings.Join(c.Args, " "), c.node.name, err, c.node.logs)
	}
	return nil
}

// inOwnThread calls a function in a thread that ends with it, so that no other code runs in the changed thread.
func inOwnThread(function func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread lives as long as the process, so it is kept busy and another thread runs the function.
			inOwnThread(function)
			runtime.UnlockOSThread()
			return
		}
		// The thread is never unlocked, so the runtime ends it.
		function()
	}()
	<-done
}

// Run runs the command and waits for it.
func (c *Command) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the command and returns its standard output.
func (c *Command) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("standard output is set already; next: call Run")
	}
	var output bytes.Buffer
	c.Stdout = &output
	err := c.Run()
	return output.Bytes(), err
}

// CombinedOutput runs the command and returns its standard output and error.
func (c *Command) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("the output is set already; next: call Run")
	}
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	err := c.Run()
	return output.Bytes(), err
}

// Run runs a bash script inside the node and returns its output; it stops at the first command that fails. When ctx is
// done, the script and its child processes are killed.
func (n *Node) Run(ctx context.Context, script string) (string, error) {
	cmd := n.Command(ctx, "bash", "-o", "errexit", "-o", "nounset", "-o", "pipefail", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// This is not a pipe, because the script's children could keep that open after the script's end.
	file, err := os.CreateTemp(n.hub.temporary, "output-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Run()
	output, readError := os.ReadFile(file.Name())
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err = errors.Join(err, readError); err != nil {
		return string(output), fmt.Errorf("on %s: %w\n%s\nnext: check the output above, the last lines of this script:\n%s",
			n.name, err, logtail.Last(string(output), tailLines), indent(script))
	}
	return string(output), nil
}
