// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// TestParallelCalls filters and scores the same nodes and copies of them with 16 workers, while snapshots arrive and
// the status is read. Within a cycle, all predictions must be the same.
func TestParallelCalls(t *testing.T) {
	const workers, cycles = 16, 60
	all := nodes(30)
	var running []*v1.Pod
	for _, n := range all {
		running = append(running, on(pod("on-"+n.Name, "1"), n.Name, 0))
	}
	w := newWorld(t, arguments(cpu(80)), all, running...)
	measure := func(load float64) {
		samples := map[string][]collector.Sample{}
		for _, n := range all {
			samples[n.Name] = []collector.Sample{w.sample(load, 0)}
		}
		w.measure(samples)
	}
	measure(0.1)
	infos, err := w.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	for _, other := range []func(i int){func(i int) { measure(float64(i%80) / 100) }, func(int) { get(w, "GET", "") }} {
		other := other
		others.Add(1)
		go func() {
			defer others.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					other(i)
				}
			}
		}()
	}
	incoming, ctx := pod("incoming", "1"), context.Background()
	for i := 0; i < cycles; i++ {
		state := framework.NewCycleState()
		if i%2 == 0 {
			w.plugin.PreFilter(ctx, state, incoming)
		}
		scores, passes := make([][]int64, workers), make([][]bool, workers)
		plugintest.InParallel(workers, func(k int) {
			for _, info := range infos {
				passes[k] = append(passes[k], w.plugin.Filter(ctx, state, incoming, info).IsSuccess())
				if i%2 == 0 {
					copy := info.Clone()
					copy.AddPod(pod("nominated", "9"))
					if w.plugin.Filter(ctx, state.Clone(), incoming, copy).IsSuccess() {
						t.Error("a copy with a large pod passes")
					}
				}
				score, _ := w.plugin.Score(ctx, state, incoming, info.Node().Name)
				scores[k] = append(scores[k], score)
			}
		})
		for k := range scores {
			for j := range infos {
				if scores[k][j] != scores[0][0] || passes[k][j] != passes[0][0] {
					t.Fatalf("cycle %d: worker %d says %d, %v of equal nodes; another %d, %v", i, k, scores[k][j], passes[k][j], scores[0][0], passes[0][0])
				}
			}
		}
	}
	close(stop)
	others.Wait()
}
