// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"sort"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

func newCluster(t testing.TB, nodes ...*v1.Node) *plugintest.Cluster {
	t.Helper()
	c := plugintest.NewCluster(t)
	for _, node := range nodes {
		c.Add(node)
	}
	return c
}

func mustNew(t testing.TB, profile string, args *config.NodeCostArgs, lister framework.SharedLister) *NodeCost {
	t.Helper()
	return plugintest.New(t, New, profile, args, lister).(*NodeCost)
}

// nodeWith makes a node of 4 CPUs and 16 GiB that says what it costs, if anything.
func nodeWith(name, price string, change ...func(*v1.Node)) *v1.Node {
	node := st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "4", v1.ResourceMemory: "16Gi"}).Obj()
	if price != "" {
		node.Annotations = map[string]string{"price": price}
	}
	for _, change := range change {
		change(node)
	}
	return node
}

// spot makes it a spot node.
func spot(node *v1.Node) { node.Labels = map[string]string{"capacity": "spot"} }

// sized has a node of another size.
func sized(cpu, memory string) func(*v1.Node) {
	return func(node *v1.Node) {
		node.Status.Allocatable = st.MakeNode().Capacity(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory}).Obj().Status.Allocatable
	}
}

// arguments are those with the annotation alone.
func arguments(strategy config.NodeCostStrategy) *config.NodeCostArgs {
	return &config.NodeCostArgs{PriceAnnotation: pointer.String("price"), CapacityTypeLabel: "capacity", Strategy: strategy}
}

// keepSpot has spot nodes kept for pods that tolerate spot.
func keepSpot(args *config.NodeCostArgs) *config.NodeCostArgs {
	args.Spot = &config.NodeCostSpot{CapacityTypes: []string{"spot"}, TolerationKey: "spot"}
	return args
}

// incoming makes a pod of 1 CPU and 1 GiB.
func incoming() *st.PodWrapper {
	return st.MakePod().Name("incoming").Req(map[v1.ResourceName]string{v1.ResourceCPU: "1", v1.ResourceMemory: "1Gi"})
}

func tolerating() *v1.Pod {
	return incoming().Toleration("spot").Obj()
}

// manner is how the plugin is called: by schedulers that call PreScore or do not, and that score many nodes at once or
// one by one.
type manner struct{ preScore, batch bool }

// normally is how upstream's scheduler calls it.
var normally = manner{preScore: true}

// scoresOf calls the plugin as the framework does, and returns the scores of n1, n2, ….
func scoresOf(t testing.TB, pl *NodeCost, pod *v1.Pod, nodes int, how manner) []int64 {
	t.Helper()
	return scoresIn(t, pl, framework.NewCycleState(), pod, nodes, how)
}

