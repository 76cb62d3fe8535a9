// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

func expectSleep(t testing.TB, got, want time.Duration) {
	t.Helper()
	// Multiplying with the jitter rounds.
	if difference := got - want; difference < -time.Millisecond || difference > time.Millisecond {
		t.Fatalf("the collector sleeps for %v, want %v", got, want)
	}
}

func TestRefresh(t *testing.T) {
	w := newWorld(t, makeNodes(2)...)
	var swapped []*measured.Snapshot
	s := w.subscribe(spec("cpu", "memory"), "default", func(snapshot *measured.Snapshot) { swapped = append(swapped, snapshot) })

	q := w.asked()
	if s.Snapshot() != nil {
		t.Error("there is a snapshot before the first answer")
	}
	want := []source.Query{
		{Name: "cpu", Label: "instance", Value: "cpu", Timestamp: "timestamp(cpu)", Deviation: "deviation(cpu)"},
		{Name: "memory", Label: "instance", Value: "memory", Timestamp: "timestamp(memory)", Deviation: "deviation(memory)"},
	}
	if !reflect.DeepEqual(q.queries, want) {
		t.Errorf("asked %+v, want %+v", q.queries, want)
	}
	w.source.answers <- w.good(rows(
		measuredRows(0, "node-1:9100", 0.25, 10*time.Second), measuredRows(1, "node-2:9100", 0.5, 20*time.Second),
		measuredRows(0, "stranger-2:9100", 0.5, 0), measuredRows(0, "stranger-1:9100", 0.5, 0),
		// These have no place, and are none of the collector's business.
		measuredRows(-1, "node-1", 1, 0), measuredRows(2, "node-1", 1, 0), []row{{0, 77, "node-1", 1}},
	)...)
	expectSleep(t, w.sleeping(), 30*time.Second)

	snapshot := s.Snapshot()
	// Prometheus' clock is an hour ahead, which is nothing to the ages.
	expectSample(t, snapshot, "node-1", s.Slot(0), measured.Sample{Value: 0.25, At: start.Add(-10 * time.Second).UnixNano()})
	expectSample(t, snapshot, "node-2", s.Slot(1), measured.Sample{Value: 0.5, At: start.Add(-20 * time.Second).UnixNano()})
	expectSample(t, snapshot, "node-1", s.Slot(1), missing(measured.NoSeries))
	expectSample(t, snapshot, "node-2", s.Slot(0), missing(measured.NoSeries))
	if snapshot.Node("stranger-1") != nil {
		t.Error("the snapshot has a node that there is not")
	}
	if snapshot.ID != 1 || !snapshot.Taken.Equal(start) || snapshot.Slots != 2 || snapshot.Unmatched != 4 ||
		snapshot.UnmatchedExample != "stranger-1:9100" {
		t.Errorf("snapshot %d of %v has %d slots and %d unmatched series such as %q; want 1 of %v, 2, and 4 such as stranger-1:9100",
			snapshot.ID, snapshot.Taken, snapshot.Slots, snapshot.Unmatched, snapshot.UnmatchedExample, start)
	}
	if len(swapped) != 1 || swapped[0] != snapshot {
		t.Errorf("swapped was called with %v, want the snapshot once", swapped)
	}

	w.clock.Step(30 * time.Second)
	w.answer(measuredRows(0, "node-1", 0.75, 0)...)
	if after := s.Snapshot(); after == snapshot || after.ID != 2 || len(swapped) != 2 || swapped[1] != after {
		t.Errorf("after the second answer the snapshot is %d, and swapped was called %d times; want 2 and 2", after.ID, len(swapped))
	}
	expectSample(t, snapshot, "node-1", 0, measured.Sample{Value: 0.25, At: start.Add(-10 * time.Second).UnixNano()})
	expectSample(t, s.Snapshot(), "node-1", 0, measured.Sample{Value: 0.75, At: start.Add(30 * time.Second).UnixNano()})
}

