// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
)

func TestExplain(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(3))
	incoming, state := pod("incoming", "1"), framework.NewCycleState()
	if got := w.plugin.Explain(state, incoming, []string{"node-0"}); got != "" {
		t.Errorf("without a cycle: %q", got)
	}
	w.measure(map[string][]collector.Sample{"node-0": {w.sample(0.3, 20*time.Second)}, "node-1": {w.sample(0.805, 20*time.Second)}})
	w.plugin.PreFilter(context.Background(), state, incoming)
	want := "Measurements were taken 0s before the decision. node-0: cpu 30%. node-1: cpu 81%. node-2: cpu not measured. The pod is estimated to use: cpu 1."
	if got := w.plugin.Explain(state, incoming, []string{"node-0", "node-1", "node-2", "none"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