func scoresIn(t testing.TB, pl *NodeCost, state *framework.CycleState, pod *v1.Pod, nodes int, how manner) []int64 {
	t.Helper()
	must := func(status *framework.Status) {
		t.Helper()
		if !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	ctx, list, infos := context.Background(), make(framework.NodeScoreList, nodes), make([]*framework.NodeInfo, nodes)
	if how.preScore {
		must(pl.PreScore(ctx, state, pod, nil))
	}
	for i := range list {
		list[i].Name = fmt.Sprintf("n%d", i+1)
		var err error
		if infos[i], err = pl.handle.SnapshotSharedLister().NodeInfos().Get(list[i].Name); err != nil {
			t.Fatal(err)
		}
		if !how.batch {
			score, status := pl.Score(ctx, state, pod, list[i].Name)
			must(status)
			list[i].Score = score
		}
	}
	if how.batch {
		must(pl.ScoreNodes(state, pod, infos, list))
	}
	must(pl.ScoreExtensions().NormalizeScore(ctx, state, pod, list))
	scores := make([]int64, nodes)
	for i := range list {
		scores[i] = list[i].Score
	}
	return scores
}

func TestScore(t *testing.T) {
	const cheapestNode, cheapestShare = config.NodeCostCheapestNode, config.NodeCostCheapestShare
	tests := []struct {
		name  string
		args  *config.NodeCostArgs
		nodes []*v1.Node
		pod   *v1.Pod
		// want are the scores of n1, n2, ….
		want []int64
	}{
		{
			name: "by the node: 100 × 0.1/0.1, 0.1/0.2, 0.1/0.4", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.1"), nodeWith("n2", "0.2"), nodeWith("n3", "0.4")}, want: []int64{100, 50, 25},
		},
		{
			name: "a node without a price is the median of 0.1, 0.2 and 0.4, which is 0.2", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.1"), nodeWith("n2", "0.2"), nodeWith("n3", "0.4"), nodeWith("n4", "")}, want: []int64{100, 50, 25, 50},
		},
		{
			name: "the median of two is their mean: 100 × 0.1/0.25", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.1"), nodeWith("n2", "0.4"), nodeWith("n3", "")}, want: []int64{100, 25, 40},
		},
		{
			name: "what is no price is none, and never free", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.1"), nodeWith("n2", "cheap"), nodeWith("n3", "-5"), nodeWith("n4", "")}, want: []int64{100, 100, 100, 100},
		},
		{
			name: "no prices: nothing is better than anything, whatever its size", args: arguments(cheapestShare), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", ""), nodeWith("n2", "", sized("64", "256Gi")), nodeWith("n3", "x")}, want: []int64{100, 100, 100},
		},
		{
			name: "a free node is best, and the others differ still: 50 × 0.1/0.1 and 0.1/0.2", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.1"), nodeWith("n2", "0"), nodeWith("n3", "0.2")}, want: []int64{50, 100, 25},
		},
		{
			name: "free nodes are not in the median, or n4 were free, too: of prices above 0 there is 0.5", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0"), nodeWith("n2", "0"), nodeWith("n3", "0.5"), nodeWith("n4", "")}, want: []int64{100, 100, 50, 50},
		},
		{
			name: "no price above 0: nothing is better than anything", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0"), nodeWith("n2", "")}, want: []int64{100, 100},
		},
		{
			name: "by the share: 0.4 × 1/4, 0.8 × 1/8 and 0.4 × 1/8 of CPU: 100 × 0.05/0.1, 0.05/0.1, 0.05/0.05", args: arguments(cheapestShare), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.4"), nodeWith("n2", "0.8", sized("8", "32Gi")), nodeWith("n3", "0.4", sized("8", "32Gi"))}, want: []int64{50, 50, 100},
		},
		{
			name: "by the share of memory, if that is larger: 0.4 × 8/16 and 0.4 × 8/8", args: arguments(cheapestShare),
			pod:   st.MakePod().Req(map[v1.ResourceName]string{v1.ResourceCPU: "1", v1.ResourceMemory: "8Gi"}).Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.4"), nodeWith("n2", "0.4", sized("4", "8Gi"))}, want: []int64{100, 50},
		},
		{
			name: "a pod that requests nothing: 0.4 × 0.1/4 and 0.4 × 0.1/8 of CPU", args: arguments(cheapestShare), pod: st.MakePod().Container("image").Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.4"), nodeWith("n2", "0.4", sized("8", "32Gi"))}, want: []int64{50, 100},
		},
		{
			name: "a pod that does not tolerate spot: none for n1, and 100 × 0.2/0.2, 0.2/0.4 for the rest", args: keepSpot(arguments(cheapestNode)), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.05", spot), nodeWith("n2", "0.2"), nodeWith("n3", "0.4")}, want: []int64{0, 100, 50},
		},
		{
			name: "at least one for what is not spot: 100 × 1/1 and 1/1000", args: keepSpot(arguments(cheapestNode)), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.05", spot), nodeWith("n2", "1"), nodeWith("n3", "1000")}, want: []int64{0, 100, 1},
		},
		{
			name: "a pod that tolerates spot goes by the price", args: keepSpot(arguments(cheapestNode)), pod: tolerating(),
			nodes: []*v1.Node{nodeWith("n1", "0.05", spot), nodeWith("n2", "0.2"), nodeWith("n3", "0.025")}, want: []int64{50, 13, 100},
		},
		{
			name: "spot is kept where no node has a price, too", args: keepSpot(arguments(cheapestShare)), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "", spot), nodeWith("n2", "")}, want: []int64{0, 100},
		},
		{
			name: "all pods go to spot if it is not kept", args: arguments(cheapestNode), pod: incoming().Obj(),
			nodes: []*v1.Node{nodeWith("n1", "0.05", spot), nodeWith("n2", "0.1")}, want: []int64{100, 50},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pl := mustNew(t, "profile", tt.args, newCluster(t, tt.nodes...))
			for _, how := range []manner{normally, {}, {preScore: true, batch: true}, {batch: true}} {
				if got := scoresOf(t, pl, tt.pod, len(tt.want), how); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%+v: got the scores %v, want %v", how, got, tt.want)
				}
			}
		})
	}
}

// TestNormalizeScoreIgnoresOtherNodes scores n1 and n2 alone; n3 only counts for the median.
func TestNormalizeScoreIgnoresOtherNodes(t *testing.T) {
	pl := mustNew(t, "profile", arguments(config.NodeCostCheapestNode), newCluster(t, nodeWith("n1", "0.2"), nodeWith("n2", "0.4"), nodeWith("n3", "0.01")))
	if got := scoresOf(t, pl, incoming().Obj(), 2, normally); !reflect.DeepEqual(got, []int64{100, 50}) {
		t.Errorf("got the scores %v, want 100 and 50", got)
	}
}

