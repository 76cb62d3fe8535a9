// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// task is one run of a work.
type task struct {
	// Path is the file of the work.
	Path          string
	Configuration int
	Seed          int64
	// Explain are the pods whose records the report shows.
	Explain []string
}

// outcome is the outcome of a task: a run of a comparison, or the answer to a question. It is empty if the task was not
// done.
type outcome struct {
	Run    *result.Run     `json:",omitempty"`
	Answer json.RawMessage `json:",omitempty"`
	// Notes are about the answer.
	Notes []string `json:",omitempty"`
}

// serve does a task in a process of its own.
func (o *options) serve() {
	var t task
	var w *work
	replay.Serve(&t, func() (start time.Time, err error) {
		if w, err = open(t.Path); err != nil {
			return start, err
		}
		return w.start(), nil
	}, func(progress replay.Progress) (interface{}, error) {
		return o.simulate(w, t, progress)
	})
}

// simulate does a task.
func (o *options) simulate(w *work, t task, progress replay.Progress) (done outcome, err error) {
	var again, waiting []*v1.Pod
	if check := w.Question.Mode == modeCheck && !w.History; check || w.Again {
		again, waiting, w.cluster.Pods, _ = replay.Again(w.cluster.Pods, check)
	}
	s, err := o.newSimulation(w, t)
	if err != nil {
		return done, err
	}
	if w.Again {
		s.PlaceAgain(again, waiting, w.Workloads, progress)
	}
	if w.Question.Mode != "" {
		done.Answer, err = w.answer(s, again)
		done.Notes = s.Notes()
		return done, err
	}
	if done.Run, err = w.replay(s, progress); err == nil {
		done.Run.Configuration = w.Configurations[t.Configuration].Name
	}
	return done, err
}

// newSimulation returns the simulation of a task.
func (o *options) newSimulation(w *work, t task) (*replay.Simulation, error) {
	c := w.Configurations[t.Configuration]
	config, err := c.load()
	if err != nil {
		return nil, err
	}
	registry := frameworkruntime.Registry{}
	for _, add := range o.plugins {
		if err := add(registry); err != nil {
			return nil, err
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
	s, err := replay.New(context.Background(), replay.Options{
		Config: config, Registry: registry, Cluster: w.cluster, Seed: t.Seed, Hot: w.Hot, PriceLabel: w.PriceLabel,
		Explain: explain, Scheduler: options, History: w.History, Again: w.Again, NoPreemption: w.Question.Mode != "", Question: w.Question.Mode != "",
	})
	if err != nil {
		return nil, c.failed(err)
	}
	return s, nil
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

// replay simulates the trace, or what comes after pods that were placed again.
func (w *work) replay(s *replay.Simulation, progress replay.Progress) (*result.Run, error) {
	var expected []*input.Workload
	for i := range w.Workloads {
		of := &w.Workloads[i]
		expected = append(expected, of)
		s.At(0, func() { s.Create(of) })
	}
	last := time.Duration(0)
	for i := range w.Events {
		of := &w.Events[i]
		last = of.At
		if of.Pods != nil {
			expected = append(expected, of.Pods)
		}
		s.At(of.At, func() { s.Apply(of) })
	}
	moment := w.Moment
	if moment == 0 {
		moment = last
	}
	if !w.Again {
		s.Expect(expected, moment)
	}
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
	path, err := w.save()
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	var tasks []task
	for i := range w.Configurations {
		for n := 0; n < o.seeds; n++ {
			tasks = append(tasks, task{Path: path, Configuration: i, Seed: o.firstSeed + int64(n)})
		}
	}
	if o.context.Err() != nil {
		return nil, replay.ErrInterrupted // No run has begun.
	}
	process := replay.Process{Interrupt: o.context.Done()}
	outcomes, err := o.runTasks(context.Background(), process, tasks)
	if err != nil {
		return nil, err
	}
	runs := make([]result.Run, len(tasks))
	for i, t := range tasks {
		if outcomes[i].Run != nil {
			runs[i] = *outcomes[i].Run
		} else {
			runs[i] = result.Run{Configuration: w.Configurations[t.Configuration].Name, Seed: t.Seed, Incomplete: replay.ErrInterrupted.Error()}
		}
	}
	if strings.HasSuffix(o.output, ".html") && o.records != nil && o.context.Err() == nil {
		return runs, o.explain(process, tasks, runs)
	}
	return runs, nil
}

// mostExplained is the number of pods whose records the report shows.
const mostExplained = 50

// explain runs each configuration once more, with its first seed, and adds the records of pods whose place differs.
func (o *options) explain(process replay.Process, tasks []task, runs []result.Run) error {
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
	outcomes, err := o.runTasks(context.Background(), process, again)
	if err != nil {
		return err
	}
	for i := range outcomes {
		if outcomes[i].Run == nil {
			break // A signal came.
		}
		explained, pods := map[string]json.RawMessage{}, runs[i*o.seeds].Pods
		for _, p := range outcomes[i].Run.Pods {
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

// runTasks returns the outcomes of tasks, for which it starts processes, several at a time. It starts none after a signal:
// a task may have no outcome.
func (o *options) runTasks(ctx context.Context, process replay.Process, tasks []task) ([]outcome, error) {
	outcomes, errs := make([]outcome, len(tasks)), make([]error, len(tasks))
	shown := newProgress(o.errOut, len(tasks))
	defer shown.clear()
	places, group := make(chan struct{}, o.jobs), sync.WaitGroup{}
	for i := range tasks {
		i, process := i, process
		places <- struct{}{}
		if o.context.Err() != nil {
			break
		}
		process.Progress = func(passed time.Duration, attempts int64) { shown.set(i, passed, attempts) }
		group.Add(1)
		go func() {
			defer func() { <-places; group.Done() }()
			errs[i] = process.Do(ctx, tasks[i], &outcomes[i])
			shown.end(i)
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
