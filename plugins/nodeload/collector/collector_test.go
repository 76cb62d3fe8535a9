// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

func TestRefresh(t *testing.T) {
	var swapped []*Snapshot
	s := spec("cpu", "memory")
	s.Swapped = func(snapshot *Snapshot) { swapped = append(swapped, snapshot) }
	w := newMeasuredWorld(t, s, makeNodes(2)...)
	if w.last() != nil {
		t.Error("there is a snapshot before the first answer")
	}
	expectPause(t, w.answer(rows(
		measuredRows(0, "node-1:9100", 0.25, 10*time.Second), measuredRows(1, "node-2:9100", 0.5, 20*time.Second),
		measuredRows(0, "stranger-2:9100", 0.5, 0), measuredRows(0, "stranger-1:9100", 0.5, 0),
	)...), 30*time.Second)
	want := []source.Query{
		{Name: "cpu", Label: "instance", Value: "cpu", Timestamp: "timestamp(cpu)", Deviation: "deviation(cpu)"},
		{Name: "memory", Label: "instance", Value: "memory", Timestamp: "timestamp(memory)", Deviation: "deviation(memory)"},
	}
	if !reflect.DeepEqual(w.source.queries, want) {
		t.Errorf("asked %+v, want %+v", w.source.queries, want)
	}

	snapshot := w.last()
	// Prometheus' clock is an hour ahead, which does not affect the ages.
	expectSample(t, snapshot, "node-1", 0, Sample{Value: 0.25, At: start.Add(-10 * time.Second).UnixNano()})
	expectSample(t, snapshot, "node-2", 1, Sample{Value: 0.5, At: start.Add(-20 * time.Second).UnixNano()})
	expectSample(t, snapshot, "node-1", 1, missing(NoSeries))
	expectSample(t, snapshot, "node-2", 0, missing(NoSeries))
	if snapshot.ID != 1 || !snapshot.Taken.Equal(start) || len(snapshot.Nodes) != 2 || snapshot.Unmatched != 4 ||
		snapshot.UnmatchedExample != "stranger-1:9100" {
		t.Errorf("snapshot %d of %v has %d nodes and %d unmatched series such as %q; want 1 of %v, 2, and 4 such as stranger-1:9100",
			snapshot.ID, snapshot.Taken, len(snapshot.Nodes), snapshot.Unmatched, snapshot.UnmatchedExample, start)
	}
	if len(swapped) != 1 || swapped[0] != snapshot {
		t.Errorf("Swapped was called with %v, want the snapshot once", swapped)
	}

	w.clock.Step(30 * time.Second)
	w.answer(measuredRows(0, "node-1", 0.75, 0)...)
	if after := w.last(); after == snapshot || after.ID != 2 || len(swapped) != 2 || swapped[1] != after {
		t.Errorf("after the second answer the snapshot is %d, and Swapped was called %d times; want 2 and 2", after.ID, len(swapped))
	}
	expectSample(t, snapshot, "node-1", 0, Sample{Value: 0.25, At: start.Add(-10 * time.Second).UnixNano()})
	expectSample(t, w.last(), "node-1", 0, Sample{Value: 0.75, At: start.Add(30 * time.Second).UnixNano()})
}

func TestAmbiguousLabels(t *testing.T) {
	w := newWorld(t, makeNode("old", internalIP("10.0.0.1", "10.0.0.2")), makeNode("new", internalIP("10.0.0.1")),
		makeNode("other", internalIP("10.0.0.3")))
	args := spec("cpu")
	args.Resources[0].By = config.NodeLoadMatchInternalIP
	w.join(args)
	w.answer(rows(measuredRows(0, "10.0.0.1:9100", 0.1, 0), measuredRows(0, "10.0.0.3:9100", 0.3, 0))...)
	expectSample(t, w.last(), "old", 0, missing(Ambiguous))
	expectSample(t, w.last(), "new", 0, missing(Ambiguous))
	expectSample(t, w.last(), "other", 0, Sample{Value: 0.3, At: start.UnixNano()})
	if got := w.state().Warnings; len(got) != 1 || !strings.Contains(got[0], `2 series match more than one node each, for example the one with instance="10.0.0.1:9100"`) {
		t.Errorf("the warnings are %q, want one about the two series of 10.0.0.1", got)
	}

	// Also if another series matches only one of them.
	w.clock.Step(30 * time.Second)
	w.answer(rows(measuredRows(0, "10.0.0.2", 0.2, 0), measuredRows(0, "10.0.0.1", 0.1, 0))...)
	expectSample(t, w.last(), "old", 0, missing(Ambiguous))

	// Without the old node, the series is no longer ambiguous.
	w.remove(makeNode("old"))
	w.clock.Step(30 * time.Second)
	w.answer(measuredRows(0, "10.0.0.1", 0.1, 0)...)
	expectSample(t, w.last(), "new", 0, Sample{Value: 0.1, At: start.Add(time.Minute).UnixNano()})
}

