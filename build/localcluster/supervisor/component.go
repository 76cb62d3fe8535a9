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
	// Loopback is the only address that components listen on.
	Loopback = "127.0.0.1"
	// StartDeadline limits the time until a component is ready: many times what it takes on a slow, busy machine.
	StartDeadline = 2 * time.Minute
	// stopGrace is the time between SIGTERM and SIGKILL. It is short because nothing of a run is kept, and because the
	// API server would wait up to a minute for its own watches.
	stopGrace = time.Second
	// probeInterval is the time between two readiness probes.
	probeInterval = 50 * time.Millisecond
	// probeDeadline limits one probe.
	probeDeadline = 5 * time.Second
	// portAttempts limits the starts of a component whose port another program has taken.
	portAttempts = 5
)

// errNotReady is the cause of a context that ended at the StartDeadline.
var errNotReady = errors.New("not ready")

// Component is a program of a run.
type Component struct {
	// Name is unique among the running components; the log is NAME.log in the run's directory.
	Name string
	// Executable is the path of the program.
	Executable string
	// Arguments returns its arguments for a port of Loopback, which is 0 for one that does not listen.
	Arguments func(port int) []string
	// Listens reports whether it needs a port.
	Listens bool
	// Address is the URL, such as http://127.0.0.1:9090, of a component that listens where its arguments name it. Empty
	// is https on a free port.
	Address string
	// Ready is the path that returns 200 when the component is ready, for one that listens.
	Ready string
	// Also, if it is not nil, is a further condition of readiness; get returns a page of the component by path.
	Also func(get func(path string) ([]byte, error)) error
	// Environment is its whole environment; nil is the caller's.
	Environment []string
	// Directory is its working directory; empty is the caller's.
	Directory string
	// Next is the next step for a user if it does not start.
	Next string
	// NextPanic is the next step after a panic; empty is Next.
	NextPanic string
}

// freePort returns a free port of loopback. Another program can take it before the component listens; Start then tries
// another port.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(Loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("no free port on %s: %w; next: ip addr show lo", Loopback, err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// Start runs a component, waits until it is ready, and returns its port, 0 for one that does not listen. From then on
// its end is a Failure of the run. The error is a Failure if the component does not start, ends, or is not ready within
// StartDeadline; otherwise it is the cause of ctx's end, or the Failure of another component. After an error the
// component is not running.
func (s *Supervisor) Start(ctx context.Context, component Component) (*Process, int, error) {
	for attempt := 1; ; attempt++ {
		port := 0
		if component.Listens && component.Address == "" {
			var err error
			if port, err = freePort(); err != nil {
				return nil, 0, err
			}
		}
		p, err := s.startOn(ctx, component, port)
		if err == nil {
			return p, port, nil
		}
		var failure *Failure
		if attempt == portAttempts || port == 0 || !errors.As(err, &failure) || !portTaken(failure) {
			return nil, 0, err
		}
		s.report("%s: port %d was taken meanwhile, trying another", component.Name, port)
	}
}

// portTaken reports whether a component ended because another program listens on its port.
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
	address := component.Address
	if address == "" {
		address = "https://" + net.JoinHostPort(Loopback, fmt.Sprint(port))
	}
	s.report("%s: starting on %s", component.Name, address)
	if err := s.waitReady(ctx, component, p, address); err != nil {
		return nil, errors.Join(err, p.stop(stopGrace))
	}
	s.report("%s: ready after %.1f s", component.Name, time.Since(began).Seconds())
	s.adopt(component, p)
	return p, nil
}

// waitReady probes a component until it is ready, or until it or another component ends.
func (s *Supervisor) waitReady(ctx context.Context, component Component, p *Process, address string) error {
	ctx, cancel := s.WhileAlive(ctx)
	defer cancel()
	ctx, cancelDeadline := context.WithTimeoutCause(ctx, StartDeadline, errNotReady)
	defer cancelDeadline()
	// Another program on the port may accept the connection and never answer, so a probe must end with the component.
	probing, cancelProbes := context.WithCancel(ctx)
	defer cancelProbes()
	go func() {
		select {
		case <-p.exited:
			cancelProbes()
		case <-probing.Done():
		}
	}()
	get := func(path string) ([]byte, error) { return s.Get(probing, address+path) }
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

// Get returns a page of a component. Any status other than 200 is an error.
func (s *Supervisor) Get(ctx context.Context, url string) ([]byte, error) {
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
