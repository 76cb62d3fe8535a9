// SPDX-License-Identifier: Apache-2.0

// Package endtoend sees a real kube-scheduler bind pods in a local control plane, and the command kube-scheduler-run
// clean up after itself. It needs programs that were built before, so it is run by its own make target.
package endtoend

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/testinput"
)

// inputs are the files the test works with, each the value of an environment variable.
type inputs struct {
	scheduler, apiServer, etcd, kwok, config, pod string
}

// readInputs fails the test when one is missing.
func readInputs(t *testing.T) inputs {
	t.Helper()
	return inputs{
		scheduler: testinput.File(t, "KUBE_SCHEDULER"),
		apiServer: testinput.File(t, "KUBE_APISERVER"),
		etcd:      testinput.File(t, "ETCD"),
		kwok:      testinput.File(t, "KWOK"),
		config:    testinput.File(t, "SCHEDULER_CONFIG"),
		pod:       testinput.File(t, "EXAMPLE_POD"),
	}
}

func TestEachPodIsBoundByTheProfileItAsksFor(t *testing.T) {
	in := readInputs(t)
	ctx := t.Context()
	parent := t.TempDir()
	plane, err := localcluster.Start(ctx, localcluster.Options{
		Etcd: in.etcd, KubeAPIServer: in.apiServer, KWOK: in.kwok, Parent: parent, Progress: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	// For a test that fails half-way; Stop may be called twice.
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	nodes, err := plane.AddNodes(ctx, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 4 {
		t.Errorf("nodes: %v, want four", nodes)
	}
	before, err := os.ReadFile(in.config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.StartScheduler(ctx, in.scheduler, in.config); err != nil {
		t.Fatal(err)
	}
	manifest, err := localcluster.ReadManifest(in.pod)
	if err != nil {
		t.Fatal(err)
	}
	pods := manifest.Pods
	if len(pods) != 1 || pods[0].Spec.SchedulerName != "my-scheduler" {
		t.Fatalf("%s should hold one pod with schedulerName: my-scheduler", in.pod)
	}
	// With a deadline the placements say what is missing; without, a pod that is never bound would end the test without a
	// word.
	placing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	placements, err := plane.Place(placing, pods[0], localcluster.NewPod("names-no-scheduler", ""))
	if err != nil {
		t.Fatal(err)
	}
	for i, profile := range []string{"my-scheduler", "default-scheduler"} {
		placement := placements[i]
		t.Logf("%+v", placement)
		if err := placement.Err(); err != nil {
			t.Error(err)
		}
		if placement.Node == "" || placement.Profile != profile {
			t.Errorf("pod %s: bound to %q by %q, want a node and %s", placement.Name, placement.Node, placement.Profile, profile)
		}
	}
	if after, err := os.ReadFile(in.config); err != nil || string(after) != string(before) {
		t.Errorf("%s was changed: %v", in.config, err)
	}

	processes := plane.Processes()
	if len(processes) != 4 {
		t.Errorf("processes: %v, want etcd, kube-apiserver, kwok and kube-scheduler", processes)
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range processes {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (process %d) is still there: %v", name, pid, err)
		}
	}
	if _, err := os.Stat(plane.Folder()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestCommandPrintsATableAndLeavesNothingBehind(t *testing.T) {
	in := readInputs(t)
	run := newRun(t, in, "--nodes=3", "--pods=4", "--manifest="+in.pod)
	output, err := run.command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Kubernetes v", "POD", "SCHEDULER", "my-scheduler", "default-scheduler", "ssd"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the output does not say %q", want)
		}
	}
	run.checkNothingLeft(t)
}

func TestCommandThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	in := readInputs(t)
	for name, test := range map[string]struct {
		// at is the start of the line of output that Ctrl-C follows.
		at       string
		flags    []string
		exitCode int
	}{
		"while the API server starts":      {"kube-apiserver: starting", nil, 130},
		"while it is kept, as the way out": {"everything keeps running", []string{"--keep", "--nodes=2", "--pods=2"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t, in, test.flags...)
			run.follow(t, test.at)
			if err := run.command.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			run.drain(t)
			_ = run.command.Wait() // the exit code is looked at below
			if code := run.command.ProcessState.ExitCode(); code != test.exitCode {
				t.Errorf("exit code %d, want %d", code, test.exitCode)
			}
			run.checkNothingLeft(t)
		})
	}
}

func TestCommandThatWasKilledIsCleanedUpAfterByTheNext(t *testing.T) {
	in := readInputs(t)
	killed := newRun(t, in, "--keep", "--nodes=1", "--pods=1")
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

	next := newRun(t, in, "--nodes=1", "--pods=1")
	next.command.Env = killed.command.Env
	output, err := next.command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(output), "removed "+left[0]) {
		t.Errorf("the output does not say that %s was removed", left[0])
	}
	killed.checkNothingLeft(t)
}

// run is one run of the command kube-scheduler-run with a directory for temporary files of its own.
type run struct {
	command   *exec.Cmd
	temporary string
	output    *bufio.Reader
}

func newRun(t *testing.T, in inputs, flags ...string) *run {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kube-scheduler-run")
	build := exec.Command("go", "build", "-o", program, "kube-scheduler-fork/build/cmd/kube-scheduler-run")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	r := &run{temporary: t.TempDir()}
	r.command = exec.Command(program, append([]string{
		"--kube-scheduler=" + in.scheduler, "--kube-apiserver=" + in.apiServer, "--etcd=" + in.etcd, "--kwok=" + in.kwok,
		"--config=" + in.config,
	}, flags...)...)
	r.command.Env = append(os.Environ(), "TMPDIR="+r.temporary)
	return r
}

// follow starts the command and returns when it has printed a line that starts with a text.
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

// waitUnlocked waits until no process of the run is left: each of them holds the lock of its folder.
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

// checkNothingLeft looks for files of the run, and for processes that were started with one of them.
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
