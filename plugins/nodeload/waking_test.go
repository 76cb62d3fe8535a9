// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/utils/pointer"
)

// Each step has the next loads of two nodes, and the total number of moves by then.
func TestWake(t *testing.T) {
	type step struct {
		loads [2]float64
		moves int
	}
	const none = unmeasured
	for _, test := range []struct {
		name    string
		stale   config.NodeLoadFilterOnStale
		running []*v1.Pod
		first   [2]float64
		steps   []step
	}{
		{"no pod was rejected", "", nil, [2]float64{0.3, 0.3}, []step{{[2]float64{0.1, 0.1}, 0}}},
		{"it cools", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.85, 0.9}, 0}, {[2]float64{0.8, 0.9}, 1}}},
		{"once, and not for every snapshot after", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.5, 0.9}, 1}, {[2]float64{0.4, 0.9}, 1}}},
		{"one after the other", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.5, 0.9}, 1}, {[2]float64{0.4, 0.5}, 2}}},
		{"two at once are one move", "", nil, [2]float64{0.9, 0.9}, []step{{[2]float64{0.5, 0.5}, 1}}},
		{"a pod in flight takes the place: 60 % + 3 of 10 cores", "", []*v1.Pod{on(pod("a", "3"), "node-0", 1000)}, [2]float64{0.9, 0.9},
			[]step{{[2]float64{0.6, 0.9}, 0}, {[2]float64{0.5, 0.9}, 1}}},
		{"a pod takes no more than the node has: 5 % + half of it", "", []*v1.Pod{on(pod("a", "9000"), "node-0", -150)}, [2]float64{0.9, 0.9},
			[]step{{[2]float64{0.4, 0.9}, 0}, {[2]float64{0.05, 0.9}, 1}}},
		{"it is not measured any more, and such pass", config.NodeLoadFilterOpen, nil, [2]float64{0.9, 0.9}, []step{{[2]float64{none, 0.9}, 1}}},
		{"it is not measured any more, and such do not pass", config.NodeLoadFilterClosed, nil, [2]float64{0.9, 0.9}, []step{{[2]float64{none, 0.9}, 0}}},
		{"too few are measured, and then all pass", config.NodeLoadFilterClosed, nil, [2]float64{0.9, 0.9}, []step{{[2]float64{none, none}, 1}}},
		{"measurements return", config.NodeLoadFilterClosed, nil, [2]float64{none, 0.9}, []step{{[2]float64{0.5, 0.9}, 1}}},
		{"measurements return, and it is hot", config.NodeLoadFilterClosed, nil, [2]float64{none, 0.9}, []step{{[2]float64{0.85, 0.9}, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := arguments(cpu(80))
			if test.stale != "" {
				args.FilterOnStale = test.stale
			}
			w := newWorld(t, args, nodes(2), test.running...)
			w.measureLoads(test.first[:]...)
			w.cycle(t, pod("incoming", "1"))
			for i, step := range test.steps {
				w.measureLoads(step.loads[:]...)
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

// TestWakeLateRejection checks a rejection by a cycle whose view was replaced meanwhile.
func TestWakeLateRejection(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(1))
	w.measureLoads(0.9)
	incoming := pod("incoming", "1")
	state := begin(w, incoming)
	w.measureLoads(0.9)
	if status := w.plugin.Filter(context.Background(), state, incoming, w.Node(t, "node-0")); status.IsSuccess() {
		t.Fatal("a hot node passes")
	}
	w.measureLoads(0.5)
	if got := w.moved(); got != 1 {
		t.Errorf("%d moves, want 1", got)
	}
}

// TestWakeOutage checks that pods are moved when the measurements become too old and no snapshot comes.
func TestWakeOutage(t *testing.T) {
	for _, stale := range []config.NodeLoadFilterOnStale{config.NodeLoadFilterOpen, config.NodeLoadFilterClosed} {
		args := arguments(cpu(80))
		args.FilterOnStale = stale
		w := newWorld(t, args, nodes(2))
		w.measure(map[string][]collector.Sample{"node-0": {w.sample(0.9, 0)}, "node-1": {w.sample(0.9, time.Minute)}})
		if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 2 {
			t.Fatalf("%s: rejected %v", stale, got.rejected)
		}
		w.clock.Step(3 * time.Minute)
		if got := w.moved(); got != 0 {
			t.Fatalf("%s: %d moves before the last measurement is too old", stale, got)
		}
		w.clock.Step(time.Second)
		plugintest.WaitFor(t, "pods are moved", func() bool { return w.moved() == 1 })
		if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 0 {
			t.Errorf("%s: rejected %v", stale, got.rejected)
		}
	}
}

// lowerWorld is a node at 90 %, and a pod of a lower priority whose use is measured by use.
func lowerWorld(t testing.TB, mode config.NodeLoadLowerPriorityLoad, lower ...*v1.Pod) (w *world, gold *v1.Pod, use func(name string, cores float64)) {
	w = newWorld(t, arguments(cpu(80)), nodes(1), lower...)
	w.plugin.args.LowerPriorityLoad = mode
	w.measureLoads(0.9)
	gold = pod("gold", "1")
	gold.Spec.Priority = pointer.Int32(1000)
	uses := map[string]collector.Sample{}
	w.plugin.current().usedByPods[0] = uses
	return w, gold, func(name string, cores float64) { uses["test/"+name] = w.sample(cores, 0) }
}

// TestWakeLowerPriority checks that a pod is retried when its node is open without the pods of a lower priority, and
// not if it was so when the pod was rejected.
func TestWakeLowerPriority(t *testing.T) {
	const ignored, preemptible = config.NodeLoadLowerPriorityIgnored, config.NodeLoadLowerPriorityPreemptible
	for _, test := range []struct {
		name          string
		mode          config.NodeLoadLowerPriorityLoad
		before, after float64
		code          framework.Code
		moves         int
	}{
		{"Ignored: still 85 %", ignored, 0.1, 0.5, framework.UnschedulableAndUnresolvable, 0},
		{"Ignored: 70 %", ignored, 0.1, 2, framework.UnschedulableAndUnresolvable, 1},
		{"Preemptible: 80 %, which is not below the threshold by the margin", preemptible, 0.1, 1, framework.UnschedulableAndUnresolvable, 0},
		{"Preemptible: 70 %", preemptible, 0.1, 2, framework.UnschedulableAndUnresolvable, 1},
		{"Preemptible: could be preempted before", preemptible, 2, 2, framework.Unschedulable, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, gold, use := lowerWorld(t, test.mode, on(pod("bronze", "1"), "node-0", -1000))
			use("bronze", test.before)
			if got := w.plugin.Filter(context.Background(), begin(w, gold), gold, w.Node(t, "node-0")).Code(); got != test.code {
				t.Fatalf("rejected with %v, want %v", got, test.code)
			}
			use("bronze", test.after)
			for i := 0; i < 2; i++ {
				w.plugin.wake(w.plugin.current(), w.plugin.allPods(), false)
				if got := w.moved(); got != test.moves {
					t.Errorf("%d moves, want %d", got, test.moves)
				}
			}
		})
	}
}

// TestWakeEnds checks that a hundred ends on a node on which a pod was rejected move pods once, and only if it is open.
func TestWakeEnds(t *testing.T) {
	for name, test := range map[string]struct {
		use   float64
		moves int
	}{"the node remains hot": {0.001, 0}, "the node is open": {0.05, 1}} {
		t.Run(name, func(t *testing.T) {
			var bronze []*v1.Pod
			for i := 0; i < 100; i++ {
				bronze = append(bronze, on(pod(fmt.Sprint("bronze-", i), "10m"), "node-0", -1000))
			}
			w, gold, use := lowerWorld(t, config.NodeLoadLowerPriorityPreemptible, bronze...)
			for _, p := range bronze {
				use(p.Name, test.use)
			}
			w.plugin.Filter(context.Background(), begin(w, gold), gold, w.Node(t, "node-0"))
			for _, p := range bronze {
				w.plugin.podEnded(p)
			}
			if got := w.moved(); got > 1 {
				t.Errorf("%d moves, want at most 1", got)
			}
			w.clock.Step(endedDelay)
			plugintest.WaitFor(t, "pods that ended have been considered", func() bool {
				w.plugin.mu.Lock()
				defer w.plugin.mu.Unlock()
				return !w.plugin.wakesSoon
			})
			if got := w.moved(); got != test.moves {
				t.Errorf("%d moves, want %d", got, test.moves)
			}
		})
	}
}

// BenchmarkClosed filters a node that is above its threshold, with 30 pods of a lower priority.
func BenchmarkClosed(b *testing.B) {
	var bronze []*v1.Pod
	for i := 0; i < 30; i++ {
		bronze = append(bronze, on(pod(fmt.Sprint("bronze-", i), "10m"), "node-0", -1000))
	}
	w, gold, use := lowerWorld(b, config.NodeLoadLowerPriorityPreemptible, bronze...)
	for _, p := range bronze {
		use(p.Name, 0.01)
	}
	state, info := begin(w, gold), w.Node(b, "node-0")
	plugintest.PerNode(b, 1, func(int) { w.plugin.Filter(context.Background(), state, gold, info) })
}

func TestInFlightMetric(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(2),
		on(pod("settled", "1"), "node-0", -1000), on(pod("new", "1"), "node-0", -100), on(pod("unmeasured", "1"), "node-1", -100), pod("waiting", "1"))
	w.measureLoads(0.9)
	// On an unmeasured node, a pod that came after the others' measurements is in flight.
	if got := plugintest.MetricValue(t, w.plugin.counters.inFlight); got != 2 {
		t.Errorf("%v pods in flight, want 2", got)
	}
}
