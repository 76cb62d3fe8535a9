// SPDX-License-Identifier: Apache-2.0

// Package supervisor starts the programs of a run, waits until each answers, watches them, and ends them. Everything
// they write is in one folder.
//
// The programs are child processes that listen on loopback only. Stop ends them and removes the folder; after a crash
// of the parent, kill -9 included, the kernel ends the children and the next New removes the folder.
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
	// client asks components whether they are ready.
	client *http.Client
	// pickPort is freePort, but in tests.
	pickPort func() (int, error)

	// alive ends when a component ended that should run; the cause is its Failure.
	alive context.Context
	fail  context.CancelCauseFunc

	mutex sync.Mutex
	// running are the components in the order in which they were started.
	running []*Process

	stopped sync.Once
	stopErr error
}

// New makes the folder of a run, mode 0700, in which nothing runs yet, and removes those that runs that crashed left in
// parent; an empty parent is the system's directory for temporary files. Components are asked whether they are ready
// with the roots and the certificate of probing. Progress receives a line for each thing that starts or ends; it may be
// nil. The caller calls Stop.
func New(parent string, probing *tls.Config, progress io.Writer) (*Supervisor, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{progress: progress, pickPort: freePort, client: &http.Client{
		Timeout: probeDeadline,
		// Each component is asked only until it answers; there is nothing to keep a connection for.
		Transport: &http.Transport{TLSClientConfig: probing, DisableKeepAlives: true},
	}}
	removed, err := removeLeftFolders(parent)
	for _, path := range removed {
		s.report("removed %s, left by a run that crashed", path)
	}
	if err != nil {
		// Not a reason to stop: the folders of two runs have nothing in common.
		s.report("%v", err)
	}
	if s.folder, err = newFolder(parent); err != nil {
		return nil, err
	}
	s.forker = newForker()
	s.alive, s.fail = context.WithCancelCause(context.Background())
	return s, nil
}

// Folder is the path of the directory that holds every file of this run, logs included (NAME.log).
func (s *Supervisor) Folder() string { return s.folder.path }

// Processes gives the process ids of the components that run, by name.
func (s *Supervisor) Processes() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	processes := map[string]int{}
	for _, p := range s.running {
		processes[p.name] = p.pid()
	}
	return processes
}

// Failed is closed when a component ended that should run; then Failure says which and why.
func (s *Supervisor) Failed() <-chan struct{} { return s.alive.Done() }

// Failure is the Failure of the first component that ended and should run, or nil.
func (s *Supervisor) Failure() error { return context.Cause(s.alive) }

// Stop ends every component and removes the folder. It may be called more than once; no Start may follow. The error
// says what could not be ended or removed.
func (s *Supervisor) Stop() error {
	s.stopped.Do(func() {
		s.mutex.Lock()
		ending := s.running
		s.running = nil
		s.mutex.Unlock()
		failures := make([]error, len(ending))
		// All at once: with the data thrown away there is no order to keep, and each may use up its grace period.
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

// End takes a component off the list, so that its end is no failure, and ends it: it may take a second to end by
// itself. The error says why it could not be ended.
func (s *Supervisor) End(p *Process) error {
	s.disown(p)
	return p.stop(stopGrace)
}

// Kill takes a component off the list, so that its end is no failure, and ends it without a word to it, as a crash
// would. The error says why it could not be ended.
func (s *Supervisor) Kill(p *Process) error {
	s.disown(p)
	return p.kill()
}

// adopt makes a component part of the run: from now on its end is a failure of the whole.
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

// disown takes a component off the list, and tells whether it was on it.
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

// WhileAlive derives a context that also ends when a component ends that should run; its cause is that Failure.
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
