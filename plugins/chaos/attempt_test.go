// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"math/rand"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pseudorandom"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func makeNodes(count int) []*v1.Node {
	var nodes []*v1.Node
	for i := 1; i <= count; i++ {
		nodes = append(nodes, st.MakeNode().Name(fmt.Sprintf("node-%d", i)).Obj())
	}
	return nodes
}

// keysOf are the keys of the first attempt of the pod with that number.
func keysOf(pod int) keys {
	return newKeys(pseudorandom.Key(7, fmt.Sprintf("uid-%d", pod), "1"))
}

// TestRejectsAndRedirectsPercent counts how often something happens in 10,000 draws. With a chance of p it happens
// 10,000 × p times, with a standard deviation of √(10,000 × p × (1-p)), at most 50; four of those are allowed. The
// draws are always the same.
func TestRejectsAndRedirectsPercent(t *testing.T) {
	const draws = 10000
	tests := []struct {
		name    string
		percent int32
		happens func(i int, percent int32) bool
	}{
		{name: "no node is rejected", percent: 0, happens: func(i int, percent int32) bool { k := keysOf(1); return k.rejects(fmt.Sprint(i), percent) }},
		{name: "nodes", percent: 30, happens: func(i int, percent int32) bool { k := keysOf(1); return k.rejects(fmt.Sprint(i), percent) }},
		{name: "all nodes", percent: 100, happens: func(i int, percent int32) bool { k := keysOf(1); return k.rejects(fmt.Sprint(i), percent) }},
		{name: "one node, for many pods", percent: 50, happens: func(i int, percent int32) bool { k := keysOf(i); return k.rejects("node-1", percent) }},
		{name: "no pod is redirected", percent: 0, happens: func(i int, percent int32) bool { k := keysOf(i); return k.redirects(percent) }},
		{name: "pods", percent: 20, happens: func(i int, percent int32) bool { k := keysOf(i); return k.redirects(percent) }},
		{name: "all pods", percent: 100, happens: func(i int, percent int32) bool { k := keysOf(i); return k.redirects(percent) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			count := 0
			for i := 0; i < draws; i++ {
				if tt.happens(i, tt.percent) {
					count++
				}
			}
			want, allowed := draws/100*int(tt.percent), 200
			if tt.percent == 0 || tt.percent == 100 {
				allowed = 0
			}
			if count < want-allowed || count > want+allowed {
				t.Errorf("it happened %d times of %d, want %d ± %d", count, draws, want, allowed)
			}
		})
	}
}

// TestScoreIsInRange checks that all scores occur, and no others. They are uniform because pseudorandom's numbers are.
func TestScoreIsInRange(t *testing.T) {
	seen, k := map[int64]bool{}, keysOf(1)
	for i := 0; i < 10100; i++ {
		seen[k.score(fmt.Sprint(i))] = true
	}
	if len(seen) != 101 || !seen[0] || !seen[100] {
		t.Errorf("the scores have %d values, want 0 to 100", len(seen))
	}
}

func TestDrawNode(t *testing.T) {
	var nodes framework.NodeScoreList
	for _, node := range makeNodes(10) {
		nodes = append(nodes, framework.NodeScore{Name: node.Name})
	}
	counts := map[string]int{}
	for pod := 0; pod < 10000; pod++ {
		k := keysOf(pod)
		drawn := k.drawNode(nodes)
		counts[drawn]++

		shuffled := append(framework.NodeScoreList{}, nodes...)
		rand.New(rand.NewSource(int64(pod))).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := k.drawNode(shuffled); got != drawn {
			t.Fatalf("%s is drawn in one order and %s in another", drawn, got)
		}
		var others framework.NodeScoreList
		for _, node := range nodes {
			if node.Name != drawn {
				others = append(others, node)
			}
		}
		second := k.drawNode(others)
		if second == drawn || second == "" {
			t.Fatalf("%q is drawn of the nodes without %s", second, drawn)
		}
		// Of two lists that differ in one node the same is drawn, unless that is the one.
		if got := k.drawNode(shuffled[:9]); got != drawn && shuffled[9].Name != drawn {
			t.Fatalf("%s is drawn without %s, want %s", got, shuffled[9].Name, drawn)
		}
	}
	// Each of ten nodes is expected 1,000 times, with a standard deviation of √(10,000 × 0.1 × 0.9) = 30.
	for _, node := range nodes {
		if count := counts[node.Name]; count < 1000-4*30 || count > 1000+4*30 {
			t.Errorf("%s is drawn %d times, want 1000 ± 120", node.Name, count)
		}
	}
	k := keysOf(1)
	if got := k.drawNode(nil); got != "" {
		t.Errorf("%q is drawn of no nodes", got)
	}
}

// TestKeysAreIndependent checks that a pod's coins, dice and node have nothing to do with each other: among the nodes
// that lose their coin, the mean score is that of all nodes.
func TestKeysAreIndependent(t *testing.T) {
	var sum, count int64
	for pod := 0; pod < 200; pod++ {
		k := keysOf(pod)
		for i := 0; i < 101; i++ {
			if name := fmt.Sprint(i); k.rejects(name, 50) {
				sum += k.score(name)
				count++
			}
		}
	}
	// About 10,100 scores: mean 50 with a standard deviation of 29.15/√10,100 = 0.29.
	if mean := float64(sum) / float64(count); mean < 50-4*0.29 || mean > 50+4*0.29 {
		t.Errorf("the mean score of %d nodes that lose their coin is %.2f, want 50 ± 1.16", count, mean)
	}
}
