// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// TestStates goes through the states, and expects one event for each change, whatever the refreshes in between bring.
func TestStates(t *testing.T) {
	w := newWorld(t, makeNodes(4)...)
	others := events.NewFakeRecorder(100)
	var s *Subscription
	w.nodesSyncedAfter(func() {
		s = w.subscribe(spec("cpu", "gpu"), "default", nil)
		if _, err := w.pool.Subscribe(spec("cpu"), w.nodes, others, "second", nil); err != nil {
			t.Fatal(err)
		}
	})
	if status := s.Status(); status.State != "" || !status.Since.IsZero() {
		t.Errorf("before the first refresh the status is %+v", status)
	}
	measuredNodes := func(age time.Duration, names ...string) func() {
		return func() {
			var all []row
			for _, name := range names {
				all = append(all, measuredRows(0, name, 0.5, age)...)
			}
			w.answer(all...)
		}
	}
	failing := func(text string) func() { return func() { w.fail(errors.New(text)) } }
	partly := func() {
		w.asked()
		w.source.answers <- func(source.Row) (source.Result, error) {
			return source.Result{Failed: map[int]error{1: errors.New("no such function")}}, nil
		}
		w.sleeping()
	}
	steps := []struct {
		name    string
		refresh func()
		state   State
		event   string // a part of it; empty for none
		problem string // a part of it
		fresh   int
	}{
		{"an answer for half of the nodes, of one resource", measuredNodes(0, "node-1", "node-2"), Fresh,
			"Normal NodeLoadMetricsFresh Source 0 of measurements answers; 2 of 4 nodes", "", 2},
		{"another", measuredNodes(0, "node-1", "node-2", "node-3"), Fresh, "", "", 3},
		{"for fewer than half", measuredNodes(0, "node-4"), Degraded,
			"Warning NodeLoadMetricsDegraded Source 0 of measurements is degraded: only 1 of 4 nodes", "next: see on the status page", 1},
		{"for fewer still", measuredNodes(0), Degraded, "", "only 0 of 4 nodes", 0},
		{"the label changed", measuredNodes(0, "10.0.0.1:9100", "10.0.0.2:9100"), Degraded, "",
			`4 series match no node, such as one whose label instance is "10.0.0.1:9100"; next: compare nodeMatch`, 0},
		{"for all nodes, but too old", measuredNodes(3*time.Minute+time.Second, "node-1", "node-2", "node-3", "node-4"),
			Degraded, "", "only 0 of 4", 0},
		{"old, but not too old", measuredNodes(3*time.Minute, "node-1", "node-2", "node-3", "node-4"), Fresh, "", "", 4},
		{"and again", measuredNodes(3*time.Minute, "node-1", "node-2", "node-3", "node-4"), Fresh, "NodeLoadMetricsFresh", "", 4},
		// The samples are now too old, though they are there.
		{"no answer", failing("connection refused"), Down, "Warning NodeLoadMetricsDown Source 0 of measurements does not answer", "connection refused", 0},
		{"no answer for another reason", failing("timeout"), Down, "", "timeout", 0},
		{"a query fails", partly, Degraded, "", "gpu: no such function", 0},
		{"and again", partly, Degraded, "degraded: 1 of 2 queries failed: gpu: no such function", "gpu: no such function", 0},
		{"no answer again", failing("timeout"), Down, "NodeLoadMetricsDown", "timeout", 0},
		// An answer every other time is no recovery, and no news.
		{"an answer", measuredNodes(0, "node-1", "node-2"), Fresh, "", "", 2},
		{"no answer", failing("timeout"), Down, "", "timeout", 2},
		{"an answer to a part", partly, Degraded, "", "gpu: no such function", 0},
		{"no answer", failing("timeout"), Down, "", "timeout", 0},
		{"an answer", measuredNodes(0, "node-1", "node-2"), Fresh, "", "", 2},
		{"another", measuredNodes(0, "node-1", "node-2"), Fresh, "Normal NodeLoadMetricsFresh", "", 2},
	}
	var since time.Time
	before := State("")
	for _, step := range steps {
		s.Touch()
		w.clock.Step(time.Minute)
		step.refresh()
		status, event := s.Status(), w.event()
		if step.state != before {
			before, since = step.state, w.clock.Now()
		}
		if status.State != step.state || !status.Since.Equal(since) || !strings.Contains(status.Problem, step.problem) ||
			(step.problem == "") != (status.Problem == "") || status.FreshNodes != step.fresh || status.Nodes != 4 {
			t.Errorf("%s: state is %s since %v (%q) with %d of %d nodes fresh; want %s since %v (%q) with %d of 4", step.name,
				status.State, status.Since, status.Problem, status.FreshNodes, status.Nodes, step.state, since, step.problem, step.fresh)
		}
		if !strings.Contains(event, step.event) || (step.event == "") != (event == "") || w.event() != "" {
			t.Errorf("%s: event is %q, want one with %q, and no other", step.name, event, step.event)
		}
	}
	if len(others.Events) != 0 {
		t.Error("the second profile tells the same again")
	}
}

