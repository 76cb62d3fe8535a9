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

// nodeNamespaces are all that a process needs to be of a node.
const nodeNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWCGROUP

// Command is a command to be run inside a node. It is used as an exec.Cmd, and its process is the command itself, with
// nothing in between: a signal to it is a signal to the command.
type Command struct {
	*exec.Cmd
	node *Node
}

// Command prepares a command that is found on the node's PATH, and runs as root in /root, with kubectl's administrator.
// When ctx ends it is killed.
func (n *Node) Command(ctx context.Context, name string, arguments ...string) *Command {
	// env looks the name up where the command will run; exec.Cmd would do so here.
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
		// The node's first process by a descriptor: never another one that got its number later.
		var node int
		if node, err = unix.PidfdOpen(pid, 0); err != nil {
			return
		}
		defer unix.Close(node)
		// A thread that shares its root directory with others may not enter another mount namespace.
		if err = unix.Unshare(unix.CLONE_FS); err != nil {
			return
		}
		if err = unix.Setns(node, nodeNamespaces); err != nil {
			return
		}
		err = c.Cmd.Start()
	})
	if err != nil {
		return fmt.Errorf("%s cannot be started on %s: %w; next: see whether the node runs: %s",
			strings.Join(c.Args, " "), c.node.name, err, c.node.logs)
	}
	return nil
}

// inOwnThread calls a function in a thread that ends with it: no other code sees what the function does to its thread.
func inOwnThread(function func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread lives as long as the process: it is kept busy, so that another one has to take the work.
			inOwnThread(function)
			runtime.UnlockOSThread()
			return
		}
		// Never unlocked: so the runtime ends the thread.
		function()
	}()
	<-done
}

// Run runs the command to its end.
func (c *Command) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the command and gives its standard output.
func (c *Command) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("standard output is set already; next: call Run")
	}
	var output bytes.Buffer
	c.Stdout = &output
	err := c.Run()
	return output.Bytes(), err
}

// CombinedOutput runs the command and gives all that it wrote.
func (c *Command) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("the output is set already; next: call Run")
	}
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	err := c.Run()
	return output.Bytes(), err
}

// Run runs a bash script inside the node and gives all that it wrote; the first command that fails ends it. When ctx
// ends, the script and what it started are killed.
func (n *Node) Run(ctx context.Context, script string) (string, error) {
	cmd := n.Command(ctx, "bash", "-o", "errexit", "-o", "nounset", "-o", "pipefail", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// Not a pipe: what the script started may hold that open after the script's end.
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
		return string(output), fmt.Errorf("on %s: %w\n%s\nnext: see above the last lines that this script wrote:\n%s",
			n.name, err, logtail.Last(string(output), tailLines), indent(script))
	}
	return string(output), nil
}
