// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// forker starts all child processes from one thread of its own.
//
// Linux sends a child its parent-death signal when the *thread* that forked it ends, not the process. The Go runtime
// may end a thread while the program is running, when a goroutine that is locked to it returns, and would kill the
// children that were forked there. So the forker owns a thread that does nothing else. The thread ends with close, or
// with the program, including kill -9; the children end with it.
type forker struct {
	starts chan func()
}

func newForker() *forker {
	f := &forker{starts: make(chan func())}
	go func() {
		// Never unlocked: when this goroutine returns, the runtime ends the thread.
		runtime.LockOSThread()
		for start := range f.starts {
			start()
		}
	}()
	return f
}

// start runs a command in the forker's thread.
func (f *forker) start(cmd *exec.Cmd) error {
	done := make(chan error)
	f.starts <- func() { done <- cmd.Start() }
	return <-done
}

// close ends the thread. No start may follow.
func (f *forker) close() { close(f.starts) }

// command holds the parameters of a child process.
type command struct {
	// name is the component's name in messages.
	name       string
	executable string
	args       []string
	// environment is the child's whole environment; nil is the parent's.
	environment []string
	// directory is the working directory; empty is the parent's.
	directory string
	// logFile receives standard output and standard error.
	logFile string
	// inherit is an open file that the child inherits: the lock of the run's directory.
	inherit *os.File
}

// Process is a child process: a component that was started.
type Process struct {
	command
	cmd *exec.Cmd
	// exited is closed when the child has ended; exit is then its error, nil for status 0.
	exited chan struct{}
	exit   error
}

// startProcess starts a child in a process group of its own, so that Ctrl-C in a terminal reaches only the parent,
// which then ends its children in the right order.
func startProcess(forker *forker, command command) (*Process, error) {
	log, err := os.OpenFile(command.logFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(command.executable, command.args...)
	cmd.Dir = command.directory
	cmd.Env = command.environment
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if command.inherit != nil {
		cmd.ExtraFiles = []*os.File{command.inherit}
	}
	if err := forker.start(cmd); err != nil {
		return nil, err
	}
	p := &Process{command: command, cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.exit = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// LogFile returns the path of the file with its standard output and standard error; it is removed with the run's
// directory.
func (p *Process) LogFile() string { return p.logFile }

// pid returns the child's process id. After exited is closed, another process may have the same id.
func (p *Process) pid() int { return p.cmd.Process.Pid }

// stop sends SIGTERM, and SIGKILL after the grace period, and returns when the child has ended. It signals that one
// process, never a group or a name.
func (p *Process) stop(grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop %s (process %d): %w; next: kill -9 %d", p.name, p.pid(), err, p.pid())
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	select {
	case <-p.exited:
		return nil
	case <-deadline.C:
	}
	return p.kill()
}

// kill sends SIGKILL and returns when the child has ended.
func (p *Process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop %s (process %d): %w; next: kill -9 %d", p.name, p.pid(), err, p.pid())
	}
	<-p.exited
	return nil
}

// ending returns a sentence about the end of the child.
func (p *Process) ending() string {
	if p.exit == nil {
		return "it exited by itself (exit status 0)"
	}
	return fmt.Sprintf("it exited by itself (%v)", p.exit)
}