// TestScoreOfTwoCycles: what was decided about the pod before must not count, also where PreScore is not
// enabled.
func TestScoreOfTwoCycles(t *testing.T) {
	pl := mustNew(t, "profile", keepSpot(arguments(config.NodeCostCheapestNode)), newCluster(t, nodeWith("n1", "0.1", spot), nodeWith("n2", "0.2")))
	for i := 0; i < 4; i++ {
		pod, want := incoming().Obj(), []int64{0, 100}
		if i%2 == 1 {
			pod, want = tolerating(), []int64{100, 50}
		}
		if got := scoresOf(t, pl, pod, 2, manner{preScore: i < 2}); !reflect.DeepEqual(got, want) {
			t.Errorf("cycle %d: got the scores %v, want %v", i, got, want)
		}
	}
	if got := pl.Explain(framework.NewCycleState(), incoming().Obj(), []string{"n1"}); got != "" {
		t.Errorf("of another cycle: %q", got)
	}
}

func TestScoreAfterANodeChanges(t *testing.T) {
	c := newCluster(t)
	n1, n2, n3 := nodeWith("n1", "0.1"), nodeWith("n2", "0.2"), nodeWith("n3", "")
	pl := mustNew(t, "profile", keepSpot(arguments(config.NodeCostCheapestNode)), c)
	expect := func(when string, want ...int64) {
		t.Helper()
		if got := scoresOf(t, pl, incoming().Obj(), len(want), normally); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got the scores %v, want %v", when, got, want)
		}
	}
	c.AddNode(n1)
	c.AddNode(n2)
	c.AddNode(n3)
	expect("at first, the median is 0.15", 100, 50, 67)
	c.UpdateNode(n2, nodeWith("n2", "0.4"))
	expect("n2 is dearer, the median 0.25", 100, 25, 40)
	c.UpdateNode(n3, nodeWith("n3", "0.05"))
	expect("n3 gets a price", 50, 13, 100)
	c.UpdateNode(n3, nodeWith("n3", "0.05", spot))
	expect("n3 becomes spot", 100, 25, 0)
	c.UpdateNode(n1, nodeWith("n1", ""))
	expect("n1 loses its price, the median of 0.4 and 0.05 is 0.225", 100, 56, 0)
	c.Must(c.RemoveNode(n3))
	expect("n3 is gone, the median 0.4", 100, 100)
	if len(pl.index.nodes) != 2 || len(pl.index.sorted) != 1 {
		t.Errorf("%d nodes and %d prices are kept, want 2 and 1", len(pl.index.nodes), len(pl.index.sorted))
	}
}

// TestIndex changes nodes at random, and compares with a look at all of them.
func TestIndex(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	texts := []string{"", "0", "0.1", "0.1", "0.2", "0.3", "x", "-1"}
	nodes, x := map[string]*v1.Node{}, newIndex(newPrices(tableArgs()))
	for step := 0; step < 5000; step++ {
		name := fmt.Sprintf("n%d", random.Intn(20))
		var after *v1.Node
		if random.Intn(4) > 0 {
			after = nodeWith(name, texts[random.Intn(len(texts))])
			after.Labels = map[string]string{"type": []string{"small", "large"}[random.Intn(2)]}
		}
		if before := nodes[name]; before != nil || after != nil {
			x.NodeChanged(before, after, nil)
		}
		if delete(nodes, name); after != nil {
			nodes[name] = after
		}
		var want []int64
		var from [sources]int
		ignored := 0
		for name, node := range nodes {
			price, source, bad := x.prices.of(node)
			if kept, known := x.nodes[node]; !known || kept.from != source || kept.price != price || kept.ignored != bad {
				t.Fatalf("step %d: of %s is kept %+v", step, name, kept)
			}
			if from[source]++; source != nowhere {
				want = append(want, price)
			}
			if bad {
				ignored++
			}
		}
		sort.Slice(want, func(i, j int) bool { return want[i] < want[j] })
		if len(x.nodes) != len(nodes) || x.from != from || x.ignored != ignored || fmt.Sprint(x.sorted) != fmt.Sprint(want) {
			t.Fatalf("step %d: prices %v from %v, ignored %d; want %v from %v, ignored %d", step, x.sorted, x.from, x.ignored, want, from, ignored)
		}
	}
}

