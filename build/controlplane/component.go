package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// loopback is the one address that anything listens on.
	loopback = "127.0.0.1"
	// startDeadline is how long a component may take to come up: many times what it takes on a slow, busy machine.
	startDeadline = 2 * time.Minute
	// stopGrace is how long a component may take to end before it is killed. Nothing of a run is kept, so nothing is lost
	// by that; and the API server, though it stops serving at once, would wait up to a minute for watches of its own.
	stopGrace = time.Second
	// probeInterval is how often a component is asked whether it is ready.
	probeInterval = 50 * time.Millisecond
	// probeDeadline is how long one of these questions may take.
	probeDeadline = 5 * time.Second
	// portAttempts is how often a component is started anew because somebody took its port first.
	portAttempts = 5
)

// errNotReady is the cause of a context that ended because a component was not ready by the startDeadline.
var errNotReady = errors.New("not ready")

// component is a program of the control plane.
type component struct {
	name       string
	executable string
	// args are its arguments when it has to listen on a port of loopback; 0 for one that does not listen.
	args func(port int) []string
	// listens says that it needs a port.
	listens bool
	// ready is the path that answers 200 over HTTPS when the component is ready; only for one that listens.
	ready string
	// environment and directory are as in command.
	environment []string
	directory   string
	// next is what a person should do when it does not come up.
	next string
}

// checkExecutable says what is wrong with the path of a program before anything is started.
func checkExecutable(name, path, next string) error {
	info, err := os.Stat(path)
	switch {
	case path == "":
		err = errors.New("no file was given")
	case err == nil && info.IsDir():
		err = fmt.Errorf("%s is a directory", path)
	case err == nil && info.Mode()&0o111 == 0:
		err = fmt.Errorf("%s is not executable", path)
	}
	if err != nil {
		return fmt.Errorf("cannot start %s: %w; next: %s", name, err, next)
	}
	return nil
}

// freePort finds a port of loopback that nobody listens on. Until the component listens on it somebody else can take
// it; launch starts the component again on another one then.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("no free port on %s: %w; next: ip addr show lo", loopback, err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// launch starts a component and waits until it is ready; it returns its port.
func (c *ControlPlane) launch(ctx context.Context, component component) (*process, int, error) {
	for attempt := 1; ; attempt++ {
		port := 0
		if component.listens {
			var err error
			if port, err = c.pickPort(); err != nil {
				return nil, 0, err
			}
		}
		p, err := c.launchOn(ctx, component, port)
		if err == nil {
			return p, port, nil
		}
		var failure *Failure
		if attempt == portAttempts || !errors.As(err, &failure) || !portTaken(failure) {
			return nil, 0, err
		}
		c.report("%s: port %d was taken meanwhile, trying another", component.name, port)
	}
}

// portTaken tells whether a component ended because somebody else listens on its port.
func portTaken(failure *Failure) bool {
	return strings.Contains(strings.Join(failure.LogTail, "\n"), syscall.EADDRINUSE.Error())
}

func (c *ControlPlane) launchOn(ctx context.Context, component component, port int) (*process, error) {
	began := time.Now()
	p, err := startProcess(c.forker, command{
		name:        component.name,
		executable:  component.executable,
		args:        component.args(port),
		environment: component.environment,
		directory:   component.directory,
		logFile:     c.folder.file(component.name + ".log"),
		inherit:     c.folder.lock,
	})
	if err != nil {
		return nil, &Failure{Component: component.name, Reason: fmt.Sprintf("cannot start it: %v", err), Next: component.next}
	}
	if !component.listens {
		c.report("%s: started", component.name)
		c.adopt(component, p)
		return p, nil
	}
	address := "https://" + net.JoinHostPort(loopback, fmt.Sprint(port))
	c.report("%s: starting on %s", component.name, address)
	if err := c.waitReady(ctx, component, p, address+component.ready); err != nil {
		return nil, errors.Join(err, p.stop(stopGrace))
	}
	c.report("%s: ready after %.1f s", component.name, time.Since(began).Seconds())
	c.adopt(component, p)
	return p, nil
}

// waitReady asks a component until it answers 200. It gives up when the component, or one that was started before it,
// ends.
func (c *ControlPlane) waitReady(ctx context.Context, component component, p *process, url string) error {
	ctx, cancel := c.whileAlive(ctx)
	defer cancel()
	ctx, cancelDeadline := context.WithTimeoutCause(ctx, startDeadline, errNotReady)
	defer cancelDeadline()
	// Whoever took the port first may accept the connection and never answer: a probe must not outlive the component.
	probing, cancelProbes := context.WithCancel(ctx)
	defer cancelProbes()
	go func() {
		select {
		case <-p.exited:
			cancelProbes()
		case <-probing.Done():
		}
	}()
	answer := "nothing yet"
	err := wait.PollImmediateUntilWithContext(ctx, probeInterval, func(context.Context) (bool, error) {
		if !p.running() {
			return false, failureOf(component, p.logFile, p.ending())
		}
		request, err := http.NewRequestWithContext(probing, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := c.probe.Do(request)
		if err != nil {
			answer = err.Error()
			return false, nil
		}
		answer = response.Status
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) == errNotReady:
		return failureOf(component, p.logFile, fmt.Sprintf("not ready after %s: %s answered: %s", startDeadline, url, answer))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}
