// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const benchmarkNodes = 5000

// benchmark calls a function for each of 5,000 nodes in a new cycle of a pod, which is a target or not.
func benchmark(b *testing.B, namespace string, call func(pl *Chaos, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo)) {
	w := newWorld(b, everything(), makeNodes(benchmarkNodes))
	all, err := w.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	pod := st.MakePod().Namespace(namespace).Name("pod").UID("8b9a1c44-5a35-4e5f-9d5e-0c5d1f3b7f11").Obj()
	plugintest.PerNode(b, benchmarkNodes, func(int) {
		state := framework.NewCycleState()
		w.plugin.PreFilter(context.Background(), state, pod)
		for _, nodeInfo := range all {
			call(w.plugin, state, pod, nodeInfo)
		}
	})
}

func filter(pl *Chaos, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) {
	pl.Filter(context.Background(), state, pod, nodeInfo)
}

func score(pl *Chaos, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) {
	pl.Score(context.Background(), state, pod, nodeInfo.Node().Name)
}

func BenchmarkFilter(b *testing.B) {
	b.Run("target", func(b *testing.B) { benchmark(b, "test", filter) })
	b.Run("other", func(b *testing.B) { benchmark(b, "other", filter) })
}

func BenchmarkScore(b *testing.B) {
	b.Run("target", func(b *testing.B) { benchmark(b, "test", score) })
	b.Run("other", func(b *testing.B) { benchmark(b, "other", score) })
}

func BenchmarkNormalizeScore(b *testing.B) {
	w := newWorld(b, everything(), makeNodes(benchmarkNodes))
	var scores framework.NodeScoreList
	for _, node := range w.nodes {
		scores = append(scores, framework.NodeScore{Name: node.Name})
	}
	pod := makePod(1)
	plugintest.PerNode(b, benchmarkNodes, func(int) {
		w.plugin.NormalizeScore(context.Background(), framework.NewCycleState(), pod, scores)
	})
}