func TestEventsToRegister(t *testing.T) {
	if events := (&NodeCost{}).EventsToRegister(); events != nil {
		t.Errorf("got %v; no pod is rejected that an event could make fit", events)
	}
}

func TestMetrics(t *testing.T) {
	c := newCluster(t, nodeWith("n1", "0.1"), nodeWith("n2", "x"), nodeWith("n3", ""))
	args := tableArgs()
	args.Prices = []config.NodeCostPrice{rowOf("small", "", "", "1")}
	pl := mustNew(t, "counted", args, c)
	n2 := nodeWith("n2", "x", func(node *v1.Node) { node.Labels = map[string]string{"type": "small"} })
	c.UpdateNode(nil, n2)
	expect := func(when string, want map[string]float64) {
		t.Helper()
		for source, count := range want {
			gauge := ignoredPrices.WithLabelValues("counted")
			if source != "ignored" {
				gauge = pricedNodes.WithLabelValues("counted", source)
			}
			if got := plugintest.MetricValue(t, gauge); got != count {
				t.Errorf("%s: %s is %g, want %g", when, source, got, count)
			}
		}
	}
	asked := framework.NewCycleState()
	whatif.Mark(asked)
	scoresIn(t, pl, asked, incoming().Obj(), 3, normally)
	expect("a what-if counts nothing", map[string]float64{"annotation": 0, "none": 0, "ignored": 0})
	scoresOf(t, pl, incoming().Obj(), 3, normally)
	expect("at first", map[string]float64{"annotation": 1, "label": 0, "table": 1, "none": 1, "ignored": 1})
	c.UpdateNode(n2, nodeWith("n2", "0.2"))
	scoresOf(t, pl, incoming().Obj(), 3, normally)
	expect("n2's annotation is right", map[string]float64{"annotation": 2, "label": 0, "table": 0, "none": 1, "ignored": 0})
}

