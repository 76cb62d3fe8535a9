// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

const hotCPU = "node(s) had cpu above 80 % of capacity"

// TestPrediction adds up the measured, in-flight and estimated loads, of 10 cores. The filter compares the first two
// with a threshold of 80 %.
func TestPrediction(t *testing.T) {
	for _, test := range []struct {
		name     string
		measured float64
		running  []*v1.Pod
		incoming string
		score    int64
		message  string
	}{
		{"measured 30 % and 1 core to come", 0.3, nil, "1", 60, ""},
		{"measured 80 %, which is not above", 0.8, nil, "1", 10, ""},
		{"measured 81 %", 0.81, nil, "1", 9, hotCPU},
		{"the pod itself does not count: 70 % and 1.1 cores to come", 0.7, nil, "1100m", 19, ""},
		{"a pod that is assumed: 30 % + 20 % + 10 %", 0.3, []*v1.Pod{pod("a", "2")}, "1", 40, ""},
		// The sample was taken at epoch - 20 s.
		{"half in the measurement: 30 % + 10 % + 10 %", 0.3, []*v1.Pod{on(pod("a", "2"), "node-0", -170)}, "1", 50, ""},
		{"wholly in the measurement: 30 % + 10 %", 0.3, []*v1.Pod{on(pod("a", "2"), "node-0", -320)}, "1", 60, ""},
		{"started after the measurement: 30 % + 20 % + 10 %", 0.3, []*v1.Pod{on(pod("a", "2"), "node-0", -10)}, "1", 40, ""},
		{"no pod has more in flight than the node has: 5 % + half of 100 % + 10 %", 0.05, []*v1.Pod{on(pod("a", "9000"), "node-0", -170)}, "1", 35, ""},
		{"what is in flight rejects too: 30 % + 60 %", 0.3, []*v1.Pod{pod("a", "3"), pod("b", "3")}, "", 10, hotCPU},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, running := range test.running {
				running.Spec.NodeName = "node-0"
			}
			w := newWorld(t, arguments(cpu(80)), nodes(1), test.running...)
			w.measure(map[string][]collector.Sample{"node-0": {w.sample(test.measured, 20*time.Second)}})
			got := w.cycle(t, pod("incoming", test.incoming))
			if got.scores["node-0"] != test.score || got.rejected["node-0"] != test.message {
				t.Errorf("score %d, rejected %q; want %d, %q", got.scores["node-0"], got.rejected["node-0"], test.score, test.message)
			}
			// The second cycle uses the loads that the first one cached.
			if again := w.cycle(t, pod("incoming", test.incoming)); !reflect.DeepEqual(again, got) {
				t.Errorf("the second time: %v, the first time: %v", again, got)
			}
		})
	}
}

// measureVarying measures loads with a deviation of 10 %.
func (w *world) measureVarying(loads ...float64) {
	samples := w.samples(loads...)
	for _, of := range samples {
		of[0].Deviation, of[0].HasDeviation = 0.1, true
	}
	w.measure(samples)
}

// TestScoreAboveCapacity checks that overloaded nodes keep their order, with each strategy.
func TestScoreAboveCapacity(t *testing.T) {
	for _, strategy := range []config.NodeLoadStrategy{config.NodeLoadLeastUsed, config.NodeLoadTargetUtilization, config.NodeLoadRisk} {
		for _, test := range []struct {
			name     string
			incoming string
			loads    []float64
		}{
			{"brought there by the pod", "9900m", []float64{0.2, 0.6, 0.95}},
			{"some of them", "500m", []float64{0.5, 0.9, 0.97, 1}},
			{"there without it", "0", []float64{0.9, 1.01, 1.6, 3, 5, 50}},
			{"close together", "9900m", []float64{0.601, 0.602, 0.95}},
		} {
			t.Run(string(strategy)+" "+test.name, func(t *testing.T) {
				r := cpu(0)
				r.Strategy = strategy
				w := newWorld(t, arguments(r), nodes(len(test.loads)))
				w.measureVarying(test.loads...)
				scores := w.cycle(t, pod("incoming", test.incoming)).scores
				for i := 1; i < len(test.loads); i++ {
					if better, worse := scores[fmt.Sprintf("node-%d", i-1)], scores[fmt.Sprintf("node-%d", i)]; better <= worse {
						t.Errorf("a node at %v scores %d, and one at %v %d: %v", test.loads[i-1], better, test.loads[i], worse, scores)
					}
				}
			})
		}
	}
}