func TestAmbiguousSeries(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(2)...)
	first, other := measuredRows(0, "node-1:9100", 0.1, 0), measuredRows(0, "node-2", 0.1, 0)
	w.answer(rows(first, measuredRows(0, "node-1:9200", 0.5, 0), other)...)
	expectSample(t, w.last(), "node-1", 0, missing(Ambiguous))
	expectSample(t, w.last(), "node-2", 0, Sample{Value: 0.1, At: start.UnixNano()})
	const warning = "cpu: 1 nodes have several series each"
	if got := w.state().Warnings; len(got) != 1 || !strings.Contains(got[0], warning) {
		t.Errorf("the warnings are %q, want %q", got, warning)
	}
	logged := w.warned
	// Another scrape job for the same exporter.
	w.answer(rows(first, measuredRows(0, "node-1:9200", 0.11, 15*time.Second), other)...)
	expectSample(t, w.last(), "node-1", 0, Sample{Value: 0.11, At: start.Add(-15 * time.Second).UnixNano()})
	if w.warned != logged {
		t.Errorf("logged %q after %q: what is logged depends on values, which change with each refresh", w.warned, logged)
	}
	w.answer(rows(first, other)...)
	if got := w.state().Warnings; len(got) > 0 {
		t.Errorf("with one series each, the warnings are %q", got)
	}
}

func TestNodesComeAndGo(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(2)...)
	all := rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-2", 0.2, 0), measuredRows(0, "node-3", 0.3, 0))
	w.answer(all...)
	if w.last().Nodes["node-3"] != nil || w.last().Unmatched != 2 {
		t.Errorf("node-3 is known or not unmatched before it comes")
	}
	w.remove(makeNode("node-1"))
	w.add(makeNode("node-3"))
	w.clock.Step(30 * time.Second)
	w.answer(all...)
	if w.last().Nodes["node-1"] != nil {
		t.Error("node-1 is known after it is gone")
	}
	at := start.Add(30 * time.Second).UnixNano()
	expectSample(t, w.last(), "node-2", 0, Sample{Value: 0.2, At: at})
	expectSample(t, w.last(), "node-3", 0, Sample{Value: 0.3, At: at})

	w.remove(makeNode("node-2"))
	w.remove(makeNode("node-3"))
	w.clock.Step(30 * time.Second)
	w.answer(all...)
	if got := w.last(); got.Unmatched != 6 || got.ID != 3 {
		t.Errorf("without nodes %d series are unmatched in snapshot %d, want 6 in 3", got.Unmatched, got.ID)
	}
}

func TestLongAndBrokenLabels(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(1)...)
	w.answer(source.Row{Label: strings.Repeat("ä", 10000) + "\xff", Value: 1})
	if got := w.last().UnmatchedExample; got != strings.Repeat("ä", longestExample/2) {
		t.Errorf("the example is %q, want its first %d bytes", got, longestExample)
	}
	w.clock.Step(30 * time.Second)
	w.answer(source.Row{Label: "\xff\xfea\x00", Value: 1})
	if got := w.last().UnmatchedExample; got != "\uFFFDa\x00" {
		t.Errorf("the example is %q, want the broken bytes replaced", got)
	}
}