func TestExplain(t *testing.T) {
	c := newCluster(t, nodeWith("n1", "0.096"), nodeWith("n2", "x"), nodeWith("n3", ""), nodeWith("n4", "0.03", spot), nodeWith("n5", "12"), nodeWith("n6", "1"))
	args := keepSpot(arguments(config.NodeCostCheapestShare))
	args.InstanceTypeLabel, args.Prices = pointer.String("type"), []config.NodeCostPrice{rowOf("small", "", "", "0.0000001")}
	pl, state := mustNew(t, "explained", args, c), framework.NewCycleState()
	if got := pl.Explain(state, incoming().Obj(), []string{"n1"}); got != "" {
		t.Errorf("without a cycle: %q", got)
	}
	explain := func(pod *v1.Pod, nodes ...string) string {
		state := framework.NewCycleState()
		pl.PreScore(context.Background(), state, pod, nil)
		return pl.Explain(state, pod, nodes)
	}
	// The median of 0.03, 0.096, 1 and 12.
	want := "Price per hour: n1 0.096 (annotation), n2 0.548 (median, because it has no price; its own annotation or label is not a valid price), " +
		"n3 0.548 (median, because it has no price), n4 0.03 (annotation; spot, which the pod does not tolerate), n5 12 (annotation)."
	if got := explain(incoming().Obj(), "n1", "n2", "n3", "n4", "n5", "n6"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	c.UpdateNode(nil, nodeWith("n2", "x", func(node *v1.Node) { node.Labels = map[string]string{"type": "small"} }))
	want = "Price per hour: n4 0.03 (annotation), n2 0.0000001 (table; its own annotation or label is not a valid price)."
	if got := explain(tolerating(), "n4", "none", "n2"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if got := explain(tolerating(), "none"); got != "" {
		t.Errorf("of no node: %q", got)
	}
	empty := mustNew(t, "explained", arguments(config.NodeCostCheapestShare), newCluster(t, nodeWith("n1", "")))
	empty.PreScore(context.Background(), state, incoming().Obj(), nil)
	if got := empty.Explain(state, incoming().Obj(), []string{"n1"}); got != "No node has a price." {
		t.Errorf("without prices: %q", got)
	}
}

// TestScoreInParallel is for the race detector: as many workers as a cycle has, with PreScore and without.
func TestScoreInParallel(t *testing.T) {
	pl := mustNew(t, "parallel", arguments(config.NodeCostCheapestShare), newCluster(t, nodeWith("n1", "0.4"), nodeWith("n2", "")))
	for cycle := 0; cycle < 50; cycle++ {
		ctx, state, pod := context.Background(), framework.NewCycleState(), incoming().Obj()
		if cycle%2 == 0 {
			pl.PreScore(ctx, state, pod, nil)
		}
		plugintest.InParallel(16, func(int) {
			if got, _ := pl.Score(ctx, state, pod, "n1"); got != one/10 {
				t.Errorf("got %d, want %d", got, one/10)
			}
		})
	}
}

// benchmarkNodes is how many nodes there are, of which benchmarkScored are scored.
const benchmarkNodes, benchmarkScored = 5000, 500

// large makes 5,000 nodes of a hundred types, with prices by a table of as many rows.
func large(t testing.TB, strategy config.NodeCostStrategy) (*NodeCost, *plugintest.Cluster) {
	c := newCluster(t)
	args := keepSpot(tableArgs())
	args.Strategy, args.Prices = strategy, nil
	for i := 0; i < 100; i++ {
		args.Prices = append(args.Prices, rowOf(fmt.Sprintf("type-%d", i), "", "", fmt.Sprintf("0.%03d", i+1)))
	}
	for i := 0; i < benchmarkNodes; i++ {
		node := nodeWith(fmt.Sprintf("node-%04d", i), "")
		node.Labels = map[string]string{"type": fmt.Sprintf("type-%d", i%100), "zone": "a", "capacity": []string{"spot", "on-demand"}[i%2]}
		c.AddNode(node)
	}
	c.NodeInfos()
	return mustNew(t, "large", args, c.Snapshot), c
}

// some returns the nodes that are scored, and room for their scores.
func some(c *plugintest.Cluster) ([]*framework.NodeInfo, framework.NodeScoreList) {
	infos, scores := make([]*framework.NodeInfo, benchmarkScored), make(framework.NodeScoreList, benchmarkScored)
	for i := range infos {
		// Not neighbours in memory.
		scores[i].Name = fmt.Sprintf("node-%04d", i*7%benchmarkNodes)
		infos[i] = c.Node(scores[i].Name)
	}
	return infos, scores
}

// TestScoreDoesNotAllocate: nor does a cycle look at nodes that did not change.
func TestScoreDoesNotAllocate(t *testing.T) {
	pl, c := large(t, config.NodeCostCheapestShare)
	ctx, state, pod := context.Background(), framework.NewCycleState(), incoming().Obj()
	infos, scores := some(c)
	pl.PreScore(ctx, state, pod, nil)
	plugintest.ExpectAllocations(t, "PreScore", 5, func() { pl.PreScore(ctx, state, pod, nil) })
	plugintest.ExpectAllocations(t, "Score, ScoreNodes and NormalizeScore", 0, func() {
		for i := range scores {
			scores[i].Score, _ = pl.Score(ctx, state, pod, scores[i].Name)
		}
		pl.NormalizeScore(ctx, state, pod, scores)
		pl.ScoreNodes(state, pod, infos, scores)
	})
}

// BenchmarkScore is Score, or ScoreNodes, and NormalizeScore for the nodes that are scored.
func BenchmarkScore(b *testing.B) {
	for _, strategy := range []config.NodeCostStrategy{config.NodeCostCheapestNode, config.NodeCostCheapestShare} {
		for name, batch := range map[string]bool{"one by one": false, "at once": true} {
			b.Run(string(strategy)+" "+name, func(b *testing.B) {
				pl, c := large(b, strategy)
				ctx, state, pod := context.Background(), framework.NewCycleState(), incoming().Obj()
				infos, list := some(c)
				pl.PreScore(ctx, state, pod, nil)
				plugintest.PerNode(b, benchmarkScored, func(int) {
					if batch {
						pl.ScoreNodes(state, pod, infos, list)
					} else {
						for n := range list {
							list[n].Score, _ = pl.Score(ctx, state, pod, list[n].Name)
						}
					}
					pl.NormalizeScore(ctx, state, pod, list)
				})
			})
		}
	}
}

// BenchmarkNodeChanged is what a node's change costs whose price stays the same, and one whose price is another.
func BenchmarkNodeChanged(b *testing.B) {
	for name, prices := range map[string][2]string{"the same price": {"", ""}, "another price": {"0.02", "0.08"}} {
		b.Run(name, func(b *testing.B) {
			pl, _ := large(b, config.NodeCostCheapestNode)
			pl.PreScore(context.Background(), framework.NewCycleState(), incoming().Obj(), nil)
			var nodes [2]*v1.Node // of one node more
			for i := range nodes {
				nodes[i] = nodeWith("changing", prices[i], func(node *v1.Node) { node.Labels = map[string]string{"type": "type-50"} })
			}
			pl.index.NodeChanged(nil, nodes[0], nil)
			plugintest.PerNode(b, 1, func(i int) { pl.index.NodeChanged(nodes[i%2], nodes[(i+1)%2], nil) })
		})
	}
}