func TestScoreUnitsAndCapacities(t *testing.T) {
	quantity := func(text string) *apiresource.Quantity {
		q := apiresource.MustParse(text)
		return &q
	}
	for _, test := range []struct {
		name       string
		unit       config.NodeLoadUnit
		value      float64
		capacity   *apiresource.Quantity
		annotation string
		want       int64
	}{
		{"a share; 1 of 10 cores to come", config.NodeLoadRatio, 0.4, nil, "", 50},
		{"percent", config.NodeLoadPercent, 40, nil, "", 50},
		{"cores of the node's 10", config.NodeLoadAbsolute, 4, nil, "", 50},
		{"cores of 20 in the args: 4/20 + 1/20", config.NodeLoadAbsolute, 4, quantity("20"), "", 75},
		{"cores of the annotation's 5: 4/5 + 1/5", config.NodeLoadAbsolute, 4, quantity("20"), "5", 0},
		{"an annotation that is no quantity does not count", config.NodeLoadAbsolute, 4, quantity("20"), "many", 75},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := cpu(0)
			r.Unit, r.Capacity = test.unit, test.capacity
			n := node("node-0")
			if test.annotation != "" {
				n.Annotations = map[string]string{"node-load.scheduler/capacity-cpu": test.annotation}
			}
			w := newWorld(t, arguments(r), []*v1.Node{n})
			w.measureLoads(test.value)
			if got := w.cycle(t, pod("incoming", "1")).scores["node-0"]; got != test.want {
				t.Errorf("score %d, want %d", got, test.want)
			}
		})
	}
}

// TestUnknownCapacity checks that a measured share counts without a capacity, and an absolute value does not.
func TestUnknownCapacity(t *testing.T) {
	const resourceName = "example.com/ports"
	for _, test := range []struct {
		unit    config.NodeLoadUnit
		value   float64
		score   int64
		message string
	}{
		{config.NodeLoadRatio, 0.4, 60, ""},
		{config.NodeLoadAbsolute, 4, 50, "node(s) had no measurement of ports"},
	} {
		r := cpu(50)
		r.Name, r.Unit, r.Estimator.Resource = "ports", test.unit, resourceName
		args := arguments(r)
		args.FilterOnStale, args.MinFreshNodesPercent = config.NodeLoadFilterClosed, pointer.Int32(0)
		w := newWorld(t, args, nodes(1))
		w.measureLoads(test.value)
		asking := st.MakePod().Name("asking").Req(map[v1.ResourceName]string{resourceName: "5"}).Obj()
		got := w.cycle(t, asking)
		if got.scores["node-0"] != test.score || got.rejected["node-0"] != test.message {
			t.Errorf("%s: score %d, rejected %q; want %d, %q", test.unit, got.scores["node-0"], got.rejected["node-0"], test.score, test.message)
		}
	}
}

// TestMissingMeasurements has one unmeasured node among three measured ones.
func TestMissingMeasurements(t *testing.T) {
	type sampler func(w *world) []collector.Sample
	reason := func(missing collector.Missing) sampler {
		return func(w *world) []collector.Sample {
			return []collector.Sample{{Value: 0, Missing: missing, At: w.clock.Now().UnixNano()}}
		}
	}
	for _, test := range []struct {
		name    string
		samples sampler
		why     string
	}{
		{"no series", reason(collector.NoSeries), "no_series"},
		{"ambiguous", reason(collector.Ambiguous), "ambiguous"},
		{"just not too old", func(w *world) []collector.Sample { return []collector.Sample{w.sample(0, 3*time.Minute)} }, ""},
		{"too old", func(w *world) []collector.Sample { return []collector.Sample{w.sample(0, 3*time.Minute+1)} }, "too_old"},
		{"not in the snapshot", func(w *world) []collector.Sample { return nil }, "no_series"},
	} {
		for _, policy := range []config.NodeLoadFilterOnStale{config.NodeLoadFilterOpen, config.NodeLoadFilterClosed} {
			for _, fallback := range []config.NodeLoadFallback{config.NodeLoadFallbackRequests, config.NodeLoadFallbackNeutral} {
				t.Run(test.name+" "+string(policy)+" "+string(fallback), func(t *testing.T) {
					args := arguments(cpu(80))
					args.FilterOnStale, args.Fallback = policy, fallback
					w := newWorld(t, args, nodes(4), on(pod("a", "3"), "node-0", -1000))
					samples := w.samples(unmeasured, 0.1, 0.1, 0.1)
					if of := test.samples(w); of != nil {
						samples["node-0"] = of
					}
					w.measure(samples)
					got := w.cycle(t, pod("incoming", "1"))
					wantScore, wantMessage := int64(90), "" // it is measured to be idle, and 1 of 10 cores is added
					if test.why != "" {
						wantScore = 50
						if fallback == config.NodeLoadFallbackRequests {
							wantScore = 60 // 3 of 10 cores are requested, and 1 is added
						}
						if policy == config.NodeLoadFilterClosed {
							wantMessage = "node(s) had no measurement of cpu"
						}
					}
					if got.scores["node-0"] != wantScore || got.rejected["node-0"] != wantMessage {
						t.Errorf("score %d, rejected %q; want %d, %q", got.scores["node-0"], got.rejected["node-0"], wantScore, wantMessage)
					}
				})
			}
		}
	}
}

