// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// benchmarkNodes is how many nodes there are, of which benchmarkScored are scored.
const benchmarkNodes, benchmarkScored = 5000, 500

// large is a cluster of 5,000 nodes in 250 racks and 3 zones. Each of 100,000 datasets is on three nodes, and one is on
// all.
func large(b *testing.B) *cluster {
	held := make([][]string, benchmarkNodes)
	for i := 0; i < 100000; i++ {
		for _, on := range []int{i, 7 * i, 11 * i} {
			held[on%benchmarkNodes] = append(held[on%benchmarkNodes], fmt.Sprintf("d%d", i))
		}
	}
	c := newCluster(b)
	for i := range held {
		c.add(nodeWith(fmt.Sprintf("node-%04d", i), fmt.Sprintf("rack-%d", i/20), fmt.Sprintf("zone-%d", i%3), "all,"+strings.Join(held[i], ",")))
	}
	return c
}

// unchanged is a snapshot that says that nothing changes, as that of this project's scheduler does.
type unchanged struct{ *cluster }

func (u unchanged) NodeInfos() framework.NodeInfoLister { return u.snapshot.NodeInfos() }

func (unchanged) ChangedSince(position int64) ([]*framework.NodeInfo, int64, bool) {
	return nil, 1, position == 1
}

// forEachPod runs a benchmark for pods that read nothing, one dataset, 64 of them, and one that is on all nodes.
func forEachPod(b *testing.B, run func(b *testing.B, pl *DataLocality, c *cluster, pod *v1.Pod)) {
	c := large(b)
	c.NodeInfos()
	pl := mustNew(b, arguments(within), unchanged{c})
	many := "d0=1Gi"
	for i := 1; i < maxReads; i++ {
		many += fmt.Sprintf(",d%d=%dGi", i, i)
	}
	pods := map[string]*v1.Pod{"nothing": st.MakePod().Name("pod").Obj(), "1 dataset": reader("d42=10Gi"), "64 datasets": reader(many), "a dataset on all nodes": reader("all=1Gi")}
	for name, pod := range pods {
		pl.PreScore(context.Background(), framework.NewCycleState(), pod, nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run(b, pl, c, pod)
		})
	}
}

// BenchmarkPreFilter is one call for each pod, which reads something else than the one before it.
func BenchmarkPreFilter(b *testing.B) {
	forEachPod(b, func(b *testing.B, pl *DataLocality, _ *cluster, pod *v1.Pod) {
		for i := 0; i < b.N; i++ {
			pl.marked = nil
			pl.PreFilter(context.Background(), framework.NewCycleState(), pod)
		}
	})
}

// BenchmarkPreFilterOfTheSame is the same for pods that read the same.
func BenchmarkPreFilterOfTheSame(b *testing.B) {
	forEachPod(b, func(b *testing.B, pl *DataLocality, _ *cluster, pod *v1.Pod) {
		for i := 0; i < b.N; i++ {
			pl.PreFilter(context.Background(), framework.NewCycleState(), pod)
		}
	})
}

// BenchmarkFilter is Filter for all nodes.
func BenchmarkFilter(b *testing.B) {
	forEachPod(b, func(b *testing.B, pl *DataLocality, c *cluster, pod *v1.Pod) {
		state := framework.NewCycleState()
		all, err := c.NodeInfos().List()
		c.must(err)
		pl.PreFilter(context.Background(), state, pod)
		b.ResetTimer()
		began := time.Now()
		for i := 0; i < b.N; i++ {
			for _, nodeInfo := range all {
				pl.Filter(context.Background(), state, pod, nodeInfo)
			}
		}
		b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(b.N*len(all)), "ns/node")
	})
}

// BenchmarkScore is Score, or ScoreNodes, for the nodes that are scored.
func BenchmarkScore(b *testing.B) {
	for _, atOnce := range []bool{false, true} {
		b.Run(fmt.Sprintf("at once %t", atOnce), func(b *testing.B) {
			forEachPod(b, func(b *testing.B, pl *DataLocality, c *cluster, pod *v1.Pod) {
				state, scores := framework.NewCycleState(), make(framework.NodeScoreList, benchmarkScored)
				all, err := c.NodeInfos().List()
				c.must(err)
				all = all[:benchmarkScored]
				for i := range all {
					scores[i].Name = all[i].Node().Name
				}
				pl.PreScore(context.Background(), state, pod, nil)
				b.ResetTimer()
				began := time.Now()
				for i := 0; i < b.N; i++ {
					if atOnce {
						pl.ScoreNodes(state, pod, all, scores)
						continue
					}
					for n := range scores {
						scores[n].Score, _ = pl.Score(context.Background(), state, pod, scores[n].Name)
					}
				}
				b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(b.N*benchmarkScored), "ns/node")
			})
		})
	}
}
