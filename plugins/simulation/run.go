// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// runCommand is the hidden command with which the program starts itself, with the file of the work. The first line of its
// input is the task.
const runCommand = "run"

// task is one run of a work.
type task struct {
	Configuration int
	Seed          int64
	// Explain are the pods whose records the report shows.
	Explain []string
}

// line is a line of a run's output: its progress, and then its outcome.
type line struct {
	// Seconds of virtual time have passed, and Attempts were made.
	Seconds  float64 `json:"seconds,omitempty"`
	Attempts int64   `json:"attempts,omitempty"`

	Run    *result.Run     `json:"run,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// progressInterval is the real time between two lines of progress.
const progressInterval = 500 * time.Millisecond

// run does a task, and ends the process.
func (o *options) run(path string) {
	encoder := json.NewEncoder(o.out)
	fail := func(err error) {
		_ = encoder.Encode(line{Error: err.Error()})
		os.Exit(2)
	}
	// A simulation does one thing at a time. More processors would only wake each other.
	runtime.GOMAXPROCS(1)
	// The scheduler's log has no place here.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		fail(err)
	}
	klog.SetOutput(io.Discard)
	var t task
	requests := json.NewDecoder(os.Stdin)
	if err := requests.Decode(&t); err != nil {
		fail(err)
	}
	go func() {
		// A second line interrupts the run. The input ends with the process that has started this one.
		for {
			var again task
			if requests.Decode(&again) != nil {
				os.Exit(2)
			}
			replay.Interrupt()
		}
	}()
	w, err := open(path)
	if err != nil {
		fail(err)
	}
	c := w.Configurations[t.Configuration]
	config, err := c.load()
	if err != nil {
		fail(err)
	}
	registry := frameworkruntime.Registry{}
	for _, add := range o.plugins {
		if err := add(registry); err != nil {
			fail(err)
		}
	}
	explain := map[string]bool{}
	for _, name := range t.Explain {
		explain[name] = true
	}
	var options []scheduler.Option
	if o.records != nil {
		kept := records.Options{}
		if len(explain) > 0 {
			kept = records.DefaultOptions
		}
		options = append(options, o.records(kept))
	}
	check := w.Question.Mode == modeCheck
	again := w.cluster.Pods
	if check {
		again, w.cluster.Pods = replay.Replaceable(w.cluster.Pods)
	}
	out := &output{encoder: encoder}
	go out.progress()
	replay.Run(w.start(), func() {
		s, err := replay.New(context.Background(), replay.Options{
			Config: config, Registry: registry, Cluster: w.cluster, Seed: t.Seed, Hot: w.Hot, PriceLabel: w.PriceLabel,
			Explain: explain, Scheduler: options, NoPreemption: w.Question.Mode != "",
		})
		if err != nil {
			fail(c.failed(err))
		}
		var done line
		if w.Question.Mode != "" {
			done.Answer, err = w.answer(s, again)
		} else if done.Run, err = w.replay(s, out.set); err == nil {
			done.Run.Configuration = c.Name
		}
		if err != nil {
			fail(err)
		}
		out.mutex.Lock()
		if err := encoder.Encode(done); err != nil {
			fail(err)
		}
		os.Exit(0)
	})
}

// output is the standard output of a run.
type output struct {
	mutex   sync.Mutex
	encoder *json.Encoder
	last    line
}

// set sets the progress.
func (o *output) set(passed time.Duration, attempts int64) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last = line{Seconds: passed.Seconds(), Attempts: attempts}
}

// progress writes lines of progress, in real time.
func (o *output) progress() {
	for range time.Tick(progressInterval) {
		o.mutex.Lock()
		if o.last.Attempts > 0 {
			if err := o.encoder.Encode(o.last); err != nil {
				os.Exit(2) // Nobody reads the outcome.
			}
		}
		o.mutex.Unlock()
	}
}

// start returns when the simulation starts: when the snapshot was taken.
func (w *work) start() time.Time {
	if earliest := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC); w.Taken.Before(earliest) {
		return earliest
	}
	return w.Taken.UTC()
}

const (
	// quiet is how long a simulation goes on when nothing is left to do but to retry pods that wait: longer than the
	// queue keeps a pod without a retry.
	quiet = 3 * time.Minute
	// forever limits a simulation in which owners make pods again and again that are always evicted.
	forever = 10 * 365 * 24 * time.Hour
)

// replay simulates the trace.
func (w *work) replay(s *replay.Simulation, progress func(time.Duration, int64)) (*result.Run, error) {
	var expected []*input.Workload
	for i := range w.Workloads {
		of := &w.Workloads[i]
		expected = append(expected, of)
		s.At(0, func() error { return s.Create(of) })
	}
	last := time.Duration(0)
	for i := range w.Events {
		of := &w.Events[i]
		last = of.At
		if of.Pods != nil {
			expected = append(expected, of.Pods)
		}
		s.At(of.At, func() error { return s.Apply(of) })
	}
	moment := w.Moment
	if moment == 0 {
		moment = last
	}
	s.Expect(expected, moment)
	until, end := w.Length, time.Duration(0)
	if until == 0 {
		until, end = forever, quiet
	}
	err := s.Advance(until, end, progress)
	if err != nil && !errors.Is(err, replay.ErrInterrupted) {
		return nil, err
	}
	run := s.Outcome()
	if err != nil {
		run.Incomplete = err.Error()
	}
	return &run, nil
}

// runAll does all tasks of a comparison, and returns their outcomes in order.
func (o *options) runAll(w *work) ([]result.Run, error) {
	var tasks []task
	for i := range w.Configurations {
		for n := 0; n < o.seeds; n++ {
			tasks = append(tasks, task{Configuration: i, Seed: o.firstSeed + int64(n)})
		}
	}
	path, err := w.save()
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	if o.context.Err() != nil {
		return nil, replay.ErrInterrupted // No run has begun.
	}
	lines, err := o.do(path, tasks)
	if err != nil {
		return nil, err
	}
	runs := make([]result.Run, len(lines))
	for i, t := range tasks {
		if lines[i].Run != nil {
			runs[i] = *lines[i].Run
		} else {
			runs[i] = result.Run{Configuration: w.Configurations[t.Configuration].Name, Seed: t.Seed, Incomplete: replay.ErrInterrupted.Error()}
		}
	}
	if strings.HasSuffix(o.output, ".html") && o.records != nil && o.context.Err() == nil {
		return runs, o.explain(path, tasks, runs)
	}
	return runs, nil
}

// mostExplained is the number of pods whose records the report shows.
const mostExplained = 50

// explain runs each configuration once more, with its first seed, and adds the records of pods whose place differs.
func (o *options) explain(path string, tasks []task, runs []result.Run) error {
	nodes, differs, names := map[string]string{}, map[string]bool{}, []string(nil)
	for i := 0; i < len(runs); i += o.seeds {
		for _, p := range runs[i].Pods {
			if node, known := nodes[p.Name]; known && node != p.Node && !differs[p.Name] {
				differs[p.Name] = true
				names = append(names, p.Name)
			}
			if i == 0 {
				nodes[p.Name] = p.Node
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	sort.Strings(names)
	if len(names) > mostExplained {
		names = names[:mostExplained]
	}
	var again []task
	for i := 0; i < len(tasks); i += o.seeds {
		tasks[i].Explain = names
		again = append(again, tasks[i])
	}
	lines, err := o.do(path, again)
	if err != nil {
		return err
	}
	for i := range lines {
		if lines[i].Run == nil {
			break // A signal came.
		}
		explained, pods := map[string]json.RawMessage{}, runs[i*o.seeds].Pods
		for _, p := range lines[i].Run.Pods {
			if p.Record != nil {
				explained[p.Name] = p.Record
			}
		}
		for j := range pods {
			pods[j].Record = explained[pods[j].Name]
		}
	}
	return nil
}

// do does tasks in processes, several at a time. It starts none after a signal: a task may have no outcome.
func (o *options) do(path string, tasks []task) ([]line, error) {
	outcomes, errs := make([]line, len(tasks)), make([]error, len(tasks))
	shown := newProgress(o.errOut, len(tasks))
	defer shown.clear()
	places, group := make(chan struct{}, o.jobs), sync.WaitGroup{}
	for i := range tasks {
		i := i
		places <- struct{}{}
		if o.context.Err() != nil {
			break
		}
		group.Add(1)
		go func() {
			defer func() { <-places; group.Done() }()
			outcomes[i], errs[i] = o.start(path, tasks[i], func(l line) { shown.set(i, l) })
		}()
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// start does a task in a process. After a signal to this process, the other one reports what it has.
func (o *options) start(path string, t task, progress func(line)) (line, error) {
	program, err := os.Executable()
	if err != nil {
		return line{}, err
	}
	process := exec.Command(program, runCommand, path)
	// A terminal sends Ctrl-C to all processes of its group; a run gets it from here.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return line{}, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return line{}, err
	}
	if err := process.Start(); err != nil {
		return line{}, err
	}
	requests := json.NewEncoder(in)
	if err := requests.Encode(t); err != nil {
		return line{}, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-o.context.Done():
			if o.question {
				_ = process.Process.Kill() // It has no answer.
			}
			_ = requests.Encode(t) // If it has just ended, it needs none.
		case <-ended:
		}
	}()
	var last line
	decoder := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	for {
		var next line
		if err := decoder.Decode(&next); err != nil {
			break
		}
		last = next
		progress(next)
	}
	err = process.Wait()
	switch {
	case last.Error != "":
		return line{}, errors.New(last.Error)
	case last.Run == nil && last.Answer == nil:
		return line{}, fmt.Errorf("a run ended early: %v; next: check the memory of this machine, or use fewer --jobs", err)
	}
	return last, nil
}