// TestTooFewMeasurements checks that measurements do not count if fewer than half of the nodes have one.
func TestTooFewMeasurements(t *testing.T) {
	args := arguments(cpu(80))
	args.FilterOnStale = config.NodeLoadFilterClosed
	w := newWorld(t, args, nodes(4), on(pod("a", "3"), "node-0", -1000))
	byRequests := map[string]int64{"node-0": 60, "node-1": 90, "node-2": 90, "node-3": 90}

	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 0 || !reflect.DeepEqual(got.scores, byRequests) {
		t.Errorf("before the first snapshot: %v", got)
	}
	w.measureLoads(0.95)
	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 0 || !reflect.DeepEqual(got.scores, byRequests) {
		t.Errorf("with one of four: %v", got)
	}
	if got := plugintest.MetricValue(t, w.plugin.counters.blind[0]); got != 2 {
		t.Errorf("%g cycles without measurements are counted, want 2", got)
	}
	w.measureLoads(0.95, 0.95)
	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 4 || got.scores["node-0"] != 0 {
		t.Errorf("with two of four: %v", got)
	}
	w.clock.Step(3*time.Minute + 1)
	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 0 || !reflect.DeepEqual(got.scores, byRequests) {
		t.Errorf("when all are too old: %v", got)
	}
	if got := plugintest.MetricValue(t, w.plugin.counters.blind[0]); got != 3 {
		t.Errorf("%g cycles without measurements are counted, want 3", got)
	}
	if got := plugintest.MetricValue(t, w.plugin.counters.rejections[0]); got != 4 {
		t.Errorf("%g rejections are counted, want 4", got)
	}
}

// TestResourcesAreIndependent checks that a resource without measurements does not affect the others.
func TestResourcesAreIndependent(t *testing.T) {
	light := network(0)
	light.Weight = pointer.Int32(3)
	w := newWorld(t, arguments(cpu(80), light), nodes(2))
	w.measure(map[string][]collector.Sample{
		"node-0": {w.sample(0.9, 0), {Missing: collector.QueryFailed}},
		"node-1": {w.sample(0.3, 0), {Missing: collector.QueryFailed}},
	})
	got := w.cycle(t, pod("incoming", ""))
	// Nothing is known about network: (70 + 3 x 50) / 4.
	if len(got.rejected) != 1 || got.rejected["node-0"] == "" || got.scores["node-1"] != 55 {
		t.Errorf("got %v", got)
	}
}

