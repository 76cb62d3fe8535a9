// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// Loopback is the one address that anything listens on.
	Loopback = "127.0.0.1"
	// StartDeadline is how long a component may take to come up: many times what it takes on a slow, busy machine.
	StartDeadline = 2 * time.Minute
	// stopGrace is how long a component may take to end before it is killed. Nothing of a run is kept, so nothing is
	// lost by that; and the API server, though it stops serving at once, would wait up to a minute for watches of its
	// own.
	stopGrace = time.Second
	// probeInterval is how often a component is asked whether it is ready.
	probeInterval = 50 * time.Millisecond
	// probeDeadline is how long one of these questions may take.
	probeDeadline = 5 * time.Second
	// portAttempts is how often a component is started again because another program took its port first.
	portAttempts = 5
)

// errNotReady is the cause of a context that ended because a component was not ready by the StartDeadline.
var errNotReady = errors.New("not ready")

// Component is a program of a run.
type Component struct {
	// Name is what messages call it; its log is NAME.log in the run's folder. No two that run have the same.
	Name string
	// Executable is the path of the program.
	Executable string
	// Arguments gives its arguments when it has to listen on a port of Loopback; 0 for one that does not listen.
	Arguments func(port int) []string
	// Listens says that it needs a port.
	Listens bool
	// Ready is the path that answers 200 over HTTPS when the component is ready; only for one that listens.
	Ready string
	// Also, if it is not nil, must hold besides: it gets pages of the component, by path, and its error says what is
	// missing.
	Also func(get func(path string) ([]byte, error)) error
	// Environment is all that it gets of one; nil is the caller's own.
	Environment []string
	// Directory is its working directory; empty is the caller's own.
	Directory string
	// Next is what a person should do when it does not come up.
	Next string
	// NextPanic is what to do instead when it ended by a panic; empty is Next.
	NextPanic string
}

// freePort finds a port of loopback on which no program listens. Until the component does, another one can take
// it; Start starts the component again on another one then.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(Loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("no free port on %s: %w; next: ip addr show lo", Loopback, err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// Start starts a component and waits until it is ready; it returns its port, 0 for one that does not listen. From then
// on its end is a failure of the whole. The error is a Failure when the component does not start, ends, or is not ready
// within StartDeadline; else it is why ctx ended, or the Failure of another component that ended meanwhile. After an
// error nothing of the component runs.
func (s *Supervisor) Start(ctx context.Context, component Component) (*Process, int, error) {
	for attempt := 1; ; attempt++ {
		port := 0
		if component.Listens {
			var err error
			if port, err = s.pickPort(); err != nil {
				return nil, 0, err
			}
		}
		p, err := s.startOn(ctx, component, port)
		if err == nil {
			return p, port, nil
		}
		var failure *Failure
		if attempt == portAttempts || !errors.As(err, &failure) || !portTaken(failure) {
			return nil, 0, err
		}
		s.report("%s: port %d was taken meanwhile, trying another", component.Name, port)
	}
}

// portTaken tells whether a component ended because another program listens on its port.
func portTaken(failure *Failure) bool {
	return strings.Contains(strings.Join(failure.LogTail, "\n"), syscall.EADDRINUSE.Error())
}

func (s *Supervisor) startOn(ctx context.Context, component Component, port int) (*Process, error) {
	began := time.Now()
	p, err := startProcess(s.forker, command{
		name:        component.Name,
		executable:  component.Executable,
		args:        component.Arguments(port),
		environment: component.Environment,
		directory:   component.Directory,
		logFile:     filepath.Join(s.folder.path, component.Name+".log"),
		inherit:     s.folder.lock,
	})
	if err != nil {
		return nil, &Failure{Component: component.Name, Reason: fmt.Sprintf("cannot start it: %v", err), Next: component.Next}
	}
	if !component.Listens {
		s.report("%s: started", component.Name)
		s.adopt(component, p)
		return p, nil
	}
	address := "https://" + net.JoinHostPort(Loopback, fmt.Sprint(port))
	s.report("%s: starting on %s", component.Name, address)
	if err := s.waitReady(ctx, component, p, address); err != nil {
		return nil, errors.Join(err, p.stop(stopGrace))
	}
	s.report("%s: ready after %.1f s", component.Name, time.Since(began).Seconds())
	s.adopt(component, p)
	return p, nil
}

// waitReady asks a component at an address until it is ready. It gives up when the component, or one that was started
// before it, ends.
func (s *Supervisor) waitReady(ctx context.Context, component Component, p *Process, address string) error {
	ctx, cancel := s.WhileAlive(ctx)
	defer cancel()
	ctx, cancelDeadline := context.WithTimeoutCause(ctx, StartDeadline, errNotReady)
	defer cancelDeadline()
	// A program that took the port first may accept the connection and never answer: a probe must not outlive the
	// component.
	probing, cancelProbes := context.WithCancel(ctx)
	defer cancelProbes()
	go func() {
		select {
		case <-p.exited:
			cancelProbes()
		case <-probing.Done():
		}
	}()
	get := func(path string) ([]byte, error) { return s.get(probing, address+path) }
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		_, err := get(component.Ready)
		if err == nil && component.Also != nil {
			err = component.Also(get)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
			continue
		case <-p.exited:
		case <-ctx.Done():
		}
		switch {
		case context.Cause(ctx) == errNotReady:
			return p.failure(fmt.Sprintf("not ready after %s: %v", StartDeadline, err), component)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return p.failure(p.ending(), component)
	}
}

// get asks a component for a page. Any status but 200 is an error.
func (s *Supervisor) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered: %s", url, response.Status)
	}
	return content, err
}
