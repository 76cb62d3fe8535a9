// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kube-scheduler-fork/test/inprocess/decision"
)

// BenchmarkWhatIf measures how long a dry run of a pod blocks scheduling.
// It is compiled only with the patched tree: see scripts/stock-and-fork.sh.
func BenchmarkWhatIf(b *testing.B) {
	decision.Quiet(b)
	for i := range shapes {
		shape := &shapes[i]
		for _, nodes := range numbers(b, *nodesFlag) {
			for _, parallelism := range numbers(b, *parallelismFlag) {
				var c *cluster
				b.Run(fmt.Sprintf("shape=%s/nodes=%d/parallelism=%d", shape.name, nodes, parallelism), func(sub *testing.B) {
					if c == nil {
						c = newCluster(b, shape, nodes, parallelism)
						c.AwaitPods()
					}
					var held time.Duration
					for n := 0; n < sub.N; n++ {
						pod := c.Complete(shape.decided()(c.made+n, nodes))[0]
						_, took, err := c.Records.Sources.WhatIf(context.Background(), pod, true)
						if err != nil {
							sub.Fatal(err)
						}
						held += took
					}
					sub.ReportMetric(float64(held.Nanoseconds())/float64(sub.N), "held-ns/op")
				})
				if c != nil {
					c.Stop()
				}
			}
		}
	}
}