func TestRefreshFailureKeepsTheSnapshot(t *testing.T) {
	calls := 0
	args := spec("cpu")
	args.Swapped = func(*Snapshot) { calls++ }
	w := newMeasuredWorld(t, args, makeNodes(1)...)
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	before := w.last()

	// A quarter of the interval, doubled each time up to the interval; each reduced by a tenth by the jitter.
	for i, want := range []time.Duration{6750, 13500, 27000, 27000} {
		w.clock.Step(30 * time.Second)
		expectPause(t, w.fail(errDown), want*time.Millisecond)
		if got := w.state().Failures; got != i+1 {
			t.Errorf("the status has %d failures, want %d", got, i+1)
		}
	}
	if w.last() != before || calls != 1 {
		t.Errorf("the snapshot changed, or Swapped was called %d times, without an answer", calls)
	}

	w.clock.Step(30 * time.Second)
	expectPause(t, w.answer(measuredRows(0, "node-1", 0.9, 0)...), 30*time.Second)
	if got := w.last(); got.ID != 2 || calls != 2 {
		t.Errorf("after recovery the snapshot is %d, want 2", got.ID)
	}
	w.clock.Step(30 * time.Second)
	expectPause(t, w.fail(errDown), 6750*time.Millisecond)
}

func TestFailedQueries(t *testing.T) {
	args := spec("cpu", "memory")
	w := newMeasuredWorld(t, args, makeNodes(1)...)
	without := func(query int, rows ...source.Row) time.Duration {
		return w.answerWith(func(result *source.Result) { result.Failed = map[int]error{query: errors.New("bad expression")} }, rows...)
	}
	expectPause(t, without(1, measuredRows(0, "node-1", 0.5, 0)...), 30*time.Second)
	expectSample(t, w.last(), "node-1", 0, Sample{Value: 0.5, At: start.UnixNano()})
	expectSample(t, w.last(), "node-1", 1, missing(QueryFailed))

	// The last sample stays until it is too old, as it would without any answer.
	for age := time.Duration(0); age <= args.MaxSampleAge; age += time.Minute {
		w.clock.Step(time.Minute)
		without(0, measuredRows(1, "node-1", 0.75, 0)...)
		want := Sample{Value: 0.5, At: start.UnixNano()}
		if age+time.Minute > args.MaxSampleAge {
			want = missing(QueryFailed)
		}
		expectSample(t, w.last(), "node-1", 0, want)
		expectSample(t, w.last(), "node-1", 1, Sample{Value: 0.75, At: w.clock.Now().UnixNano()})
	}

	t.Run("of pods", func(t *testing.T) {
		args := spec("cpu", "of pods")
		args.Resources[1].Pods = true
		w := newMeasuredWorld(t, args, makeNodes(1)...)
		w.answer(measuredRows(1, "test/a", 0.5, 0)...)
		for age := time.Duration(0); age <= args.MaxSampleAge+time.Minute; age += time.Minute {
			w.answerWith(func(result *source.Result) { result.Failed = map[int]error{1: errors.New("bad expression")} }, measuredRows(0, "node-1", 0.5, 0)...)
			if _, found := w.last().Pods(args.Resources[1])["test/a"]; found != (age <= args.MaxSampleAge) {
				t.Errorf("after %v the pod's sample is kept: %t, want that until %v", age, found, args.MaxSampleAge)
			}
			w.clock.Step(time.Minute)
		}
	})

	t.Run("all", func(t *testing.T) {
		w := newMeasuredWorld(t, args, makeNodes(1)...)
		w.answer(measuredRows(0, "node-1", 0.5, 0)...)
		expectPause(t, w.answerWith(func(result *source.Result) {
			result.Failed = map[int]error{1: errors.New("bad"), 0: errors.New("worse")}
		}), 6750*time.Millisecond)
		if got := w.state(); got.State != Down || got.Problem != "2 of 2 queries failed: cpu: worse; memory: bad" || w.last().ID != 1 {
			t.Errorf("state is %s (%s) with snapshot %d, want Down, both errors, and the old snapshot", got.State, got.Problem, w.last().ID)
		}
	})
}

