package nodeload

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

const benchmarkNodes = 5000

// five resources, of all strategies.
func five() []config.NodeLoadResource {
	resources := []config.NodeLoadResource{cpu(80), cpu(90), network(80), network(90), cpu(95)}
	for i, name := range []string{"cpu", "memory", "network", "disk", "power"} {
		resources[i].Name = name
	}
	resources[1].Estimator.Resource = v1.ResourceMemory
	resources[1].Strategy = config.NodeLoadTargetUtilization
	resources[4].Strategy, resources[4].Sensitivity = config.NodeLoadRisk, 2
	return resources
}

// measureAll gives all nodes measurements of all resources.
func measureAll(w *world, names []*v1.Node) {
	samples := map[string][]measured.Sample{}
	for i, n := range names {
		for range w.plugin.resources {
			s := w.sample(float64(i%70)/100, time.Duration(i%60)*time.Second)
			s.Deviation, s.HasDeviation = 0.1, true
			samples[n.Name] = append(samples[n.Name], s)
		}
	}
	w.measure(samples)
}

func benchmarkWorld(b testing.TB, count int) (*world, []*framework.NodeInfo) {
	all := nodes(count)
	var pods []*v1.Pod
	for i, n := range all {
		for j := 0; j < 10; j++ {
			pods = append(pods, on(pod(fmt.Sprintf("pod-%d-%d", i, j), "100m"), n.Name, -50*j))
		}
	}
	args := arguments(five()...)
	w := newWorld(b, args, all, pods...)
	measureAll(w, all)
	for _, n := range all {
		w.names = append(w.names, n.Name)
	}
	infos, err := w.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	return w, infos
}

func filterAll(w *world, state *framework.CycleState, pod *v1.Pod, infos []*framework.NodeInfo) {
	for _, info := range infos {
		w.plugin.Filter(context.Background(), state, pod, info)
	}
}

// scoreAll has the names at hand, as the framework does.
func scoreAll(w *world, state *framework.CycleState, pod *v1.Pod, _ []*framework.NodeInfo) {
	for _, n := range w.names {
		w.plugin.Score(context.Background(), state, pod, n)
	}
}

// TestNoAllocationForANode, neither when it is first looked at nor later.
func TestNoAllocationForANode(t *testing.T) {
	w, infos := benchmarkWorld(t, 200)
	annotated := infos[0].Node()
	annotated.Annotations = map[string]string{capacityAnnotation + "network": "2G"}
	incoming := pod("incoming", "100m")
	for _, test := range []struct {
		name string
		call func(*world, *framework.CycleState, *v1.Pod, []*framework.NodeInfo)
	}{{"Filter", filterAll}, {"Score", scoreAll}} {
		state := framework.NewCycleState()
		w.plugin.PreFilter(context.Background(), state, incoming)
		if got := testing.AllocsPerRun(5, func() { test.call(w, state, incoming, infos) }); got != 0 {
			t.Errorf("%s of %d nodes takes %v allocations, want none", test.name, len(infos), got)
		}
		v := w.plugin.current()
		if got := testing.AllocsPerRun(5, func() {
			for i := range v.loads {
				v.loads[i] = unknown
			}
			test.call(w, state, incoming, infos)
		}); got != 0 {
			t.Errorf("%s of %d nodes for the first time takes %v allocations, want none", test.name, len(infos), got)
		}
	}
}

func benchmark(b *testing.B, call func(*world, *framework.CycleState, *v1.Pod, []*framework.NodeInfo), forget bool) {
	w, infos := benchmarkWorld(b, benchmarkNodes)
	incoming := pod("incoming", "100m")
	state := framework.NewCycleState()
	w.plugin.PreFilter(context.Background(), state, incoming)
	call(w, state, incoming, infos)
	v := w.plugin.current()
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	for i := 0; i < b.N; i++ {
		if forget {
			for i := range v.loads {
				v.loads[i] = unknown
			}
		}
		call(w, state, incoming, infos)
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N*benchmarkNodes), "ns/node")
}

// The benchmarks go over 5,000 nodes with 5 resources and 10 pods each. "first" is after each snapshot, with half of the pods in
// flight.
func BenchmarkFilter(b *testing.B) { benchmark(b, filterAll, false) }

func BenchmarkFilterFirst(b *testing.B) { benchmark(b, filterAll, true) }

func BenchmarkScore(b *testing.B) { benchmark(b, scoreAll, false) }

func BenchmarkScoreFirst(b *testing.B) { benchmark(b, scoreAll, true) }

func BenchmarkPreFilter(b *testing.B) {
	w, _ := benchmarkWorld(b, benchmarkNodes)
	incoming := pod("incoming", "100m")
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		w.plugin.PreFilter(context.Background(), framework.NewCycleState(), incoming)
	}
}

// BenchmarkSwap makes a view of a snapshot and looks whom to wake.
func BenchmarkSwap(b *testing.B) {
	w, _ := benchmarkWorld(b, benchmarkNodes)
	snapshot := w.measurements.snapshot()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		w.plugin.swapped(snapshot)
	}
}
