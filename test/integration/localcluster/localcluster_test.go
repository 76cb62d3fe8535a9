// SPDX-License-Identifier: Apache-2.0

// Package localcluster checks that the command kube-scheduler-run (`make
// run`) shows a real kube-scheduler binding pods, and cleans up after itself.
package localcluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

const (
	config = "../../../manifests/config/my-scheduler.yaml"
	pod    = "../../../manifests/examples/nginx-pod.yaml"
)

// programs is the directory of the command kube-scheduler-run.
var programs string

func TestMain(m *testing.M) {
	code, err := build(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build compiles the command with the flags of scripts/environment.sh, so that most of it comes from the cache.
func build(run func() int) (code int, err error) {
	if programs, err = os.MkdirTemp("", "localcluster-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs)
	build := exec.Command("go", "build", "-C", "../../../build", "-trimpath", "-buildvcs=false", "-o", programs, "./cmd/kube-scheduler-run")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%v: %w: %s", build, err, output)
	}
	return run(), nil
}

func TestCommandThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	for name, test := range map[string]struct {
		// at is the beginning of the output line after which Ctrl-C is sent.
		at       string
		flags    []string
		exitCode int
	}{
		"while the API server starts":      {"kube-apiserver: starting", nil, 130},
		"while it is kept, as the way out": {"everything keeps running", []string{"--keep", "--nodes=2", "--pods=2"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t, test.flags...)
			run.follow(t, test.at)
			if err := run.command.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			run.drain(t)
			_ = run.command.Wait() // the exit code is checked below
			if code := run.command.ProcessState.ExitCode(); code != test.exitCode {
				t.Errorf("exit code %d, want %d", code, test.exitCode)
			}
			run.checkNothingLeft(t)
		})
	}
}

func TestSchedulerIsMadeWhileTheRestStartsAndAFailureLeavesNothingBehind(t *testing.T) {
	made := filepath.Join(t.TempDir(), "kube-scheduler")
	flags := []string{"--kube-scheduler=" + made, "--nodes=2", "--pods=2"}
	good := newRun(t, append(flags, "--", "cp", cluster.Program(t, "KUBE_SCHEDULER"), made)...)
	if output, err := good.command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	good.checkNothingLeft(t)

	bad := newRun(t, append(flags, "--", "false")...)
	output, err := bad.command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "the scheduler was not built (false: exit status 1); next: ") {
		t.Errorf("with a build that fails: %v: %s", err, output)
	}
	bad.checkNothingLeft(t)
}

func TestCommandThatWasKilledIsCleanedUpAfterByTheNextWhichPrintsATable(t *testing.T) {
	killed := newRun(t, "--keep", "--nodes=1", "--pods=1")
	killed.follow(t, "everything keeps running")
	if err := killed.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.drain(t)
	_ = killed.command.Wait() // "signal: killed"
	left, err := filepath.Glob(filepath.Join(killed.temporary, "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("left folders: %v, %v, want one", left, err)
	}
	killed.waitUnlocked(t, left[0])

	before := cluster.Read(t, config)
	next := newRun(t, "--nodes=3", "--pods=4", "--manifest="+pod)
	next.command.Env = killed.command.Env
	output, err := next.command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"removed " + left[0], "Kubernetes v", "POD", "SCHEDULER", "nginx", "my-scheduler", "default-scheduler", "ssd",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the output does not say %q", want)
		}
	}
	if cluster.Read(t, config) != before {
		t.Errorf("%s was changed", config)
	}
	killed.checkNothingLeft(t)
}

// run is one run of the command kube-scheduler-run with its own directory for temporary files.
type run struct {
	command   *exec.Cmd
	temporary string
	output    *bufio.Reader
}

func newRun(t *testing.T, flags ...string) *run {
	t.Helper()
	r := &run{temporary: t.TempDir()}
	r.command = exec.Command(filepath.Join(programs, "kube-scheduler-run"), append([]string{
		"--kube-scheduler=" + cluster.Program(t, "KUBE_SCHEDULER"),
		"--kube-apiserver=" + cluster.Program(t, "KUBE_APISERVER"),
		"--etcd=" + cluster.Program(t, "ETCD"), "--kwok=" + cluster.Program(t, "KWOK"), "--config=" + config,
	}, flags...)...)
	r.command.Env = append(os.Environ(), "TMPDIR="+r.temporary)
	return r
}

// follow starts the command and returns after it printed a line that starts with a text.
func (r *run) follow(t *testing.T, text string) {
	t.Helper()
	output, err := r.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.command.Stderr = t.Output()
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.command.Process.Kill() }) // for a test that fails half-way
	r.output = bufio.NewReader(output)
	for {
		line, err := r.output.ReadString('\n')
		if err != nil {
			t.Fatalf("the command ended before it said %q: %v", text, err)
		}
		t.Log(strings.TrimRight(line, "\n"))
		if strings.HasPrefix(line, text) {
			return
		}
	}
}

// drain reads the command's output to its end.
func (r *run) drain(t *testing.T) {
	t.Helper()
	for {
		line, err := r.output.ReadString('\n')
		if err != nil {
			return
		}
		t.Log(strings.TrimRight(line, "\n"))
	}
}

// waitUnlocked waits until no process of the run is left: each of them holds the lock of its directory.
func (r *run) waitUnlocked(t *testing.T, folder string) {
	t.Helper()
	directory, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	if err := syscall.Flock(int(directory.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// checkNothingLeft checks that no files of the run are left, and no processes that were started with one of them.
func (r *run) checkNothingLeft(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(r.temporary); err != nil || len(left) != 0 {
		t.Errorf("left in the directory for temporary files: %v, %v", left, err)
	}
	commandLines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(commandLines) == 0 {
		t.Fatalf("cannot look for left processes: %v", err)
	}
	for _, file := range commandLines {
		content, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(content), r.temporary) {
			t.Errorf("%s is still there: %s", filepath.Dir(file), strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
}
