// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// replay answers with the same rows each time, without reading anything.
type replay struct{ labels [][]byte }

func (r replay) Ask(_ context.Context, _ string, queries []source.Query, to source.Row) (source.Result, error) {
	now := time.Now()
	at := seconds(now)
	for slot := range queries {
		for _, label := range r.labels {
			to(slot, source.Value, label, 0.5)
		}
		for _, label := range r.labels {
			to(slot, source.Timestamp, label, at-10)
		}
	}
	return source.Result{Evaluated: at, Received: now}, nil
}

func (replay) Close() {}

// BenchmarkRefresh is a refresh without the request: 5,000 nodes are listed and matched by address and port, their
// values and timestamps of 5 resources noted and classified, the snapshot is made and swapped, and the metrics set.
func BenchmarkRefresh(b *testing.B) {
	for _, by := range []config.NodeLoadMatchBy{config.NodeLoadMatchName, config.NodeLoadMatchInternalIP, config.NodeLoadMatchAuto} {
		b.Run(string(by), func(b *testing.B) { benchmarkRefresh(b, by) })
	}
}

func benchmarkRefresh(b *testing.B, by config.NodeLoadMatchBy) {
	const count = 5000
	var nodes []*v1.Node
	var labels [][]byte
	for i := 0; i < count; i++ {
		name, ip := fmt.Sprintf("node-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		nodes = append(nodes, makeNode(name, internalIP(ip)))
		if by != config.NodeLoadMatchName {
			name = ip + ":9100"
		}
		labels = append(labels, []byte(name))
	}
	w := newWorld(b, nodes...)
	w.nodes.unsynced = 1
	w.pool.connect = func(config.NodeLoadPrometheus) (asker, error) { return replay{labels: labels}, nil }
	args := spec("cpu", "memory", "network", "diskIO", "gpu")
	for i := range args.Resources {
		args.Resources[i].Match.By = by
	}
	s := w.subscribe(args, "default", nil)
	w.sleeping()
	c := s.collector // its goroutine sleeps, and leaves what is its own to this one
	c.lastTouched = start
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		c.refresh(context.Background())
	}
	b.StopTimer()
	snapshot := s.Snapshot()
	if got := sampleOf(b, snapshot, "node-4999", 4); got.Missing != 0 || snapshot.Unmatched != 0 {
		b.Fatalf("the last sample is %+v, and %d series are unmatched", got, snapshot.Unmatched)
	}
}
