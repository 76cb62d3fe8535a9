// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// StartServer starts a program that serves HTTP, appends its output to a log, and waits until it returns 200 for a URL.
// The caller must call kill, which kills it and waits for its end. It also ends with the test process.
func StartServer(t testing.TB, logFile, ready, program string, arguments ...string) (kill func()) {
	t.Helper()
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	name := filepath.Base(program)
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel kills the child when the thread that forked it ends, so this thread waits for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // it is killed, or its log has the reason
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = command.Process.Kill() // an error means that it has exited
		<-exited
	}
	answered := false
	defer func() {
		if !answered {
			kill()
		}
	}()
	Await(t, name+" to answer", func() error {
		select {
		case <-exited:
			t.Fatalf("%s ended; next: see what its log says:\n%s", name, Tails(logFile))
		default:
		}
		response, err := http.Get(ready)
		if err != nil {
			return err
		}
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", response.Status)
		}
		return nil
	}, logFile)
	answered = true
	return kill
}
