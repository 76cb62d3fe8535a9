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

// forker starts child processes, all from one thread of its own.
//
// Linux sends a child its parent-death signal when the *thread* that forked it ends, not the process. The Go runtime
// may end a thread at any time while the program goes on (when a goroutine that is locked to it returns), and a
// child that was forked there would be killed out of the blue. So the forker owns a thread that does nothing else.
// It ends with close, or with the program however that is ended, kill -9 included; the children end with it.
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

// start starts a command in the forker's thread.
func (f *forker) start(cmd *exec.Cmd) error {
	done := make(chan error)
	f.starts <- func() { done <- cmd.Start() }
	return <-done
}

// close ends the thread. No start may follow.
func (f *forker) close() { close(f.starts) }

// command is what a child process is started with.
type command struct {
	// name is the component's, as in messages.
	name       string
	executable string
	args       []string
	// environment is all that the child gets; nil is the parent's own.
	environment []string
	// directory is the working directory; empty is the parent's own.
	directory string
	// logFile receives standard output and standard error.
	logFile string
	// inherit is an open file that stays open in the child: the lock of the run's folder.
	inherit *os.File
}

// Process is a child process: a component that was started.
type Process struct {
	command
	cmd *exec.Cmd
	// exited is closed when the child has ended and was waited for; then exit says how, nil for status 0.
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

// LogFile is the path of the file that receives its standard output and standard error; it goes with the run's folder.
func (p *Process) LogFile() string { return p.logFile }

// pid is the child's process id; it may be another process's once exited is closed.
func (p *Process) pid() int { return p.cmd.Process.Pid }

// stop asks the child to end (SIGTERM), ends it (SIGKILL) when it has not done so within the grace period, and returns
// when it is gone. It signals that one child, never a group or a name.
func (p *Process) stop(grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end %s (process %d): %w; next: kill -9 %d", p.name, p.pid(), err, p.pid())
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

// kill ends the child at once (SIGKILL), and returns when it is gone.
func (p *Process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end %s (process %d): %w; next: kill -9 %d", p.name, p.pid(), err, p.pid())
	}
	<-p.exited
	return nil
}

// ending says in words how the child ended.
func (p *Process) ending() string {
	if p.exit == nil {
		return "it ended by itself (exit status 0)"
	}
	return fmt.Sprintf("it ended by itself (%v)", p.exit)
}