// TestPartialAnswers checks that an answer with warnings replaces the samples that it has; others stay until they are
// too old.
func TestPartialAnswers(t *testing.T) {
	args := spec("cpu")
	w := newMeasuredWorld(t, args, makeNodes(4)...)
	warn := func(result *source.Result) {
		result.Partial, result.Warnings = true, []string{"store 2 did not answer"}
	}
	timeless := source.Row{Label: "node-3", Value: 0.7}
	broken := measuredRows(0, "node-4", -1, 0)
	w.answerWith(warn, rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-3", 0.3, 0), measuredRows(0, "node-4", 0.4, 0))...)
	expectSample(t, w.last(), "node-2", 0, missing(NoSeries))

	for age := time.Minute; age <= args.MaxSampleAge+time.Minute; age += time.Minute {
		w.clock.Step(time.Minute)
		w.answerWith(warn, rows(measuredRows(0, "node-2", 0.2, 0), []source.Row{timeless}, broken)...)
		one, three := Sample{Value: 0.1, At: start.UnixNano()}, Sample{Value: 0.3, At: start.UnixNano()}
		if age > args.MaxSampleAge {
			one, three = missing(NoSeries), missing(NoTimestamp)
		}
		expectSample(t, w.last(), "node-1", 0, one)
		expectSample(t, w.last(), "node-2", 0, Sample{Value: 0.2, At: w.clock.Now().UnixNano()})
		expectSample(t, w.last(), "node-3", 0, three)
		expectSample(t, w.last(), "node-4", 0, missing(Negative))
	}

	w.clock.Step(time.Minute)
	w.answer()
	expectSample(t, w.last(), "node-2", 0, missing(NoSeries)) // a complete answer lacks nothing
}

// TestWarningsWithoutPartialAnswer checks that a warning about a token's file does not make an answer partial.
func TestWarningsWithoutPartialAnswer(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(2)...)
	w.answer(rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-2", 0.2, 0))...)
	w.clock.Step(30 * time.Second)
	w.answerWith(func(result *source.Result) { result.Warnings = []string{"bearerTokenFile: the file cannot be used"} },
		measuredRows(0, "node-2", 0.2, 0)...)
	expectSample(t, w.last(), "node-1", 0, missing(NoSeries))
	if got := w.state().Warnings; len(got) != 1 {
		t.Errorf("the status has the warnings %q, want one", got)
	}
}

// TestPartialAnswersRecreatedNode checks that samples of an earlier node with the same name, or from before the clock
// was set back, are not kept.
func TestPartialAnswersRecreatedNode(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(2)...)
	warn := func(result *source.Result) {
		result.Partial, result.Warnings = true, []string{"store 2 did not answer"}
	}
	w.answer(rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-2", 0.2, 0))...)
	w.add(madeAt("node-1", start.Add(time.Second)))
	w.clock.Step(30 * time.Second)
	w.answerWith(warn)
	expectSample(t, w.last(), "node-1", 0, missing(NoSeries))
	expectSample(t, w.last(), "node-2", 0, Sample{Value: 0.2, At: start.UnixNano()})

	w.clock.Step(30 * time.Second)
	w.answerWith(func(result *source.Result) { warn(result); result.Received = start.Add(-10 * time.Second) })
	expectSample(t, w.last(), "node-2", 0, Sample{Value: 0.2, At: start.UnixNano()})
	w.clock.Step(30 * time.Second)
	w.answerWith(func(result *source.Result) { warn(result); result.Received = start.Add(-11 * time.Second) })
	expectSample(t, w.last(), "node-2", 0, missing(NoSeries))
}

func TestRefreshPanics(t *testing.T) {
	good := 0
	w := newWorld(t, makeNodes(1)...)
	panics, counts := spec("cpu"), spec("cpu")
	panics.Swapped, counts.Swapped = func(*Snapshot) { panic("cannot take it") }, func(*Snapshot) { good++ }
	w.join(panics)
	w.join(counts)
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	if good != 1 || w.state().State != Fresh {
		t.Errorf("state is %s, and the second member was called %d times; want Fresh and once", w.state().State, good)
	}
	expectPause(t, w.refreshWith(func() (source.Result, error) { panic("cannot decode") }), 6750*time.Millisecond)
	if status := w.state(); status.State != Down || !strings.Contains(status.Problem, "panic: cannot decode") || w.last().ID != 1 {
		t.Errorf("state is %s (%s), want Down by a panic", status.State, status.Problem)
	}
	expectPause(t, w.answer(measuredRows(0, "node-1", 0.5, 0)...), 30*time.Second)
}

// TestPause checks the jitter: a random number, 0 to 1, moves the next refresh by 10 % either way; after a failure it
// only shortens the pause.
func TestPause(t *testing.T) {
	random := 0.0
	c := &collector{random: func() float64 { return random }}
	for _, tt := range []struct {
		random   float64
		failures int
		want     time.Duration // in seconds
	}{
		{0, 0, 36}, {0.5, 0, 40}, {1, 0, 44},
		{0, 1, 10}, {1, 1, 8}, {0, 2, 20}, {0, 3, 40}, {0, 1000000, 40}, {1, 1000000, 32},
	} {
		random, c.failures = tt.random, tt.failures
		expectPause(t, c.pause(40*time.Second), tt.want*time.Second)
	}
}

// TestRefreshCancelled checks that the end of a collector is not a failure.
func TestRefreshCancelled(t *testing.T) {
	args := spec("cpu")
	args.Swapped = func(*Snapshot) { t.Error("Swapped is called after the end") }
	w := newMeasuredWorld(t, args, makeNodes(1)...)
	ctx, cancel := context.WithCancel(context.Background())
	w.source.answer = func() (source.Result, error) {
		cancel()
		return source.Result{}, ctx.Err()
	}
	w.refresh(ctx)
	if w.state().Failures != 0 || w.event() != "" {
		t.Error("the end of a collector counts as a failure")
	}
}

// TestSlowAnswers checks that the age of a sample ends with the request, however late the answer comes.
func TestSlowAnswers(t *testing.T) {
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(1)...)
	w.answerWith(func(result *source.Result) {
		w.clock.Step(7 * time.Second)
		result.Asked, result.Received = start, w.clock.Now()
	}, measuredRows(0, "node-1", 0.5, 10*time.Second)...)
	expectSample(t, w.last(), "node-1", 0, Sample{Value: 0.5, At: start.Add(-10 * time.Second).UnixNano()})
	if want := start.Add(7 * time.Second); !w.last().Taken.Equal(want) {
		t.Errorf("the snapshot is of %v, want %v", w.last().Taken, want)
	}
}

