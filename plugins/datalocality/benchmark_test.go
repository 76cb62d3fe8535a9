// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// benchmarkNodes is how many nodes there are, of which benchmarkScored are scored.
const benchmarkNodes, benchmarkScored = 5000, 500

// large is a cluster of 5,000 nodes in 250 racks and 3 zones. Each of 100,000 datasets is on three nodes, and one is on
// all.
func large(b *testing.B) *plugintest.Cluster {
	held := make([][]string, benchmarkNodes)
	for i := 0; i < 100000; i++ {
		for _, on := range []int{i, 7 * i, 11 * i} {
			held[on%benchmarkNodes] = append(held[on%benchmarkNodes], fmt.Sprintf("d%d", i))
		}
	}
	c := plugintest.NewCluster(b)
	for i := range held {
		c.Add(nodeWith(fmt.Sprintf("node-%04d", i), fmt.Sprintf("rack-%d", i/20), fmt.Sprintf("zone-%d", i%3), "all,"+strings.Join(held[i], ",")))
	}
	return c
}

// unchanged is a snapshot that says that nothing changes, as that of this project's scheduler does.
type unchanged struct{ *plugintest.Cluster }

func (u unchanged) NodeInfos() framework.NodeInfoLister { return u.Snapshot.NodeInfos() }

func (unchanged) ChangedSince(position int64) ([]*framework.NodeInfo, int64, bool) {
	return nil, 1, position == 1
}

// forEachPod runs a benchmark for pods that read nothing, one dataset, 64 of them, and one that is on all nodes.
func forEachPod(b *testing.B, run func(b *testing.B, pl *DataLocality, c *plugintest.Cluster, pod *v1.Pod)) {
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
		b.Run(name, func(b *testing.B) { run(b, pl, c, pod) })
	}
}

// BenchmarkPreFilter is one call for each pod, which reads something else than the one before it.
func BenchmarkPreFilter(b *testing.B) {
	forEachPod(b, func(b *testing.B, pl *DataLocality, _ *plugintest.Cluster, pod *v1.Pod) {
		plugintest.PerNode(b, benchmarkNodes, func(int) {
			pl.marked = nil
			pl.PreFilter(context.Background(), framework.NewCycleState(), pod)
		})
	})
}

// BenchmarkPreFilterOfTheSame is the same for pods that read the same.
func BenchmarkPreFilterOfTheSame(b *testing.B) {
	forEachPod(b, func(b *testing.B, pl *DataLocality, _ *plugintest.Cluster, pod *v1.Pod) {
		plugintest.PerNode(b, benchmarkNodes, func(int) {
			pl.PreFilter(context.Background(), framework.NewCycleState(), pod)
		})
	})
}

// BenchmarkFilter is Filter for all nodes.
func BenchmarkFilter(b *testing.B) {
	forEachPod(b, func(b *testing.B, pl *DataLocality, c *plugintest.Cluster, pod *v1.Pod) {
		state, all := framework.NewCycleState(), c.All()
		pl.PreFilter(context.Background(), state, pod)
		plugintest.PerNode(b, len(all), func(int) {
			for _, nodeInfo := range all {
				pl.Filter(context.Background(), state, pod, nodeInfo)
			}
		})
	})
}

// BenchmarkScore is Score, or ScoreNodes, for the nodes that are scored.
func BenchmarkScore(b *testing.B) {
	for _, atOnce := range []bool{false, true} {
		b.Run(fmt.Sprintf("at once %t", atOnce), func(b *testing.B) {
			forEachPod(b, func(b *testing.B, pl *DataLocality, c *plugintest.Cluster, pod *v1.Pod) {
				state, scores := framework.NewCycleState(), make(framework.NodeScoreList, benchmarkScored)
				all := c.All()[:benchmarkScored]
				for i := range all {
					scores[i].Name = all[i].Node().Name
				}
				pl.PreScore(context.Background(), state, pod, nil)
				plugintest.PerNode(b, benchmarkScored, func(int) {
					if atOnce {
						pl.ScoreNodes(state, pod, all, scores)
						return
					}
					for n := range scores {
						scores[n].Score, _ = pl.Score(context.Background(), state, pod, scores[n].Name)
					}
				})
			})
		})
	}
}