func TestWithoutNodesTheSourceIsFresh(t *testing.T) {
	w := newWorld(t)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.answer()
	if s.Status().State != Fresh {
		t.Errorf("state is %s, want Fresh", s.Status().State)
	}
}

func TestNoRecorder(t *testing.T) {
	w := newWorld(t)
	s, err := w.pool.Subscribe(spec("cpu"), w.nodes, nil, "default", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.fail(errDown)
	if s.Status().State != Down {
		t.Errorf("state is %s, want Down", s.Status().State)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.asked()
	w.clock.Step(2 * time.Second) // the request takes that long
	good := w.good(measuredRows(0, "node-1", 0.5, 0)...)
	w.source.answers <- func(to source.Row) (source.Result, error) {
		result, err := good(to)
		result.Warnings = []string{"partial"}
		return result, err
	}
	w.sleeping()
	w.clock.Step(30 * time.Second)
	w.fail(errDown)
	want := Status{
		Source: "0", State: Down, Since: start.Add(32 * time.Second), Problem: "connection refused",
		Endpoint: "http://prometheus:9090", LastSuccess: start.Add(2 * time.Second),
		LastError: "connection refused", LastErrorTime: start.Add(32 * time.Second), Interval: 30 * time.Second, Failures: 1,
		Requests: 1, Series: 2, Bytes: 200, Warnings: []string{"partial"}, Nodes: 1, FreshNodes: 1,
	}
	got := s.Status()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the status is %+v, want %+v", got, want)
	}

	w.clock.Step(30 * time.Second)
	w.asked()
	w.clock.Step(time.Second)
	w.source.answers <- w.good(measuredRows(0, "node-1", 0.5, 0)...)
	w.sleeping()
	if got := s.Status(); got.Duration != time.Second || got.Problem != "" || got.LastError != "connection refused" || got.Failures != 0 {
		t.Errorf("after recovery the status is %+v, want a duration of 1s, no problem and the last error", got)
	}
}

// TestWarningsAreLoggedWhenTheyChange has answers with these warnings, one after the other.
func TestWarningsAreLoggedWhenTheyChange(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.LogToStderr(true)
	w := newWorld(t, makeNodes(1)...)
	w.subscribe(spec("cpu"), "default", nil)
	defer w.end() // before the log is another test's
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	for _, step := range []struct {
		warnings []string
		logged   string // "" for nothing
	}{
		{nil, ""},
		{[]string{"a store is down", "another is slow"}, `warnings=[a store is down another is slow]`},
		{[]string{"another is slow", "a store is down"}, ""},
		{[]string{"a store is down"}, `warnings=[a store is down]`},
		{nil, `warnings=[]`},
		{nil, ""},
	} {
		klog.Flush()
		log.Reset()
		w.clock.Step(30 * time.Second)
		w.answerWith(func(result *source.Result) { result.Warnings = step.warnings }, measuredRows(0, "node-1", 0.5, 0)...)
		klog.Flush()
		if got := log.String(); !strings.Contains(got, step.logged) || (got == "") != (step.logged == "") || strings.Count(got, "\n") > 1 {
			t.Errorf("after warnings %q, logged %q, want %q", step.warnings, got, step.logged)
		}
	}
}

func TestLongErrorsFitAnEvent(t *testing.T) {
	w := newWorld(t)
	w.subscribe(spec("cpu"), "default", nil)
	w.fail(errors.New(strings.Repeat("ä", 5000) + "%d"))
	event := strings.TrimPrefix(w.event(), "Warning NodeLoadMetricsDown ")
	if len(event) > 1024 || len(event) < 900 || !utf8.ValidString(event) || !strings.HasSuffix(event, "ä ...") {
		t.Errorf("the event has %d bytes and ends in %q", len(event), event[len(event)-10:])
	}
}
