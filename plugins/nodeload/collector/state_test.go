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

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// TestStates checks the states, and that each change emits one event.
func TestStates(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu", "gpu"), makeNodes(4)...)
	w.join(spec("cpu"))
	if status := w.state(); status.State != "" || !status.Since.IsZero() {
		t.Errorf("before the first refresh the status is %+v", status)
	}
	measuredNodes := func(age time.Duration, names ...string) func() {
		return func() {
			var all []source.Row
			for _, name := range names {
				all = append(all, measuredRows(0, name, 0.5, age)...)
			}
			w.answer(all...)
		}
	}
	failing := func(text string) func() { return func() { w.fail(errors.New(text)) } }
	partly := func() {
		w.answerWith(func(result *source.Result) { result.Failed = map[int]error{1: errors.New("no such function")} })
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
			"Warning NodeLoadMetricsDegraded Source 0 of measurements is degraded: only 1 of 4 nodes", "next: kubectl scheduling load", 1},
		{"for fewer still", measuredNodes(0), Degraded, "", "only 0 of 4 nodes", 0},
		{"the label changed", measuredNodes(0, "10.0.0.1:9100", "10.0.0.2:9100"), Degraded, "",
			`4 series match no node, for example the one with instance="10.0.0.1:9100"; next: compare nodeMatch`, 0},
		{"for all nodes, but too old", measuredNodes(3*time.Minute+time.Second, "node-1", "node-2", "node-3", "node-4"),
			Degraded, "", "only 0 of 4", 0},
		{"old, but not too old", measuredNodes(3*time.Minute, "node-1", "node-2", "node-3", "node-4"), Fresh, "", "", 4},
		{"and again", measuredNodes(3*time.Minute, "node-1", "node-2", "node-3", "node-4"), Fresh, "NodeLoadMetricsFresh", "", 4},
		// The samples still exist, but are now too old.
		{"no answer", failing("connection refused"), Down, "Warning NodeLoadMetricsDown Source 0 of measurements does not answer", "connection refused", 0},
		{"no answer for another reason", failing("timeout"), Down, "", "timeout", 0},
		{"a query fails", partly, Degraded, "", "gpu: no such function", 0},
		{"and again", partly, Degraded, "degraded: 1 of 2 queries failed: gpu: no such function", "gpu: no such function", 0},
		{"no answer again", failing("timeout"), Down, "NodeLoadMetricsDown", "timeout", 0},
		// An answer every other time is not a recovery and is not reported.
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
		w.clock.Step(time.Minute)
		step.refresh()
		status, event := w.state(), w.event()
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
}

func TestStatesWithoutNodes(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"))
	w.answer()
	if w.state().State != Fresh {
		t.Errorf("state is %s, want Fresh", w.state().State)
	}
}

func TestStatus(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(1)...)
	w.answerWith(func(result *source.Result) {
		w.clock.Step(2 * time.Second) // the duration of the request
		result.Received, result.Warnings = w.clock.Now(), []string{"partial"}
	}, measuredRows(0, "node-1", 0.5, 0)...)
	w.clock.Step(30 * time.Second)
	w.fail(errDown)
	want := Status{
		Source: "0", State: Down, Since: start.Add(32 * time.Second), Problem: "connection refused",
		Endpoint: "http://prometheus:9090", LastSuccess: start.Add(2 * time.Second),
		LastError: "connection refused", LastErrorTime: start.Add(32 * time.Second), Interval: 30 * time.Second, Failures: 1,
		Requests: 1, Series: 2, Bytes: 200, Warnings: []string{"partial"}, Nodes: 1, FreshNodes: 1,
	}
	got := w.state()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the status is %+v, want %+v", got, want)
	}

	w.clock.Step(30 * time.Second)
	w.answerWith(func(*source.Result) { w.clock.Step(time.Second) }, measuredRows(0, "node-1", 0.5, 0)...)
	if got := w.state(); got.Duration != time.Second || got.Problem != "" || got.LastError != "connection refused" || got.Failures != 0 {
		t.Errorf("after recovery the status is %+v, want a duration of 1s, no problem and the last error", got)
	}
}

// TestLogWarnings checks that warnings are logged when they change.
func TestLogWarnings(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.LogToStderr(true)
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(1)...)
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

func TestReportLongError(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"))
	w.fail(errors.New(strings.Repeat("ä", 5000) + "%d"))
	event := strings.TrimPrefix(w.event(), "Warning NodeLoadMetricsDown ")
	if len(event) > 1024 || len(event) < 900 || !utf8.ValidString(event) || !strings.HasSuffix(event, "ä ...") {
		t.Errorf("the event has %d bytes and ends in %q", len(event), event[len(event)-10:])
	}
}