func TestFilterExemptPods(t *testing.T) {
	daemon := pod("daemon", "1")
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "set", Controller: pointer.Bool(true)}}
	owned := pod("owned", "1")
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "set"}}
	urgent := pod("urgent", "1")
	urgent.Spec.Priority = pointer.Int32(101)
	critical := pod("critical", "1")
	critical.Spec.Priority = pointer.Int32(2000000000)
	below := pod("below", "1")
	below.Spec.Priority = pointer.Int32(1999999999)
	normal := pod("normal", "1")
	normal.Spec.Priority = pointer.Int32(100)
	for _, test := range []struct {
		pod    *v1.Pod
		change func(args *config.NodeLoadArgs)
		passes bool
	}{
		{daemon, func(*config.NodeLoadArgs) {}, true},
		{daemon, func(args *config.NodeLoadArgs) { args.ExemptDaemonSets = pointer.Bool(false) }, false},
		{owned, func(*config.NodeLoadArgs) {}, false},
		{urgent, func(*config.NodeLoadArgs) {}, false},
		{urgent, func(args *config.NodeLoadArgs) { args.ExemptPriorityAbove = pointer.Int32(100) }, true},
		{normal, func(args *config.NodeLoadArgs) { args.ExemptPriorityAbove = pointer.Int32(100) }, false},
		{critical, func(*config.NodeLoadArgs) {}, true},
		{below, func(*config.NodeLoadArgs) {}, false},
		{critical, func(args *config.NodeLoadArgs) { args.ExemptPriorityAbove = pointer.Int32(2147483647) }, false},
	} {
		args := arguments(cpu(80))
		test.change(&args)
		w := newWorld(t, args, nodes(1))
		w.measureLoads(0.9)
		if got := w.cycle(t, test.pod); len(got.rejected) == 0 != test.passes {
			t.Errorf("%s: rejected %v, want it to pass: %v", test.pod.Name, got.rejected, test.passes)
		}
	}
}

// TestExtendedResources checks that a resource with a prefix counts only for pods that request it, and nodes that have
// it.
func TestExtendedResources(t *testing.T) {
	gpu := cpu(80)
	gpu.Name, gpu.Estimator.Resource = "gpu", "nvidia.com/gpu"
	all := nodes(4)
	for _, n := range all[:1] {
		n.Status.Capacity["nvidia.com/gpu"] = apiresource.MustParse("4")
		n.Status.Allocatable["nvidia.com/gpu"] = apiresource.MustParse("4")
	}
	w := newWorld(t, arguments(gpu), all)
	w.measureLoads(0.85)
	if got := w.cycle(t, pod("incoming", "1")); len(got.rejected) != 0 {
		t.Errorf("a pod without a device is rejected: %v", got)
	}
	asking := st.MakePod().Name("asking").Req(map[v1.ResourceName]string{"nvidia.com/gpu": "1"}).Obj()
	// The only node with devices is measured, which is enough.
	if got := w.cycle(t, asking); got.rejected["node-0"] != "node(s) had gpu above 80 % of capacity" {
		t.Errorf("a pod that asks for a device: %v", got)
	}
}

// TestScoreRiskWithoutDeviation checks that a node without a deviation gets the average variation of the others. Node-2
// is not measured, and half of it is requested.
func TestScoreRiskWithoutDeviation(t *testing.T) {
	r := cpu(0)
	r.Strategy, r.Sensitivity = config.NodeLoadRisk, pointer.Float64(2)
	for _, test := range []struct {
		name       string
		deviations []float64 // from node-3 on
		blind      bool
		want       []int64
	}{
		// Variations are square roots: 0.2 and 0.4, on average 0.3.
		{"(1 - (0.4 + 0.1 + 0.3) / 2) x 100; the load of 0.4 that all have, and 0.5 of requests", []float64{0.04, 0.16}, false, []int64{60, 60, 55, 65, 55}},
		{"no deviation is known: (1 - (0.4 + 0.1)) x 100", nil, false, []int64{50, 50, 40}},
		{"too few are measured: by requests alone, (1 - (0 + 0.1)) x 100", []float64{0.04}, true, []int64{90, 90, 40, 90}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := nodes(3 + len(test.deviations))
			w := newWorld(t, arguments(r), all, on(pod("a", "5"), "node-2", -1000))
			samples := map[string][]collector.Sample{}
			for i, n := range all {
				sample := w.sample(0.4, 0)
				if i >= 3 {
					sample.Deviation, sample.HasDeviation = test.deviations[i-3], true
				} else if test.blind {
					continue
				}
				if i != 2 {
					samples[n.Name] = []collector.Sample{sample}
				}
			}
			w.measure(samples)
			got := w.cycle(t, pod("incoming", "1"))
			for i, n := range all {
				if got.scores[n.Name] != test.want[i] {
					t.Errorf("%s scores %d, want %d", n.Name, got.scores[n.Name], test.want[i])
				}
			}
		})
	}
}

