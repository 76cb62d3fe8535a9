// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, 30*time.Second, func() (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("waited in vain: %s", what)
	}
}

// TestWaitingPodsAreMoved: a step is what two nodes measure next, with 9.9 for nothing, and how often pods were moved
// then.
func TestWaitingPodsAreMoved(t *testing.T) {
	type step struct {
		loads [2]float64
		moves int
	}
	const none = 9.9
	for _, test := range []struct {
		name    string
		stale   config.NodeLoadFilterOnStale
		running []*v1.Pod
		first   [2]float64
		steps   []step
	}{
		{"no pod was rejected", "", nil, [2]float64{0.3, 0.3}, []step{{[2]float64{0.1, 0.1}, 0}}},
		{"it cools, but not enough for the pod", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.75, 0.9}, 0}, {[2]float64{0.71, 0.9}, 0}}},
		{"it cools: 70 % + 1 of 10 cores", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.85, 0.9}, 0}, {[2]float64{0.7, 0.9}, 1}}},
		{"once, and not for every snapshot after", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.5, 0.9}, 1}, {[2]float64{0.4, 0.9}, 1}}},
		{"one after the other", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.5, 0.9}, 1}, {[2]float64{0.4, 0.5}, 2}}},
		{"two at once are one move", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.5, 0.5}, 1}}},
		{"a pod in flight takes the place: 50 % + 3 + 1 of 10 cores", "", []*v1.Pod{on(pod("a", "3"), "node-0", 1000)}, [2]float64{0.9, 0.9},
			[]step{{[2]float64{0.5, 0.9}, 0}, {[2]float64{0.4, 0.9}, 1}}},
		{"a pod takes no more than the node has: 5 % + half of it + 1 of 10 cores", "", []*v1.Pod{on(pod("a", "9000"), "node-0", -150)}, [2]float64{0.9, 0.9},
			[]step{{[2]float64{0.3, 0.9}, 0}, {[2]float64{0.05, 0.9}, 1}}},
		{"it is not measured any more, and such pass", config.NodeLoadFilterOpen, nil, [2]float64{0.9, 0.9}, []step{{[2]float64{none, 0.9}, 1}}},
		{"it is not measured any more, and such do not pass", config.NodeLoadFilterClosed, nil, [2]float64{0.9, 0.9}, []step{{[2]float64{none, 0.9}, 0}}},
		{"too few are measured, and then all pass", config.NodeLoadFilterClosed, nil, [2]float64{0.9, 0.9}, []step{{[2]float64{none, none}, 1}}},
		{"measurements return", config.NodeLoadFilterClosed, nil, [2]float64{none, 0.9}, []step{{[2]float64{0.5, 0.9}, 1}}},
		{"measurements return, and it is hot", config.NodeLoadFilterClosed, nil, [2]float64{none, 0.9}, []step{{[2]float64{0.75, 0.9}, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := arguments(cpu(80))
			if test.stale != "" {
				args.FilterOnStale = test.stale
			}
			w := newWorld(t, args, nodes(2), test.running...)
			measure := func(loads [2]float64) {
				samples := map[string][]measured.Sample{}
				for i, name := range []string{"node-0", "node-1"} {
					if loads[i] != none {
						samples[name] = []measured.Sample{w.sample(loads[i], 0)}
					}
				}
				w.measure(samples)
			}
			measure(test.first)
			w.cycle(t, pod("large", "4"))
			w.cycle(t, pod("incoming", "1"))
			for i, step := range test.steps {
				measure(step.loads)
				if got := w.moved(); got != step.moves {
					t.Errorf("after step %d: %d moves, want %d", i+1, got, step.moves)
				}
			}
			for _, event := range w.moves {
				if event != moved {
					t.Errorf("moved by %v", event)
				}
			}
		})
	}
}

// TestARejectionThatComesLate is noted in a view that has been replaced meanwhile.
func TestARejectionThatComesLate(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(1))
	measure := func(load float64) {
		w.measure(map[string][]measured.Sample{"node-0": {w.sample(load, 0)}})
	}
	measure(0.9)
	old := w.plugin.current()
	measure(0.9)
	old.reject(0, 0, 1)
	measure(0.5)
	if got := w.moved(); got != 1 {
		t.Errorf("%d moves, want 1", got)
	}
}

// TestARejectionThatComesLateIsNotLost when no snapshot comes any more; nor is that of a node that the snapshot did not
// know.
func TestARejectionThatComesLateIsNotLost(t *testing.T) {
	args := arguments(cpu(80))
	args.FilterOnStale = config.NodeLoadFilterClosed
	for _, test := range []struct {
		name   string
		reject func(before, now *view)
	}{
		{"nothing was rejected", nil},
		{"in the view before", func(before, _ *view) { before.reject(0, 0, 1) }},
		{"on a stranger in the view before", func(before, _ *view) { before.reject(-1, 0, 1) }},
		{"on a stranger", func(_, now *view) { now.reject(-1, 0, 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, args, nodes(2))
			measure := func() {
				w.measure(map[string][]measured.Sample{"node-0": {w.sample(0.9, 0)}, "node-1": {w.sample(0.9, 0)}})
			}
			measure()
			before := w.plugin.current()
			measure()
			want := 0
			if test.reject != nil {
				test.reject(before, w.plugin.current())
				want = 1
			}
			w.clock.Step(3*time.Minute + time.Second)
			waitFor(t, "all measurements are too old", func() bool {
				w.plugin.mu.Lock()
				defer w.plugin.mu.Unlock()
				return w.plugin.outage == nil
			})
			if got := w.moved(); got != want {
				t.Errorf("%d moves, want %d", got, want)
			}
		})
	}
}

