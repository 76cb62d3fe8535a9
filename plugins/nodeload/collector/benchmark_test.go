// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

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
	var answer replay
	for i := 0; i < count; i++ {
		name, ip := fmt.Sprintf("node-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		nodes = append(nodes, makeNode(name, internalIP(ip)))
		if by != config.NodeLoadMatchName {
			name = ip + ":9100"
		}
		answer.rows = append(answer.rows, measuredRows(0, name, 0.5, 10*time.Second)...)
	}
	args := spec("cpu", "memory", "network", "diskIO", "gpu")
	for i := range args.Resources {
		args.Resources[i].By = by
	}
	w := newMeasuredWorld(b, args, nodes...)
	w.collector.source = answer
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		w.refresh(context.Background())
	}
	b.StopTimer()
	if got := w.last().Nodes["node-4999"][4]; got.Missing != Present || w.last().Unmatched != 0 {
		b.Fatalf("the last sample is %+v, and %d series are unmatched", got, w.last().Unmatched)
	}
}