func TestNothingIsAskedBeforeTheNodesAreKnown(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	atomic.StoreInt32(&w.nodes.unsynced, 1)
	w.subscribe(spec("cpu"), "one", nil)
	expectSleep(t, w.sleeping(), syncInterval)
	w.clock.Step(syncInterval)
	expectSleep(t, w.sleeping(), syncInterval)
	w.subscribe(spec("memory"), "two", nil)
	atomic.StoreInt32(&w.nodes.unsynced, 0)
	w.clock.Step(syncInterval)
	if q := w.asked(); len(q.queries) != 2 {
		t.Errorf("the first request has %d queries, want those of both profiles", len(q.queries))
	}
}

func TestEndBeforeTheNodesAreKnown(t *testing.T) {
	w := newWorld(t)
	w.nodes.unsynced = 1
	w.subscribe(spec("cpu"), "one", nil)
	w.sleeping()
	w.end()
}

func TestAmbiguousLabels(t *testing.T) {
	w := newWorld(t, makeNode("old", internalIP("10.0.0.1", "10.0.0.2")), makeNode("new", internalIP("10.0.0.1")),
		makeNode("other", internalIP("10.0.0.3")))
	args := spec("cpu")
	args.Resources[0].Match.By = config.NodeLoadMatchInternalIP
	s := w.subscribe(args, "default", nil)
	w.answer(rows(measuredRows(0, "10.0.0.1:9100", 0.1, 0), measuredRows(0, "10.0.0.3:9100", 0.3, 0))...)
	expectSample(t, s.Snapshot(), "old", 0, missing(measured.Ambiguous))
	expectSample(t, s.Snapshot(), "new", 0, missing(measured.Ambiguous))
	expectSample(t, s.Snapshot(), "other", 0, measured.Sample{Value: 0.3, At: start.UnixNano()})
	if got := s.Status().Warnings; len(got) != 1 || !strings.Contains(got[0], `2 series are about more than one node each, such as that with instance="10.0.0.1:9100"`) {
		t.Errorf("the warnings are %q, want one about the two series of 10.0.0.1", got)
	}

	// Also together with a series that is about one of them only.
	w.clock.Step(30 * time.Second)
	w.answer(rows(measuredRows(0, "10.0.0.2", 0.2, 0), measuredRows(0, "10.0.0.1", 0.1, 0))...)
	expectSample(t, s.Snapshot(), "old", 0, missing(measured.Ambiguous))

	// The old node goes, and with it what was ambiguous.
	w.nodes.remove(makeNode("old"))
	w.clock.Step(30 * time.Second)
	w.answer(measuredRows(0, "10.0.0.1", 0.1, 0)...)
	expectSample(t, s.Snapshot(), "new", 0, measured.Sample{Value: 0.1, At: start.Add(time.Minute).UnixNano()})
}