// TestScoreOldMeasurement checks that a node whose exporter died counts as loaded as the average of the others, or by
// its requests if those are higher.
func TestScoreOldMeasurement(t *testing.T) {
	w := newWorld(t, arguments(cpu(0)), nodes(5), on(pod("a", "7"), "node-4", -1000), on(pod("b", "4"), "node-3", -160))
	dead := w.sample(0, time.Hour) // not among the fresh ones
	w.measure(map[string][]collector.Sample{
		"node-0": {w.sample(0.3, time.Minute)}, "node-1": {w.sample(0.5, 10*time.Second)}, "node-2": {w.sample(0.7, time.Minute)}, "node-3": {dead}, "node-4": {dead},
	})
	got := w.cycle(t, pod("incoming", "1")).scores
	// A pod that came to node-3 after the newest measurement counts there, as it would on the others; the one on node-4
	// has been there for a long time.
	want := map[string]int64{"node-0": 60, "node-1": 40, "node-2": 20, "node-3": 20, "node-4": 20}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
}

// TestScoreWithoutMeasurement checks that a node without a measurement is not the best: node-3 has neither a
// measurement nor requests.
func TestScoreWithoutMeasurement(t *testing.T) {
	target := cpu(0)
	target.Strategy = config.NodeLoadTargetUtilization
	varies := cpu(0)
	varies.Strategy = config.NodeLoadRisk
	for _, test := range []struct {
		name     string
		resource config.NodeLoadResource
		fallback config.NodeLoadFallback
		loads    [3]float64
		want     map[string]int64
	}{
		{"the mean is the target, and no node is there", target, config.NodeLoadFallbackRequests, [3]float64{0.05, 0.15, 1},
			map[string]int64{"node-0": 47, "node-1": 62, "node-2": 0, "node-3": 36}},
		{"below the target the mean is that of a load", target, config.NodeLoadFallbackRequests, [3]float64{0.2, 0.2, 0.2},
			map[string]int64{"node-0": 70, "node-1": 70, "node-2": 70, "node-3": 40}},
		{"no pod requests any of it", network(0), config.NodeLoadFallbackRequests, [3]float64{0.8, 0.7, 0.9},
			map[string]int64{"node-0": 20, "node-1": 30, "node-2": 10, "node-3": 20}},
		{"50 points are too many", cpu(0), config.NodeLoadFallbackNeutral, [3]float64{0.8, 0.7, 0.9},
			map[string]int64{"node-0": 20, "node-1": 30, "node-2": 10, "node-3": 20}},
		{"50 points are not too many", cpu(0), config.NodeLoadFallbackNeutral, [3]float64{0.2, 0.3, 0.1},
			map[string]int64{"node-0": 80, "node-1": 70, "node-2": 90, "node-3": 50}},
		{"the deviation counts", varies, config.NodeLoadFallbackRequests, [3]float64{0.4, 0.4, 0.4},
			map[string]int64{"node-0": 75, "node-1": 75, "node-2": 75, "node-3": 75}},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := arguments(test.resource)
			args.Fallback = test.fallback
			w := newWorld(t, args, nodes(4))
			w.measureVarying(test.loads[:]...)
			if got := w.cycle(t, pod("incoming", "0")).scores; !reflect.DeepEqual(got, test.want) {
				t.Errorf("scores %v, want %v", got, test.want)
			}
		})
	}
}