// TestNodeMatchOfEachResource checks that each resource is matched by its own label and kind of name.
func TestNodeMatchOfEachResource(t *testing.T) {
	args := spec("cpu", "gpu")
	args.Resources[0].By = config.NodeLoadMatchInternalIP
	args.Resources[1].Label = "Hostname"
	w := newMeasuredWorld(t, args, makeNode("a", internalIP("10.0.0.1")), makeNode("b", internalIP("10.0.0.2")))
	w.answer(rows(measuredRows(0, "10.0.0.1:9100", 0.1, 0), measuredRows(1, "a", 0.2, 0),
		measuredRows(0, "b", 0.3, 0), measuredRows(1, "10.0.0.2:9400", 0.4, 0))...)
	at := start.UnixNano()
	expectSample(t, w.last(), "a", 0, Sample{Value: 0.1, At: at})
	expectSample(t, w.last(), "a", 1, Sample{Value: 0.2, At: at})
	expectSample(t, w.last(), "b", 0, missing(NoSeries))
	expectSample(t, w.last(), "b", 1, missing(NoSeries))
	if got := w.last(); got.Unmatched != 4 || got.UnmatchedLabel != "Hostname" || got.UnmatchedExample != "10.0.0.2:9400" {
		t.Errorf("%d series are unmatched, such as %s=%q; want 4, such as Hostname=10.0.0.2:9400", got.Unmatched, got.UnmatchedLabel, got.UnmatchedExample)
	}
}