// TestPodsAreMovedWhenMeasurementsGrowOld although no snapshot comes any more.
func TestPodsAreMovedWhenMeasurementsGrowOld(t *testing.T) {
	args := arguments(cpu(80))
	args.FilterOnStale = config.NodeLoadFilterClosed
	w := newWorld(t, args, nodes(2))
	w.measure(map[string][]measured.Sample{"node-0": {w.sample(0.9, 0)}, "node-1": {w.sample(0.9, time.Minute)}})
	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 2 {
		t.Fatalf("rejected %v", got.rejected)
	}
	w.clock.Step(3 * time.Minute) // one of two is just not too old, which is half of them
	if got := w.moved(); got != 0 {
		t.Fatalf("%d moves before measurements are too few", got)
	}
	w.clock.Step(time.Second)
	waitFor(t, "pods are moved", func() bool { return w.moved() == 1 })
	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 0 {
		t.Errorf("rejected %v", got.rejected)
	}
}

// TestPodsAreMovedWhenANodeGrowsOld: where nodes without a measurement pass, each of them does when its own is too old,
// however many others have one.
func TestPodsAreMovedWhenANodeGrowsOld(t *testing.T) {
	for _, percent := range []int32{0, 50} {
		args := arguments(cpu(80))
		args.MinFreshNodesPercent = percent
		w := newWorld(t, args, nodes(4))
		w.measure(map[string][]measured.Sample{
			"node-0": {w.sample(0.9, time.Minute)}, "node-1": {w.sample(0.9, 30*time.Second)}, "node-2": {w.sample(0.9, 0)}, "node-3": {w.sample(0.9, 0)},
		})
		for i, wait := range []time.Duration{2*time.Minute + time.Second, 30 * time.Second} {
			// Pods are rejected after the snapshot, as while Prometheus is down.
			if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 4-i {
				t.Fatalf("rejected %v", got.rejected)
			}
			w.clock.Step(wait)
			waitFor(t, "pods are moved", func() bool { return w.moved() == i+1 })
			waitFor(t, "the timer is set again", w.clock.HasWaiters)
			if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 3-i {
				t.Errorf("rejected %v", got.rejected)
			}
		}
	}
}

func TestThereAreNoMovesAfterClose(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(1))
	w.measure(map[string][]measured.Sample{"node-0": {w.sample(0.9, 0)}})
	w.cycle(t, pod("incoming", "1"))
	w.plugin.Close()
	w.measure(map[string][]measured.Sample{"node-0": {w.sample(0.1, 0)}})
	if w.clock.HasWaiters() || w.moved() != 0 {
		t.Errorf("timer: %v, %d moves", w.clock.HasWaiters(), w.moved())
	}
}

// TestSettledPodsAreSkipped: which pods are in all measurements is known without a look at their nodes.
func TestSettledPodsAreSkipped(t *testing.T) {
	short := network(0)
	short.Window.Duration = time.Minute
	w := newWorld(t, arguments(cpu(0), short), nodes(2))
	if sums := make([]float64, 4); w.plugin.current().sumInFlight([]*v1.Pod{on(pod("a", "1"), "node-0", 0)}, nil, sums) != 0 {
		t.Error("a pod is in flight before the first snapshot")
	}
	w.measure(map[string][]measured.Sample{
		"node-0": {w.sample(0.1, 0), w.sample(0.1, 50*time.Second)}, "node-1": {w.sample(0.1, 20*time.Second), w.sample(0.1, 0)},
	})
	v := w.plugin.current()
	if want := epoch.Add(-320 * time.Second).UnixNano(); v.settledAt != want {
		t.Errorf("settled at %v, want %v", time.Unix(0, v.settledAt), time.Unix(0, want))
	}
	v.samples = nil // a look would fail
	v.sumInFlight([]*v1.Pod{on(pod("a", "1"), "node-0", -320)}, nil, make([]float64, 4))
}

// TestPodsInFlightAreCounted by the metric.
func TestPodsInFlightAreCounted(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(2),
		on(pod("settled", "1"), "node-0", -1000), on(pod("new", "1"), "node-0", -100), on(pod("unmeasured", "1"), "node-1", -100), pod("waiting", "1"))
	w.measure(map[string][]measured.Sample{"node-0": {w.sample(0.9, 0)}})
	if got := gauge(t, w.plugin.counters.inFlight); got != 1 {
		t.Errorf("%v pods in flight, want 1", got)
	}
}
