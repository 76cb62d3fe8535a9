// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestComponentWhosePortWasTakenIsStartedOnAnother(t *testing.T) {
	taken, err := net.Listen("tcp", Loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := newTestSupervisor(t)
	var picked []int
	s.pickPort = func() (int, error) {
		port := taken.Addr().(*net.TCPAddr).Port
		if len(picked) > 0 {
			var err error
			if port, err = freePort(); err != nil {
				return 0, err
			}
		}
		picked = append(picked, port)
		return port, nil
	}
	// Who took the port accepts connections and never answers. The server speaks no TLS, so it is never ready; what
	// ends the wait is that the second attempt was made.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := testComponent(t, roleServer)
	server.Listens = true
	server.Arguments = func(port int) []string {
		if len(picked) == 2 {
			cancel()
		}
		return []string{fmt.Sprintf("%s:%d", Loopback, port)}
	}
	if _, _, err := s.Start(ctx, server); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the wait to be ended by the test", err)
	}
	if len(picked) != 2 {
		t.Errorf("ports picked: %v, want two", picked)
	}
}

func TestComponentIsReadyWhenWhatItSaysHoldsToo(t *testing.T) {
	s := newTestSupervisor(t)
	component := testComponent(t, roleReady)
	component.Listens = true
	component.Ready = "/path"
	component.Arguments = func(port int) []string { return []string{fmt.Sprintf("%s:%d", Loopback, port)} }
	missing := errors.New("missing")
	component.Also = func(get func(string) ([]byte, error)) error {
		if err := missing; err != nil {
			missing = nil
			return err
		}
		_, err := get("/more")
		return err
	}
	p, _, err := s.Start(context.Background(), component)
	if err != nil {
		t.Fatal(err)
	}
	if said, want := readFile(t, p.LogFile()), "200 /path\n200 /path\n200 /more\n"; !strings.HasSuffix(said, want) {
		t.Errorf("it says that it answered\n%s\nbefore it was taken for ready, want\n%s at the end", said, want)
	}
}

func TestComponentThatEndsIsAFailureWithItsLastLogLines(t *testing.T) {
	s := newTestSupervisor(t)
	server := testComponent(t, roleServer)
	server.Listens = true
	server.Arguments = func(int) []string { return []string{"no-address"} }
	_, _, err := s.Start(context.Background(), server)
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a Failure", err)
	}
	for _, part := range []string{roleServer, "exit status 1", "missing port in address", "next: "} {
		if !strings.Contains(failure.Error(), part) {
			t.Errorf("%q is not in the message:\n%v", part, failure)
		}
	}
}

func TestComponentThatPanicsIsAFailureWithThePanic(t *testing.T) {
	s := newTestSupervisor(t)
	component := testComponent(t, rolePanic)
	component.Listens = true
	component.NextPanic = "fix it"
	_, _, err := s.Start(context.Background(), component)
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a Failure", err)
	}
	for _, part := range []string{
		"exit status 2", "its log, from the panic on:\n    panic: what is wrong\n", "goroutine 1", "\nnext: fix it",
	} {
		if !strings.Contains(failure.Error(), part) {
			t.Errorf("%q is not in the message:\n%v", part, failure)
		}
	}
	if strings.Contains(failure.Error(), "a line before") {
		t.Errorf("the message does not begin with the panic:\n%v", failure)
	}
}

func TestComponentThatEndsLaterMakesTheRunFail(t *testing.T) {
	s := newTestSupervisor(t)
	p, _, err := s.Start(context.Background(), testComponent(t, roleStubborn))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Failed()
	if failure := s.Failure(); !strings.Contains(failure.Error(), "killed") {
		t.Errorf("the failure is %v, want it to say killed", failure)
	}
	waiting, cancel := s.WhileAlive(context.Background())
	defer cancel()
	<-waiting.Done()
	if context.Cause(waiting) != s.Failure() {
		t.Errorf("a wait ends with %v, want the failure", context.Cause(waiting))
	}
}

func TestStopEndsChildrenEvenStubbornOnesAndRemovesTheFolder(t *testing.T) {
	s := newTestSupervisor(t)
	polite := testComponent(t, roleServer)
	polite.Arguments = func(int) []string { return []string{Loopback + ":0"} }
	for _, component := range []Component{polite, testComponent(t, roleStubborn)} {
		if _, _, err := s.Start(context.Background(), component); err != nil {
			t.Fatal(err)
		}
	}
	// A signal that comes before it is ignored would end even this one.
	for !strings.Contains(readFile(t, filepath.Join(s.Folder(), roleStubborn+".log")), "ready") {
		select {
		case <-s.Failed():
			t.Fatal(s.Failure())
		case <-time.After(probeInterval):
		}
	}
	processes := s.Processes()
	if len(processes) != 2 {
		t.Fatalf("processes: %v, want two", processes)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for name, pid := range processes {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if _, err := os.Stat(s.Folder()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if s.Failure() != nil {
		t.Errorf("an end that was asked for is called a failure: %v", s.Failure())
	}
}

func TestFolderOfARunIsPrivateAndLeftAloneWhileItRuns(t *testing.T) {
	parent := t.TempDir()
	running, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(running.path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %o, want 700", info.Mode().Perm())
	}
	if removed, err := removeLeftFolders(parent); err != nil || len(removed) != 0 {
		t.Errorf("removed %v, %v, want nothing", removed, err)
	}
	if err := running.remove(); err != nil {
		t.Error(err)
	}
}

func TestLeftFolderIsRemovedAndNothingElse(t *testing.T) {
	parent := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "kept")
	left := filepath.Join(parent, folderPrefix+"left")
	for _, directory := range []string{elsewhere, filepath.Join(left, "etcd"), filepath.Join(parent, "another")} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(parent, folderPrefix+"link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(parent, folderPrefix+"file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removed, err := removeLeftFolders(parent)
	if err != nil || !reflect.DeepEqual(removed, []string{left}) {
		t.Errorf("removed %v, %v, want %s", removed, err, left)
	}
	for _, kept := range []string{elsewhere, link, file, filepath.Join(parent, "another")} {
		if _, err := os.Lstat(kept); err != nil {
			t.Errorf("%s should be there: %v", kept, err)
		}
	}
}

// newTestSupervisor makes a supervisor without components, which the test's end stops. It trusts the certificate that
// every server of httptest has.
func newTestSupervisor(t *testing.T) *Supervisor {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	s, err := New(t.TempDir(), server.Client().Transport.(*http.Transport).TLSClientConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// testComponent is the test binary in a role.
func testComponent(t *testing.T, role string) Component {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Component{
		Name:        role,
		Executable:  executable,
		Environment: []string{roleVariable + "=" + role},
		Arguments:   func(int) []string { return nil },
		Next:        "look into " + role,
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