// TestScoreUnknownCapacity checks that a pod counts as much on a node of unknown capacity as on the others, so that the
// node does not stay the best while they fill up.
func TestScoreUnknownCapacity(t *testing.T) {
	r := network(0)
	r.Capacity, r.Unit = nil, config.NodeLoadAbsolute
	all := nodes(3)
	for _, n := range all[:2] {
		n.Annotations = map[string]string{capacityAnnotation + "network": "1G"}
	}
	streams := pod("streams", "0")
	streams.Annotations = map[string]string{"example.com/bandwidth": "200M"}
	w := newWorld(t, arguments(r), all)
	w.measureLoads(300e6, 300e6, 300e6)
	want := map[string]int64{"node-0": 50, "node-1": 50, "node-2": 50}
	if got := w.cycle(t, streams).scores; !reflect.DeepEqual(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
	w.Node(t, "node-2").AddPod(streams)
	want["node-2"] = 30
	if got := w.cycle(t, streams).scores; !reflect.DeepEqual(got, want) {
		t.Errorf("with one of them on it: scores %v, want %v", got, want)
	}
}

// TestClockSetBack checks that the age of measurements is unknown after the clock was set back, until the next ones
// arrive.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(2))
	measure := func() {
		w.measureLoads(0.9, 0.1)
	}
	measure()
	now := w.clock.Now()
	for _, test := range []struct {
		back  time.Duration
		known bool
	}{{0, true}, {collector.Ahead, true}, {collector.Ahead + 1, false}, {time.Hour, false}, {30 * time.Minute, false}} {
		w.clock.SetTime(now.Add(-test.back))
		_, rejected := w.cycle(t, pod("incoming", "1")).rejected["node-0"]
		shown := w.plugin.page("")
		said := shown.Nodes[0].Resources[0].Missing == "" && shown.Resources[0].Fresh == 2
		if rejected != test.known || said != test.known {
			t.Errorf("set back by %v: rejected %v, and the page says that it is measured: %v; want %v", test.back, rejected, said, test.known)
		}
	}
	measure()
	if _, rejected := w.cycle(t, pod("incoming", "1")).rejected["node-0"]; !rejected {
		t.Error("the next measurements do not count")
	}
}

// TestScorePodsWithoutEstimate checks that pods without an estimate, which do not change the scores, are not all placed
// on a node that is better by a millionth.
func TestScorePodsWithoutEstimate(t *testing.T) {
	unknown := pod("unknown", "1")
	known := pod("known", "1")
	known.Annotations = map[string]string{"example.com/bandwidth": "1"}
	for _, test := range []struct {
		pod      *v1.Pod
		capacity bool
		want     map[string]int64
	}{
		{unknown, true, map[string]int64{"node-0": 69, "node-1": 69}},
		{known, true, map[string]int64{"node-0": 68, "node-1": 69}},
		{known, false, map[string]int64{"node-0": 69, "node-1": 69}}, // its share of the node is unknown
	} {
		r := network(0)
		if !test.capacity {
			r.Capacity = nil
		}
		w := newWorld(t, arguments(r), nodes(2))
		w.measureLoads(0.305001, 0.305)
		if got := w.cycle(t, test.pod).scores; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s, with a capacity %v: scores %v, want %v", test.pod.Name, test.capacity, got, test.want)
		}
	}
}

// TestCycleUsesOneSnapshot checks that a snapshot that arrives during a cycle does not affect it.
func TestCycleUsesOneSnapshot(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(1))
	incoming := pod("incoming", "1")
	measure := func(value float64) {
		w.measureLoads(value)
	}
	measure(0.2)
	ctx, state := context.Background(), framework.NewCycleState()
	w.plugin.PreFilter(ctx, state, incoming)
	measure(0.9)
	// Nor does another cycle, such as that of the next pod.
	w.plugin.PreFilter(ctx, framework.NewCycleState(), pod("next", "1"))
	w.clock.Step(time.Hour)
	if status := w.plugin.Filter(ctx, state, incoming, w.Node(t, "node-0")); !status.IsSuccess() {
		t.Errorf("Filter: %v", status)
	}
	w.plugin.PreScore(ctx, state, incoming, nil)
	if got := w.scoreOf(state, incoming, "node-0"); got != 70 {
		t.Errorf("score %d, want 70", got)
	}
}

// TestExtensionPoints checks that any subset of the extension points works.
func TestExtensionPoints(t *testing.T) {
	for _, points := range [][]string{{"filter"}, {"score"}, {"preScore", "score"}, {"preFilter", "filter"}, {"filter", "score"}, {"preFilter", "filter", "score"}} {
		w := newWorldAt(t, arguments(cpu(80)), nodes(20), nil, points...)
		samples := map[string][]collector.Sample{}
		for _, n := range nodes(20) {
			samples[n.Name] = []collector.Sample{w.sample(0.5, 0)}
		}
		samples["node-7"] = []collector.Sample{w.sample(0.9, 0)}
		w.measure(samples)
		got := w.cycle(t, pod("incoming", "1"))
		for _, point := range points {
			if point == "filter" && (len(got.rejected) != 1 || got.rejected["node-7"] == "") {
				t.Errorf("%v: rejected %v", points, got.rejected)
			}
			if point == "score" && (got.scores["node-7"] != 0 || got.scores["node-3"] != 40) {
				t.Errorf("%v: scores %v", points, got.scores)
			}
		}
	}
}

