// SPDX-License-Identifier: Apache-2.0

// Package supervisor starts the programs of a run, waits until each is ready, watches them, and ends them. All their
// files are in one directory.
//
// The programs are child processes that listen on loopback only. Stop ends them and removes the directory. After a
// crash of the parent, including kill -9, the kernel ends the children and the next New removes the directory.
package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// Supervisor starts, watches and ends the components of one run.
type Supervisor struct {
	folder   *folder
	forker   *forker
	progress io.Writer
	// client probes components for readiness.
	client *http.Client

	// alive ends when a component fails; the cause is its Failure.
	alive context.Context
	fail  context.CancelCauseFunc

	mutex sync.Mutex
	// running are the components, in start order.
	running []*Process

	stopped sync.Once
	stopErr error
}

// New creates the directory of a run, mode 0700, in parent, and removes those of crashed runs from it; an empty parent
// is the system's directory for temporary files. Probes use the CA and client certificates in probing.
// Progress, which may be nil, receives a line for each start. The caller must call Stop.
func New(parent string, probing *tls.Config, progress io.Writer) (*Supervisor, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{progress: progress, client: &http.Client{
		Timeout: probeDeadline,
		// A component is probed only until it is ready, so no connection is kept.
		Transport: &http.Transport{TLSClientConfig: probing, DisableKeepAlives: true},
	}}
	removed, err := removeLeftFolders(parent)
	for _, path := range removed {
		s.report("removed %s, left by a run that crashed", path)
	}
	if err != nil {
		// This run can go on: the directories of two runs are independent.
		s.report("%v", err)
	}
	if s.folder, err = newFolder(parent); err != nil {
		return nil, err
	}
	s.forker = newForker()
	s.alive, s.fail = context.WithCancelCause(context.Background())
	return s, nil
}

// Folder returns the path of the directory with all files of this run, including logs (NAME.log).
func (s *Supervisor) Folder() string { return s.folder.path }

// Processes returns the process ids of the running components by name.
func (s *Supervisor) Processes() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	processes := map[string]int{}
	for _, p := range s.running {
		processes[p.name] = p.pid()
	}
	return processes
}

// Failed returns a channel that is closed when a component fails; Failure then returns which and why.
func (s *Supervisor) Failed() <-chan struct{} { return s.alive.Done() }

// Failure returns the Failure of the first component that failed, or nil.
func (s *Supervisor) Failure() error { return context.Cause(s.alive) }

// Stop ends all components and removes the directory. It may be called more than once; no Start may follow. The error
// names each component that could not be ended.
func (s *Supervisor) Stop() error {
	s.stopped.Do(func() {
		s.mutex.Lock()
		ending := s.running
		s.running = nil
		s.mutex.Unlock()
		failures := make([]error, len(ending))
		// In parallel, because the data is deleted anyway, and each may need its grace period.
		var group sync.WaitGroup
		for i, p := range ending {
			group.Go(func() { failures[i] = p.stop(stopGrace) })
		}
		group.Wait()
		s.forker.close()
		s.stopErr = errors.Join(append(failures, s.folder.remove())...)
	})
	return s.stopErr
}

// End stops a component, which is then not a failure: it sends SIGTERM, and SIGKILL after a second.
func (s *Supervisor) End(p *Process) error {
	s.disown(p)
	return p.stop(stopGrace)
}

// Kill stops a component with SIGKILL, as a crash would; this is not a failure.
func (s *Supervisor) Kill(p *Process) error {
	s.disown(p)
	return p.kill()
}

// adopt adds a component to the run: from now on its end is a Failure.
func (s *Supervisor) adopt(component Component, p *Process) {
	s.mutex.Lock()
	s.running = append(s.running, p)
	s.mutex.Unlock()
	go func() {
		<-p.exited
		if s.disown(p) {
			s.fail(p.failure(p.ending(), component))
		}
	}()
}

// disown removes a component from the run, and reports whether it was part of it.
func (s *Supervisor) disown(p *Process) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, other := range s.running {
		if other == p {
			s.running = append(s.running[:i], s.running[i+1:]...)
			return true
		}
	}
	return false
}

// WhileAlive returns a context that also ends when a component fails; its cause is then the Failure.
func (s *Supervisor) WhileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.alive, func() { cancel(context.Cause(s.alive)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// report writes a line of progress.
func (s *Supervisor) report(format string, arguments ...any) {
	if s.progress != nil {
		fmt.Fprintf(s.progress, format+"\n", arguments...)
	}
}
