// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"runtime"
	"testing"

	"kube-scheduler-fork/test/inprocess/decision"
)

// podsPerNode is the number of pods on each node when the memory at rest is measured.
const podsPerNode = 10

// BenchmarkAtRest reports the live bytes in a cluster with ten pods on each node, after the scheduler has scheduled
// pods of many kinds, so that its caches count. Run it once (-test.benchtime=1x).
func BenchmarkAtRest(b *testing.B) {
	decision.Quiet(b)
	for _, nodes := range numbers(b, *nodesFlag) {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", nodes, nodes*podsPerNode), func(b *testing.B) {
			c := newResting(b, nodes)
			defer c.Stop()
			reportAlive(b)
			runtime.KeepAlive(c)
		})
	}
}

// reportAlive reports the live bytes.
func reportAlive(b *testing.B) {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc), "alive-B")
}

// newResting returns a cluster whose pods are on their nodes, after some decisions of each shape without additional
// objects.
func newResting(tb testing.TB, nodes int) *cluster {
	c := newCluster(tb, &shape{name: "at rest", podsPerNode: podsPerNode}, nodes, 1)
	for i := range shapes {
		if s := &shapes[i]; s.objects == nil && s.node == nil && !s.fails && s.churn == nil {
			c.shape = s
			for _, pod := range c.pods(20) {
				if err := c.decide(pod); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	return c
}
