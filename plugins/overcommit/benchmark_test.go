// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// crowded returns nodes with 30 ordinary pods each, all measured.
func crowded(tb testing.TB, count int) (*world, []*framework.NodeInfo) {
	of := use{nodes: map[string][3]float64{}, pods: map[string]float64{}}
	var nodes []*v1.Node
	var pods []*v1.Pod
	for i := 0; i < count; i++ {
		name := fmt.Sprintf("node-%d", i)
		nodes, of.nodes[name] = append(nodes, node(name)), [3]float64{2, 0.5, 1}
		for j := 0; j < 30; j++ {
			pod := on(ordinary(fmt.Sprintf("pod-%d-%d", i, j), "300m"), name, time.Duration(j)*10*time.Minute)
			pods, of.pods[pod.Name] = append(pods, pod), 0.1
		}
	}
	w := newWorld(tb, arguments(), of, nodes, pods...)
	infos, err := w.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		tb.Fatal(err)
	}
	return w, infos
}

// try begins the cycle of a pod, and filters and scores all nodes. It returns the number of those that fit.
func (w *world) try(pod *v1.Pod, infos []*framework.NodeInfo) (fit int) {
	ctx, state := context.Background(), framework.NewCycleState()
	w.plugin.PreFilter(ctx, state, pod)
	filter := w.plugin.PrepareFilter(state, pod)
	if filter == nil {
		return 0
	}
	for _, info := range infos {
		if filter(info) == nil {
			fit++
		}
		w.plugin.Score(ctx, state, pod, info.Node().Name)
	}
	return fit
}

// TestAllocations checks that the number of nodes does not matter, and that an ordinary pod needs none.
func TestAllocations(t *testing.T) {
	w, infos := crowded(t, 100)
	incoming := asking("incoming", 100)
	if fit := w.try(incoming, infos); fit != len(infos) {
		t.Fatalf("the pod fits %d nodes, want all", fit)
	}
	few := testing.AllocsPerRun(5, func() { w.try(incoming, infos[:1]) })
	if all := testing.AllocsPerRun(5, func() { w.try(incoming, infos) }); all != few {
		t.Errorf("%d nodes take %v allocations, and one takes %v", len(infos), all, few)
	}
	state, pod := framework.NewCycleState(), ordinary("ordinary", "1")
	plugintest.ExpectAllocations(t, "an ordinary pod", 0, func() {
		w.plugin.PreFilter(context.Background(), state, pod)
		if w.plugin.PrepareFilter(state, pod) != nil {
			t.Error("an ordinary pod has a filter")
		}
	})
}

// BenchmarkCycle has the plugin's part of a cycle with 5,000 nodes of 30 pods each.
func BenchmarkCycle(b *testing.B) {
	w, infos := crowded(b, 5000)
	incoming, other := asking("incoming", 100), ordinary("other", "1")
	w.try(incoming, infos)
	b.Run("steady", func(b *testing.B) {
		plugintest.PerNode(b, len(infos), func(int) { w.try(incoming, infos) })
	})
	b.Run("first after a refresh", func(b *testing.B) {
		plugintest.PerNode(b, len(infos), func(int) {
			w.plugin.viewed.Store(newView(w.plugin.viewed.Load().snapshot))
			w.try(incoming, infos)
		})
	})
	b.Run("ordinary pod", func(b *testing.B) {
		plugintest.PerNode(b, len(infos), func(int) { w.try(other, infos) })
	})
}
