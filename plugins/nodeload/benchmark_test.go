// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/utils/clock"
	"k8s.io/utils/pointer"
)

const benchmarkNodes = 5000

// five returns five resources that use all strategies.
func five() []config.NodeLoadResource {
	resources := []config.NodeLoadResource{cpu(80), cpu(90), network(80), network(90), cpu(95)}
	for i, name := range []string{"cpu", "memory", "network", "disk", "power"} {
		resources[i].Name = name
	}
	resources[1].Estimator.Resource = v1.ResourceMemory
	resources[1].Strategy = config.NodeLoadTargetUtilization
	resources[4].Strategy, resources[4].Sensitivity = config.NodeLoadRisk, pointer.Float64(2)
	return resources
}

// measureAll gives all nodes measurements of all resources.
func measureAll(w *world, names []*v1.Node) {
	samples := map[string][]collector.Sample{}
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
			p := on(pod(fmt.Sprintf("pod-%d-%d", i, j), "100m"), n.Name, -50*j)
			pods = append(pods, of(p, "Job", fmt.Sprintf("job-%d-27338461", i%1000)))
		}
	}
	args := arguments(five()...)
	w := newWorld(b, args, all, pods...)
	measureAll(w, all)
	w.clock.Step(time.Second)
	measureAll(w, all)
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

func scoreAll(w *world, state *framework.CycleState, pod *v1.Pod, infos []*framework.NodeInfo) {
	for _, info := range infos {
		w.plugin.Score(context.Background(), state, pod, info.Node().Name)
	}
}

// TestFilterAndScoreAllocations checks that nodes whose pods have not changed need no allocations.
func TestFilterAndScoreAllocations(t *testing.T) {
	w, infos := benchmarkWorld(t, 200)
	incoming := pod("incoming", "100m")
	state := begin(w, incoming)
	for name, call := range map[string]func(*world, *framework.CycleState, *v1.Pod, []*framework.NodeInfo){"Filter": filterAll, "Score": scoreAll} {
		if got := testing.AllocsPerRun(5, func() { call(w, state, incoming, infos) }); got != 0 {
			t.Errorf("%s of %d nodes takes %v allocations, want none", name, len(infos), got)
		}
	}
}

// begin begins the cycle of a pod.
func begin(w *world, pod *v1.Pod) *framework.CycleState {
	state := framework.NewCycleState()
	w.plugin.PreFilter(context.Background(), state, pod)
	return state
}

// forget resets the predictions of a view.
func forget(v *view) {
	for i := range v.predictions {
		v.predictions[i].Store(&prediction{})
	}
}

func benchmark(b *testing.B, call func(*world, *framework.CycleState, *v1.Pod, []*framework.NodeInfo), fresh bool) {
	w, infos := benchmarkWorld(b, benchmarkNodes)
	incoming := pod("incoming", "100m")
	state := begin(w, incoming)
	call(w, state, incoming, infos)
	v := w.plugin.current()
	plugintest.PerNode(b, benchmarkNodes, func(int) {
		if fresh {
			forget(v)
		}
		call(w, state, incoming, infos)
	})
}

// The benchmarks cover 5,000 nodes with 5 resources and 10 pods each. "First" is the first pass after a snapshot, with
// half of the pods in flight.
func BenchmarkFilter(b *testing.B) { benchmark(b, filterAll, false) }

func BenchmarkFilterFirst(b *testing.B) { benchmark(b, filterAll, true) }

func BenchmarkScore(b *testing.B) { benchmark(b, scoreAll, false) }

func BenchmarkScoreFirst(b *testing.B) { benchmark(b, scoreAll, true) }

func BenchmarkPreFilter(b *testing.B) {
	w, _ := benchmarkWorld(b, benchmarkNodes)
	incoming := pod("incoming", "100m")
	plugintest.PerNode(b, benchmarkNodes, func(int) { begin(w, incoming) })
}

// BenchmarkSwap makes a view of a snapshot and looks for pods to wake.
func BenchmarkSwap(b *testing.B) {
	w, _ := benchmarkWorld(b, benchmarkNodes)
	plugintest.PerNode(b, benchmarkNodes, func(int) { w.plugin.swapped(w.last) })
}

// answer answers a query as Prometheus does, with all requested measurements of each node.
func answer(query string, nodes []*v1.Node) []byte {
	text, now := []byte(`{"status":"success","data":{"resultType":"vector","result":[`), time.Now().Unix()
	for i, found := range regexp.MustCompile(`"nodeload_term", "([0-9]+[vtd])"`).FindAllStringSubmatch(query, -1) {
		for j, n := range nodes {
			value := fmt.Sprintf("0.%d", j%70)
			if strings.HasSuffix(found[1], "t") {
				value = fmt.Sprintf("%d.%03d", now, j%1000)
			}
			if i+j > 0 {
				text = append(text, ',')
			}
			text = append(text, fmt.Sprintf(`{"metric":{"instance":%q,"nodeload_term":%q},"value":[%d.123,%q]}`, n.Name, found[1], now, value)...)
		}
	}
	return append(text, "]}}"...)
}

// BenchmarkRefresh measures a refresh from the start of Prometheus' answer until cycles use it: reading from the
// loopback interface, decoding, classifying and making a view. With -cpu 1 it shares one core with the server.
func BenchmarkRefresh(b *testing.B) {
	all := nodes(benchmarkNodes)
	w := newWorld(b, arguments(cpu(80)), all)
	var answers sync.Map   // by query
	var began atomic.Value // time.Time
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		query := request.FormValue("query")
		text, known := answers.Load(query)
		if !known {
			text, _ = answers.LoadOrStore(query, answer(query, all))
		}
		began.Store(time.Now())
		_, _ = response.Write(text.([]byte))
	}))
	b.Cleanup(server.Close)
	args := arguments(five()...)
	args.Prometheus.Endpoints = []string{server.URL}
	args.RefreshInterval.Duration = time.Second
	took := make(chan time.Duration, 1000)
	pl, err := newPlugin(&args, w.Framework, clock.RealClock{}, &group{})
	if err != nil {
		b.Fatal(err)
	}
	spec, err := pl.spec()
	if err != nil {
		b.Fatal(err)
	}
	nodes := w.SharedInformerFactory().Core().V1().Nodes()
	spec.Nodes, spec.Synced = nodes.Lister(), nodes.Informer().HasSynced
	spec.Swapped = func(snapshot *collector.Snapshot) {
		pl.swapped(snapshot)
		took <- time.Since(began.Load().(time.Time))
	}
	handle, err := collector.New().Join(spec)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(handle.Release)
	<-took // the first one fills caches and pools
	var sum time.Duration
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		sum += <-took
	}
	b.StopTimer()
	if fresh := pl.current().fresh(4, 0); fresh != benchmarkNodes {
		b.Fatalf("%d of %d nodes are measured", fresh, benchmarkNodes)
	}
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms/refresh")
}