func TestTwoSeriesOfANode(t *testing.T) {
	w := newWorld(t, makeNodes(2)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.answer(rows(measuredRows(0, "node-1:9100", 0.1, 0), measuredRows(0, "node-1:9200", 0.1, 0), measuredRows(0, "node-2", 0.1, 0))...)
	expectSample(t, s.Snapshot(), "node-1", 0, missing(measured.Ambiguous))
	expectSample(t, s.Snapshot(), "node-2", 0, measured.Sample{Value: 0.1, At: start.UnixNano()})
}

func TestNodesComeAndGo(t *testing.T) {
	w := newWorld(t, makeNodes(2)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	all := rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-2", 0.2, 0), measuredRows(0, "node-3", 0.3, 0))
	w.answer(all...)
	if s.Snapshot().Node("node-3") != nil || s.Snapshot().Unmatched != 2 {
		t.Errorf("node-3 is known or not unmatched before it comes")
	}
	w.nodes.remove(makeNode("node-1"))
	w.nodes.add(makeNode("node-3"))
	w.clock.Step(30 * time.Second)
	w.answer(all...)
	if s.Snapshot().Node("node-1") != nil {
		t.Error("node-1 is known after it is gone")
	}
	at := start.Add(30 * time.Second).UnixNano()
	expectSample(t, s.Snapshot(), "node-2", 0, measured.Sample{Value: 0.2, At: at})
	expectSample(t, s.Snapshot(), "node-3", 0, measured.Sample{Value: 0.3, At: at})

	w.nodes.remove(makeNode("node-2"))
	w.nodes.remove(makeNode("node-3"))
	w.clock.Step(30 * time.Second)
	w.answer(all...)
	if got := s.Snapshot(); got.Unmatched != 6 || got.ID != 3 {
		t.Errorf("without nodes %d series are unmatched in snapshot %d, want 6 in 3", got.Unmatched, got.ID)
	}
}

func TestLongAndBrokenLabels(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.answer(row{0, source.Value, strings.Repeat("ä", 10000) + "\xff", 1})
	if got := s.Snapshot().UnmatchedExample; got != strings.Repeat("ä", longestExample/2) {
		t.Errorf("the example is %q, want its first %d bytes", got, longestExample)
	}
	w.clock.Step(30 * time.Second)
	w.answer(row{0, source.Value, "\xff\xfea\x00", 1})
	if got := s.Snapshot().UnmatchedExample; got != "\uFFFDa\x00" {
		t.Errorf("the example is %q, want the broken bytes replaced", got)
	}
}

func TestFailuresKeepTheSnapshot(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	calls := 0
	s := w.subscribe(spec("cpu"), "default", func(*measured.Snapshot) { calls++ })
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	before := s.Snapshot()

	// A quarter of the interval, then twice as long each time until the interval; each a tenth less, by the jitter.
	for i, want := range []time.Duration{6750, 13500, 27000, 27000} {
		w.clock.Step(30 * time.Second)
		w.asked()
		// What it says before it fails does not count.
		w.source.answers <- func(to source.Row) (source.Result, error) {
			to(0, source.Value, []byte("node-1"), 0.9)
			to(0, source.Timestamp, []byte("node-1"), seconds(w.clock.Now().Add(serverAhead)))
			return source.Result{}, errDown
		}
		expectSleep(t, w.sleeping(), want*time.Millisecond)
		if got := s.Status().Failures; got != i+1 {
			t.Errorf("the status counts %d failures, want %d", got, i+1)
		}
	}
	if s.Snapshot() != before || calls != 1 {
		t.Errorf("the snapshot changed, or swapped was called %d times, though no answer came", calls)
	}

	w.clock.Step(30 * time.Second)
	expectSleep(t, w.answer(measuredRows(0, "node-1", 0.9, 0)...), 30*time.Second)
	if got := s.Snapshot(); got.ID != 2 || calls != 2 {
		t.Errorf("after recovery the snapshot is %d, want 2", got.ID)
	}
	expectSample(t, s.Snapshot(), "node-1", 0, measured.Sample{Value: 0.9, At: w.clock.Now().UnixNano()})
	w.clock.Step(30 * time.Second)
	expectSleep(t, w.fail(errDown), 6750*time.Millisecond)
}

func TestFailedQueries(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	args := spec("cpu", "memory")
	s := w.subscribe(args, "default", nil)
	without := func(slot int, rows ...row) time.Duration {
		w.asked()
		good := w.good(rows...)
		w.source.answers <- func(to source.Row) (source.Result, error) {
			result, err := good(to)
			result.Failed = map[int]error{slot: errors.New("bad expression")}
			return result, err
		}
		return w.sleeping()
	}
	expectSleep(t, without(1, measuredRows(0, "node-1", 0.5, 0)...), 30*time.Second)
	expectSample(t, s.Snapshot(), "node-1", 0, measured.Sample{Value: 0.5, At: start.UnixNano()})
	expectSample(t, s.Snapshot(), "node-1", 1, missing(measured.QueryFailed))

	// A sample that was there stays until it is too old, as if no answer had come.
	for age := time.Duration(0); age <= args.MaxSampleAge; age += time.Minute {
		w.clock.Step(time.Minute)
		without(0, measuredRows(1, "node-1", 0.75, 0)...)
		want := measured.Sample{Value: 0.5, At: start.UnixNano()}
		if age+time.Minute > args.MaxSampleAge {
			want = missing(measured.QueryFailed)
		}
		expectSample(t, s.Snapshot(), "node-1", 0, want)
		expectSample(t, s.Snapshot(), "node-1", 1, measured.Sample{Value: 0.75, At: w.clock.Now().UnixNano()})
	}
}

// answerWith answers with rows, and with what else there is to a result.
func (w *world) answerWith(change func(*source.Result), rows ...row) {
	w.t.Helper()
	w.asked()
	good := w.good(rows...)
	w.source.answers <- func(to source.Row) (source.Result, error) {
		result, err := good(to)
		change(&result)
		return result, err
	}
	w.sleeping()
}

// TestAnswersWithWarningsMayLackSeries: what such an answer does not have stays until it is too old; what it has
// counts.
func TestAnswersWithWarningsMayLackSeries(t *testing.T) {
	w := newWorld(t, makeNodes(4)...)
	args := spec("cpu")
	s := w.subscribe(args, "default", nil)
	warn := func(result *source.Result) {
		result.Partial, result.Warnings = true, []string{"store 2 did not answer"}
	}
	timeless := row{0, source.Value, "node-3", 0.7}
	broken := measuredRows(0, "node-4", -1, 0)
	w.answerWith(warn, rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-3", 0.3, 0), measuredRows(0, "node-4", 0.4, 0))...)
	expectSample(t, s.Snapshot(), "node-2", 0, missing(measured.NoSeries))

	for age := time.Minute; age <= args.MaxSampleAge+time.Minute; age += time.Minute {
		w.clock.Step(time.Minute)
		w.answerWith(warn, rows(measuredRows(0, "node-2", 0.2, 0), []row{timeless}, broken)...)
		one, three := measured.Sample{Value: 0.1, At: start.UnixNano()}, measured.Sample{Value: 0.3, At: start.UnixNano()}
		if age > args.MaxSampleAge {
			one, three = missing(measured.NoSeries), missing(measured.NoTimestamp)
		}
		expectSample(t, s.Snapshot(), "node-1", 0, one)
		expectSample(t, s.Snapshot(), "node-2", 0, measured.Sample{Value: 0.2, At: w.clock.Now().UnixNano()})
		expectSample(t, s.Snapshot(), "node-3", 0, three)
		expectSample(t, s.Snapshot(), "node-4", 0, missing(measured.Negative))
	}

	w.clock.Step(time.Minute)
	w.answer()
	expectSample(t, s.Snapshot(), "node-2", 0, missing(measured.NoSeries)) // a whole answer lacks nothing
}

// TestWarningsOfOursDoNotMakeAnAnswerPartial: one about a token's file says nothing about the series.
func TestWarningsOfOursDoNotMakeAnAnswerPartial(t *testing.T) {
	w := newWorld(t, makeNodes(2)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.answer(rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-2", 0.2, 0))...)
	w.clock.Step(30 * time.Second)
	w.answerWith(func(result *source.Result) { result.Warnings = []string{"bearerTokenFile: the file cannot be used"} },
		measuredRows(0, "node-2", 0.2, 0)...)
	expectSample(t, s.Snapshot(), "node-1", 0, missing(measured.NoSeries))
	if got := s.Status().Warnings; len(got) != 1 {
		t.Errorf("the status has the warnings %q, want one", got)
	}
}

// TestNothingIsKeptOfAnotherNode, which had the name before, nor of a time before the clock was set back.
func TestNothingIsKeptOfAnotherNode(t *testing.T) {
	w := newWorld(t, makeNodes(2)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	warn := func(result *source.Result) {
		result.Partial, result.Warnings = true, []string{"store 2 did not answer"}
	}
	w.answer(rows(measuredRows(0, "node-1", 0.1, 0), measuredRows(0, "node-2", 0.2, 0))...)
	w.nodes.add(madeAt("node-1", start.Add(time.Second)))
	w.clock.Step(30 * time.Second)
	w.answerWith(warn)
	expectSample(t, s.Snapshot(), "node-1", 0, missing(measured.NoSeries))
	expectSample(t, s.Snapshot(), "node-2", 0, measured.Sample{Value: 0.2, At: start.UnixNano()})

	w.clock.Step(30 * time.Second)
	w.answerWith(func(result *source.Result) { warn(result); result.Received = start.Add(-10 * time.Second) })
	expectSample(t, s.Snapshot(), "node-2", 0, measured.Sample{Value: 0.2, At: start.UnixNano()})
	w.clock.Step(30 * time.Second)
	w.answerWith(func(result *source.Result) { warn(result); result.Received = start.Add(-11 * time.Second) })
	expectSample(t, s.Snapshot(), "node-2", 0, missing(measured.NoSeries))
}

func TestAllQueriesFailed(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu", "memory"), "default", nil)
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	w.clock.Step(30 * time.Second)
	w.asked()
	w.source.answers <- func(source.Row) (source.Result, error) {
		return source.Result{Failed: map[int]error{1: errors.New("bad"), 0: errors.New("worse")}}, nil
	}
	expectSleep(t, w.sleeping(), 6750*time.Millisecond)
	status := s.Status()
	if status.State != Down || status.Problem != "2 of 2 queries failed: cpu: worse; memory: bad" || s.Snapshot().ID != 1 {
		t.Errorf("state is %s (%s) with snapshot %d, want Down, both errors, and the old snapshot",
			status.State, status.Problem, s.Snapshot().ID)
	}
}

func TestPanicsAreFailures(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	args := spec("cpu")
	args.Resources[0].Unit = config.NodeLoadAbsolute
	broken := false
	args.Capacity = func(*v1.Node, int) (float64, bool) {
		if broken {
			panic("no capacity")
		}
		return 1, true
	}
	good := 0
	var s *Subscription
	w.nodesSyncedAfter(func() {
		w.subscribe(args, "panics", func(*measured.Snapshot) { panic("cannot take it") })
		s = w.subscribe(args, "does not", func(*measured.Snapshot) { good++ })
	})
	w.answer(rows(measuredRows(0, "node-1", 0.5, 0), measuredRows(1, "node-1", 0.5, 0))...)
	if good != 1 || s.Status().State != Fresh {
		t.Errorf("state is %s, and the second profile was called %d times; want Fresh and once", s.Status().State, good)
	}

	w.clock.Step(30 * time.Second)
	w.asked()
	w.source.answers <- func(source.Row) (source.Result, error) { panic("cannot decode") }
	expectSleep(t, w.sleeping(), 6750*time.Millisecond)
	if status := s.Status(); status.State != Down || !strings.Contains(status.Problem, "panic: cannot decode") {
		t.Errorf("state is %s (%s), want Down by a panic", status.State, status.Problem)
	}

	broken = true
	w.clock.Step(30 * time.Second)
	expectSleep(t, w.answer(measuredRows(0, "node-1", 0.5, 0)...), 13500*time.Millisecond)
	if s.Snapshot().ID != 1 || s.Status().Failures != 2 {
		t.Errorf("snapshot %d after %d failures, want 1 after 2", s.Snapshot().ID, s.Status().Failures)
	}

	broken = false
	w.clock.Step(30 * time.Second)
	expectSleep(t, w.answer(measuredRows(0, "node-1", 0.5, 0)...), 30*time.Second)
	expectSample(t, s.Snapshot(), "node-1", s.Slot(0), measured.Sample{Value: 0.5, At: w.clock.Now().UnixNano()})
}

// TestIdle: without scheduling cycles refreshes get rarer after 5 minutes, here every 90 s, which is half of how old a
// sample may be and less than four times the interval.
func TestIdle(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "standby", nil)
	expectSleep(t, w.answer(), 30*time.Second)
	until := func(end time.Duration) {
		t.Helper()
		for begin := w.clock.Now(); w.clock.Since(begin) < end; {
			w.clock.Step(30 * time.Second)
			sleep := w.answer()
			if w.clock.Since(begin) < end {
				expectSleep(t, sleep, 30*time.Second)
			} else {
				expectSleep(t, sleep, 90*time.Second)
			}
		}
	}
	until(5 * time.Minute)
	if status := s.Status(); !status.Slow || status.Interval != 90*time.Second {
		t.Errorf("the status says an interval of %v, slow %v; want 1m30s, slow", status.Interval, status.Slow)
	}
	w.clock.Step(90 * time.Second)
	expectSleep(t, w.answer(), 90*time.Second)

	// A scheduling cycle brings a refresh at once, without any time passing, and the full rate for another 5 minutes.
	s.Touch()
	expectSleep(t, w.answer(), 30*time.Second)
	s.Touch()
	s.Touch()
	if status := s.Status(); status.Slow || status.Interval != 30*time.Second {
		t.Errorf("the status says an interval of %v, slow %v; want 30s, not slow", status.Interval, status.Slow)
	}
	w.clock.Step(30 * time.Second)
	expectSleep(t, w.answer(), 30*time.Second)
	until(5 * time.Minute)

	// Down while idle: retries go up to the idle interval.
	for _, want := range []time.Duration{6750, 13500, 27000, 54000, 81000, 81000} {
		w.clock.Step(2 * time.Minute)
		expectSleep(t, w.fail(errDown), want*time.Millisecond)
	}
	s.Touch()
	expectSleep(t, w.fail(errDown), 27*time.Second)
}

func TestTouchDuringAnIdleRefresh(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "standby", nil)
	w.answer()
	w.clock.Step(idleAfter)
	expectSleep(t, w.answer(), 90*time.Second)
	w.clock.Step(90 * time.Second)
	w.asked()
	s.Touch() // this refresh is as good as another one
	w.source.answers <- w.good()
	expectSleep(t, w.sleeping(), 30*time.Second)
	w.clock.Step(30 * time.Second)
	expectSleep(t, w.answer(), 30*time.Second)
}

func TestIdleIsNeverFaster(t *testing.T) {
	tests := []struct {
		name                  string
		interval, age, expect time.Duration
	}{
		{"four times the interval", 10 * time.Second, time.Hour, 40 * time.Second},
		{"half the age", 10 * time.Second, time.Minute, 30 * time.Second},
		{"the interval itself", 30 * time.Second, 31 * time.Second, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, makeNodes(1)...)
			args := spec("cpu")
			args.RefreshInterval, args.MaxSampleAge = tt.interval, tt.age
			w.subscribe(args, "standby", nil)
			w.answer()
			w.clock.Step(idleAfter)
			expectSleep(t, w.answer(), tt.expect)
		})
	}
}

// TestJitter: what is drawn, 0 to 1, moves the next refresh by 10 % either way; after a failure it only comes sooner.
func TestJitter(t *testing.T) {
	drawn := 0.0
	c := &collector{random: func() float64 { return drawn }, interval: 40 * time.Second, strictest: time.Hour}
	for _, tt := range []struct {
		drawn    float64
		failures int
		idle     bool
		expect   time.Duration // in seconds
	}{
		{0, 0, false, 36}, {0.5, 0, false, 40}, {1, 0, false, 44}, {0, 0, true, 144}, {1, 0, true, 176},
		{0, 1, false, 10}, {1, 1, false, 8}, {0, 2, false, 20}, {0, 3, false, 40}, {0, 1000000, false, 40}, {1, 1000000, false, 32},
		{0, 1000000, true, 160},
	} {
		drawn, c.failures = tt.drawn, tt.failures
		_, got := c.pace(tt.idle)
		expectSleep(t, got, tt.expect*time.Second)
	}
}

func TestEndDuringARequest(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "default", func(*measured.Snapshot) { t.Error("swapped is called after the end") })
	w.asked()
	w.end() // though no answer came
	if s.Status().Failures != 0 || w.event() != "" {
		t.Error("the end of a collector counts as a failure")
	}
	if w.clock.HasWaiters() {
		t.Error("a goroutine sleeps after the end")
	}
}

func TestEndWhileSleeping(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.answer()
	w.end()
	if w.clock.HasWaiters() {
		t.Error("a goroutine sleeps after the end")
	}
	s.Touch() // harmless
	if s.Snapshot() == nil {
		t.Error("what was measured is forgotten at once")
	}
}

// TestSlowAnswersDoNotMakeSamplesYounger: an answer is evaluated when it is asked for, and may come much later.
func TestSlowAnswersDoNotMakeSamplesYounger(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	s := w.subscribe(spec("cpu"), "default", nil)
	w.asked()
	w.source.answers <- func(to source.Row) (source.Result, error) {
		for _, r := range measuredRows(0, "node-1", 0.5, 10*time.Second) {
			r.send(to, seconds(start.Add(serverAhead)))
		}
		w.clock.Step(7 * time.Second)
		return source.Result{Evaluated: seconds(start.Add(serverAhead)), Asked: start, Received: w.clock.Now()}, nil
	}
	w.sleeping()
	expectSample(t, s.Snapshot(), "node-1", 0, measured.Sample{Value: 0.5, At: start.Add(-10 * time.Second).UnixNano()})
	if want := start.Add(7 * time.Second); !s.Snapshot().Taken.Equal(want) {
		t.Errorf("the snapshot is of %v, want %v", s.Snapshot().Taken, want)
	}
}