// TestFilterPreemption checks that preemption's copies of a NodeInfo are judged by their own pods, and do not affect
// the scheduler's own.
func TestFilterPreemption(t *testing.T) {
	big := pod("big", "5")
	big.Spec.NodeName = "node-0"
	w := newWorld(t, arguments(cpu(80)), nodes(1), big)
	w.measureLoads(0.4)
	incoming := pod("incoming", "2") // 40 % + 50 % in flight
	ctx, state := context.Background(), framework.NewCycleState()
	w.plugin.PreFilter(ctx, state, incoming)
	own := w.Node(t, "node-0")
	check := func(what string, state *framework.CycleState, nodeInfo *framework.NodeInfo, passes bool) {
		t.Helper()
		if status := w.plugin.Filter(ctx, state, incoming, nodeInfo); status.IsSuccess() != passes {
			t.Errorf("%s: %v, want it to pass: %v", what, status, passes)
		}
	}
	first := own.Clone()
	if err := first.RemovePod(big); err != nil {
		t.Fatal(err)
	}
	check("a copy comes first", state.Clone(), first, true)
	check("the node itself", state, own, false)
	for i := 0; i < 3; i++ {
		simulated, copy := state.Clone(), own.Clone()
		check("an unchanged copy", simulated, copy, false)
		if err := copy.RemovePod(big); err != nil {
			t.Fatal(err)
		}
		check("a copy without the pod", simulated, copy, true)
		copy.AddPod(big)
		check("a copy to which it came back", simulated, copy, false)
	}
	check("the node itself, after copies", state, own, false)
}

func TestNewNode(t *testing.T) {
	args := arguments(cpu(80))
	args.FilterOnStale = config.NodeLoadFilterClosed
	w := newWorld(t, args, nodes(2))
	w.measureLoads(0.1, 0.1)
	ctx, state, incoming := context.Background(), framework.NewCycleState(), pod("incoming", "1")
	w.plugin.PreFilter(ctx, state, incoming)
	info := plugintest.NodeInfo(node("new"))
	status := w.plugin.Filter(ctx, state, incoming, info)
	if want := "node(s) had no measurement of cpu"; status.Message() != want {
		t.Errorf("got %v, want %q", status, want)
	}
	// Its new pods are in flight, as on all other nodes.
	info.AddPod(pod("assumed", "2"))
	if got := w.plugin.current().loads(info)[0]; got.at != notMeasured || got.inFlight != 0.2 {
		t.Errorf("got %+v, want 2 of 10 cores in flight, and nothing measured", got)
	}
	// The next view may include the node, so pods that were rejected on it are retried, measured or not.
	w.measureLoads(0.1, 0.1)
	if got := w.moved(); got != 1 {
		t.Errorf("%d moves, want 1", got)
	}
	if got := w.scoreOf(state, incoming, "gone"); got != 50 {
		t.Errorf("a node that is gone scores %d, want 50", got)
	}
}

// TestFilterReasonsAreConstant checks that the texts in a pod's condition do not depend on time, loads or pods.
func TestFilterReasonsAreConstant(t *testing.T) {
	args := arguments(cpu(80))
	args.FilterOnStale = config.NodeLoadFilterClosed
	w := newWorld(t, args, nodes(3))
	var first outcome
	for i, load := range []float64{0.81, 0.9, 1.5, 7} {
		w.measure(map[string][]collector.Sample{"node-0": {w.sample(load, time.Minute)}, "node-1": {w.sample(0.85, 0)}})
		for j := 0; j < 3; j++ {
			w.Node(t, "node-0").AddPod(pod(fmt.Sprintf("assumed-%d-%d", i, j), "100m"))
			w.clock.Step(10 * time.Second)
			got := w.cycle(t, pod("incoming", fmt.Sprint(1+j)))
			if first.rejected == nil {
				first = got
			}
			if len(got.rejected) != 3 || !reflect.DeepEqual(got.rejected, first.rejected) {
				t.Errorf("at %v: %v, at first %v", load, got.rejected, first.rejected)
			}
		}
	}
}

func TestEventsToRegister(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(1))
	want := []framework.ClusterEvent{{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeAllocatable |
		framework.UpdateNodeTaint | framework.UpdateNodeCondition}}
	if got := w.plugin.EventsToRegister(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
