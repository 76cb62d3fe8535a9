// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/utils/pointer"
)

func TestHighestLoad(t *testing.T) {
	memory := cpu(0)
	memory.Name, memory.Query = "memory", "used"
	args := arguments(cpu(80), memory)
	args.MinFreshNodesPercent = pointer.Int32(30)
	w := newWorld(t, args, nodes(3))
	fresh := func(cpu, memory float64) []collector.Sample {
		return []collector.Sample{w.sample(cpu, 20*time.Second), w.sample(memory, 20*time.Second)}
	}
	old := w.sample(0.99, 24*time.Hour)
	w.measure(map[string][]collector.Sample{"node-0": fresh(0.3, 0.6), "node-1": {w.sample(0.2, 20*time.Second), old}})
	state := framework.NewCycleState()
	load := func(node string) (float64, bool) {
		return HighestLoad(state, w.Node(t, node))
	}
	if got, known := load("node-0"); known {
		t.Errorf("without a cycle it is %g %%", got)
	}
	w.plugin.PreFilter(context.Background(), state, pod("incoming", "1"))
	for _, want := range []struct {
		node  string
		load  float64
		known bool
	}{{"node-0", 60, true}, {"node-1", 20, true}, {"node-2", 0, false}} {
		if got, known := load(want.node); got != want.load || known != want.known {
			t.Errorf("%s is at %g %%, known: %v; want %g, %v", want.node, got, known, want.load, want.known)
		}
	}
}

func TestHighestLoadTooFewMeasurements(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(3))
	w.measure(map[string][]collector.Sample{"node-0": {w.sample(0.9, 20*time.Second)}})
	if got, known := HighestLoad(begin(w, pod("incoming", "1")), w.Node(t, "node-0")); known {
		t.Errorf("one node of three is measured, and its load is said to be %g %%", got)
	}
}
