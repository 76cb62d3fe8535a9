// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/pointer"
)

var epoch = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// use has what is measured, in cores: of nodes mean, deviation and now, of pods in the namespace test the percentile.
type use struct {
	nodes map[string][3]float64
	pods  map[string]float64
	age   time.Duration
}

// measured is a source with a fixed answer, and a transport, so that the plugin takes it for a simulation.
type measured struct {
	http.RoundTripper
	use
}

func (m *measured) Close() {}

func (m *measured) Ask(_ context.Context, queries []source.Query) (source.Result, error) {
	result := source.Result{Evaluated: 1e9, Asked: epoch, Received: epoch}
	add := func(query int, label string, values ...float64) {
		for kind, value := range append(values[:1:1], append([]float64{1e9 - m.age.Seconds()}, values[1:]...)...) {
			result.Rows = append(result.Rows, source.Row{Query: query, Kind: source.Kind(kind), Label: label, Value: value})
		}
	}
	for i, query := range queries {
		for name, of := range m.nodes {
			switch query.Name {
			case source.OvercommitNodes:
				add(i, name, of[0], of[1])
			case source.OvercommitNow:
				add(i, name, of[2])
			}
		}
		for name, percentile := range m.pods {
			if query.Pods {
				add(i, "test/"+name, percentile)
			}
		}
	}
	return result, nil
}

// arguments are the defaults.
func arguments() *config.OvercommitArgs {
	return &config.OvercommitArgs{
		Prometheus:      config.NodeLoadPrometheus{Endpoints: []string{"http://127.0.0.1:1"}, Timeout: &metav1.Duration{Duration: time.Second}},
		RefreshInterval: &metav1.Duration{Duration: 30 * time.Second}, MaxSampleAge: &metav1.Duration{Duration: 3 * time.Minute},
		NodeMatch: config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchAuto},
		Horizon:   &metav1.Duration{Duration: time.Hour}, Predictor: config.OvercommitMaximum, Sigmas: pointer.Float64(3), Percentile: pointer.Int32(95), HeadroomPercent: pointer.Int32(10),
	}
}

// world is a real framework with the plugin, at a time and with measurements that tests set.
type world struct {
	*plugintest.Profile
	plugin *Overcommit
	clock  *testingclock.FakePassiveClock
	nodes  []*v1.Node
}

func newWorld(t testing.TB, args *config.OvercommitArgs, of use, nodes []*v1.Node, pods ...*v1.Pod) *world {
	t.Helper()
	if of.pods == nil {
		of.pods = map[string]float64{"elsewhere": 1}
	}
	w := &world{clock: testingclock.NewFakePassiveClock(epoch), nodes: nodes}
	w.Profile = plugintest.NewProfile(t, plugintest.Options{
		Plugin: Name, Args: args, Points: []string{"preFilter", "filter", "score"}, Nodes: nodes, Pods: pods,
		New: func(args runtime.Object, handle framework.Handle) (plugin framework.Plugin, err error) {
			w.plugin, err = newPlugin(args, handle, w.clock, &group{})
			return w.plugin, err
		},
		Framework: []frameworkruntime.Option{frameworkruntime.WithKubeConfig(&rest.Config{Transport: &measured{use: of}})},
	})
	if args.Predictor != config.OvercommitRequests {
		snapshot, _, err := collector.Once(context.Background(), w.plugin.spec(), nodes, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		w.plugin.viewed.Store(newView(snapshot))
	}
	return w
}

// cycle runs the cycle of a pod, and returns the rejections and scores of the nodes.
func (w *world) cycle(t testing.TB, pod *v1.Pod) (state *framework.CycleState, result string) {
	t.Helper()
	ctx := context.Background()
	state = framework.NewCycleState()
	if status := w.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		return state, status.Message()
	}
	var of []string
	for _, node := range w.nodes {
		if status := w.RunFilterPlugins(ctx, state, pod, w.Node(t, node.Name)).Merge(); !status.IsSuccess() {
			of = append(of, status.Message())
			continue
		}
		score, status := w.plugin.Score(ctx, state, pod, node.Name)
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		of = append(of, fmt.Sprint(score))
	}
	return state, strings.Join(of, " | ")
}

// node returns a node with 10 cores.
func node(name string) *v1.Node {
	return st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "10", v1.ResourceMemory: "10G", v1.ResourcePods: "110"}).Obj()
}

// asking returns a pod that asks for some thousandths of a core.
func asking(name string, amount int64) *v1.Pod {
	pod := st.MakePod().Namespace("test").Name(name).UID(name).Container("image").Obj()
	asked := *resource.NewQuantity(amount, resource.DecimalSI)
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{
		Requests: v1.ResourceList{config.OvercommitResource: asked, v1.ResourceCPU: resource.MustParse("0"), v1.ResourceMemory: resource.MustParse("1Mi")},
		Limits:   v1.ResourceList{config.OvercommitResource: asked, v1.ResourceCPU: *resource.NewMilliQuantity(amount, resource.DecimalSI)},
	}
	return pod
}

func ordinary(name, cpu string) *v1.Pod {
	return st.MakePod().Namespace("test").Name(name).UID(name).Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj()
}

// on places a pod on a node on which it has run for some time.
func on(pod *v1.Pod, node string, since time.Duration) *v1.Pod {
	pod.Spec.NodeName, pod.Status.Phase = node, v1.PodRunning
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{
		Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: epoch.Add(-since)}},
	}}}
	return pod
}

// TestPredict has amounts in thousandths of a core.
func TestPredict(t *testing.T) {
	old, done := 2*time.Hour, on(ordinary("q", "4"), "a", 0)
	done.Status.Phase = v1.PodSucceeded
	waiting := on(ordinary("p", "4"), "a", 0)
	waiting.Status = v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.Time{Time: epoch.Add(-time.Hour)},
	}}}
	wrong := asking("p", 1000)
	wrong.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("4")
	for _, test := range []struct {
		name      string
		predictor config.OvercommitPredictor
		use       use
		pods      []*v1.Pod
		made      time.Duration // when the node was made, after epoch; at 0 long ago
		want      string
	}{
		{name: "mean and deviations", use: use{nodes: map[string][3]float64{"a": {2, 0.5, 1}}}, want: "3500 NSigma"},
		{
			name: "a sum of percentiles is higher", use: use{nodes: map[string][3]float64{"a": {2, 0, 1}}, pods: map[string]float64{"p": 1.5, "q": 1}},
			pods: []*v1.Pod{on(ordinary("p", "4"), "a", old), on(ordinary("q", "4"), "a", old)}, want: "2500 Percentile",
		},
		{name: "the use now is higher", use: use{nodes: map[string][3]float64{"a": {2, 0, 3}}}, want: "3000 Now"},
		{
			name: "a pod that is not measured counts with its request", predictor: config.OvercommitPercentile,
			use: use{nodes: map[string][3]float64{"a": {}}, pods: map[string]float64{"q": 1}}, pods: []*v1.Pod{on(ordinary("p", "4"), "a", old)}, want: "4000 Percentile",
		},
		{
			name: "so does one that is too young", predictor: config.OvercommitPercentile, use: use{nodes: map[string][3]float64{"a": {}}, pods: map[string]float64{"p": 1}},
			pods: []*v1.Pod{on(ordinary("p", "4"), "a", 14*time.Minute)}, want: "4000 Percentile",
		},
		{
			name: "but not if it uses more", predictor: config.OvercommitPercentile, use: use{nodes: map[string][3]float64{"a": {}}, pods: map[string]float64{"p": 5}},
			pods: []*v1.Pod{on(ordinary("p", "4"), "a", 14*time.Minute)}, want: "5000 Percentile",
		},
		{
			name: "a quarter of the horizon is old enough", predictor: config.OvercommitPercentile,
			use: use{nodes: map[string][3]float64{"a": {}}, pods: map[string]float64{"p": 1}}, pods: []*v1.Pod{on(ordinary("p", "4"), "a", 15*time.Minute)},
			want: "1000 Percentile",
		},
		{
			name: "a mean lacks a part of a new pod", predictor: config.OvercommitNSigma, use: use{nodes: map[string][3]float64{"a": {1, 0, 9}}},
			pods: []*v1.Pod{on(ordinary("p", "4"), "a", 15*time.Minute)}, want: "4000 NSigma",
		},
		{
			name: "a pod that has waited for an hour for its init containers", predictor: config.OvercommitNSigma, use: use{nodes: map[string][3]float64{"a": {1, 0, 0}}},
			pods: []*v1.Pod{waiting}, want: "5000 NSigma",
		},
		{
			name: "the use now lacks a starting pod", use: use{nodes: map[string][3]float64{"a": {0, 0, 7}}},
			pods: []*v1.Pod{on(ordinary("p", "4"), "a", 0)}, want: "11000 Now",
		},
		{
			name: "overcommitting and ended pods do not count", use: use{nodes: map[string][3]float64{"a": {1, 0, 0}}, pods: map[string]float64{"p": 5}},
			pods: []*v1.Pod{on(asking("p", 5000), "a", 0), done}, want: "1000 NSigma",
		},
		{
			name: "a pod that asks, requests CPU, and was bound elsewhere", use: use{nodes: map[string][3]float64{"a": {0, 0, 0}}},
			pods: []*v1.Pod{on(wrong, "a", old)}, want: "4000 NSigma",
		},
		{
			name: "requests", predictor: config.OvercommitRequests,
			pods: []*v1.Pod{on(ordinary("p", "4"), "a", old), on(asking("q", 5000), "a", 0)}, want: "4000 Requests",
		},
		{name: "no pod is measured", predictor: config.OvercommitPercentile, use: use{nodes: map[string][3]float64{"a": {}}, pods: map[string]float64{}}, want: "unknown"},
		{name: "measured before the node was made again", use: use{nodes: map[string][3]float64{"a": {}}}, made: time.Nanosecond, want: "unknown"},
		{name: "not measured", use: use{nodes: map[string][3]float64{"b": {}}}, want: "unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := arguments()
			if test.predictor != "" {
				args.Predictor = test.predictor
			}
			w := newWorld(t, args, test.use, []*v1.Node{node("a"), node("b")}, test.pods...)
			got := "unknown"
			made := w.nodes[0].DeepCopy()
			if test.made > 0 {
				made.CreationTimestamp = metav1.NewTime(epoch.Add(test.made))
			}
			if known := w.plugin.predict(w.plugin.viewed.Load().snapshot, made, test.pods); known.at != notMeasured {
				got = fmt.Sprintf("%d %s", known.peak, known.by)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestCycle is about nodes with 10 cores, 9 without the headroom.
func TestCycle(t *testing.T) {
	nodes := []*v1.Node{node("a"), node("b"), node("c"), node("unknown")}
	known := use{nodes: map[string][3]float64{"a": {8, 0, 0}, "b": {4, 1, 0}, "c": {1, 0, 0}}, age: time.Minute}
	placed := []*v1.Pod{on(asking("x", 3000), "c", time.Hour), on(ordinary("y", "10"), "c", 2*time.Hour)}
	known.pods = map[string]float64{"y": 1}
	w := newWorld(t, arguments(), known, nodes, placed...)
	for _, test := range []struct {
		name  string
		pod   *v1.Pod
		after time.Duration
		want  string
	}{
		{"an ordinary pod", ordinary("p", "20"), 0, "0 | 0 | 0 | 0"},
		{"as much as is left", asking("p", 1000), 0, "0 | 10 | 40 | " + unmeasured},
		{"more than is left on one", asking("p", 1001), 0, full + " | 9 | 39 | " + unmeasured},
		{"more than is left", asking("p", 5001), 0, full + " | " + full + " | " + full + " | " + unmeasured},
		{"measurements that have become too old", asking("p", 1), 2*time.Minute + 1, unmeasured + " | " + unmeasured + " | " + unmeasured + " | " + unmeasured},
		{"a clock that was set back", asking("p", 1), -time.Hour, unmeasured + " | " + unmeasured + " | " + unmeasured + " | " + unmeasured},
		{"a mistake", st.MakePod().Req(map[v1.ResourceName]string{config.OvercommitResource: "1", v1.ResourceCPU: "1"}).Obj(), 0,
			`the pod asks for overcommit.scheduler/millicpu and requests CPU: write cpu: "0" in the requests of each container`},
	} {
		w.clock.SetTime(epoch.Add(test.after))
		if _, got := w.cycle(t, test.pod); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	w.clock.SetTime(epoch)
	state, _ := w.cycle(t, asking("p", 5001))
	want := "The pod asks for 5001m of CPU. c: 5000m left of 10000m less 10 % headroom, " +
		"less a predicted peak of ordinary pods of 1000m, less 3000m of overcommitting pods. unknown: no recent measurement."
	if got := w.plugin.Explain(state, nil, []string{"c", "unknown"}); got != want {
		t.Errorf("explains %q, want %q", got, want)
	}
}

// TestAmountsThatOverflow is about a hot node with a pod that nothing has checked.
func TestAmountsThatOverflow(t *testing.T) {
	w := newWorld(t, arguments(), use{nodes: map[string][3]float64{"a": {10, 0, 0}}}, []*v1.Node{node("a")}, on(asking("x", math.MaxInt64), "a", 0))
	if _, got := w.cycle(t, asking("p", 1)); got != full {
		t.Errorf("got %s, want %s", got, full)
	}
	byRequests, ordinary := arguments(), asking("y", 1)
	byRequests.Predictor = config.OvercommitRequests
	ordinary.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("9223372036854775")}
	w = newWorld(t, byRequests, use{}, []*v1.Node{node("a")}, on(asking("x", math.MaxInt64), "a", 0), on(ordinary, "a", 0))
	if _, got := w.cycle(t, asking("p", 1)); got != full {
		t.Errorf("with requests: got %s, want %s", got, full)
	}
}

// TestPreemption is about a node without some of its pods, as preemption tries it.
func TestPreemption(t *testing.T) {
	overcommitting, plain := on(asking("x", 3000), "a", time.Hour), on(ordinary("y", "6"), "a", 0)
	for _, predictor := range []config.OvercommitPredictor{config.OvercommitMaximum, config.OvercommitRequests} {
		args := arguments()
		args.Predictor = predictor
		w := newWorld(t, args, use{nodes: map[string][3]float64{"a": {}}}, []*v1.Node{node("a")}, overcommitting, plain)
		state, got := w.cycle(t, asking("p", 1000))
		if got != full {
			t.Fatalf("%s: got %s, want %s", predictor, got, full)
		}
		for _, test := range []struct {
			evicted *v1.Pod
			fits    bool
		}{{plain, false}, {overcommitting, true}} {
			without := w.Node(t, "a").Clone()
			if err := without.RemovePod(test.evicted); err != nil {
				t.Fatal(err)
			}
			if status := w.plugin.Filter(context.Background(), state, nil, without); status.IsSuccess() != test.fits {
				t.Errorf("%s: without %s: got %v, want that it fits: %t", predictor, test.evicted.Name, status, test.fits)
			}
		}
	}
}

// TestPage is about the nodes of a cluster whose ordinary pods have grown.
func TestPage(t *testing.T) {
	nodes := []*v1.Node{node("exceeded"), node("full"), node("hot"), node("open"), node("unknown")}
	w := newWorld(t, arguments(), use{nodes: map[string][3]float64{"exceeded": {0, 0, 7}, "full": {0, 0, 6}, "hot": {0, 0, 9.5}, "open": {0, 0, 1}}}, nodes,
		on(asking("p", 3000), "exceeded", time.Hour), on(asking("q", 3000), "full", time.Hour), on(asking("r", 1000), "unknown", time.Hour))
	var got []string
	for _, of := range w.plugin.look() {
		got = append(got, fmt.Sprintf("%s %s %d-%d-%d=%d", of.Node, of.State, of.Allocatable, of.Peak, of.Used, of.Usable))
	}
	want := "exceeded exceeded 9000-7000-3000=-1000 | full full 9000-6000-3000=0 | hot full 9000-9500-0=-500 | " +
		"open open 9000-1000-0=8000 | unknown unmeasured 9000-0-1000=0"
	if text := strings.Join(got, " | "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	w.plugin.setMetrics(w.plugin.look())
	for kind, want := range map[string]float64{"allocatable": 36, "peak": 23.5, "used": 6, "usable": 8, "exceeded": 1} {
		if got := plugintest.MetricValue(t, coresByKind.WithLabelValues(t.Name(), kind)); got != want {
			t.Errorf("%s: %v cores, want %v", kind, got, want)
		}
	}
	if got := plugintest.MetricValue(t, nodesByState.WithLabelValues(t.Name(), exceeded)); got != 1 {
		t.Errorf("%v nodes are exceeded, want 1", got)
	}

	w.plugin.viewed.Store(newView(nil))
	for _, of := range w.plugin.look() {
		if of.State != notKnown {
			t.Errorf("before the first measurement %s is %s, want %s", of.Node, of.State, notKnown)
		}
	}
}

func TestCheckSources(t *testing.T) {
	nodes := []*v1.Node{node("a"), node("b")}
	var out strings.Builder
	w := newWorld(t, arguments(), use{nodes: map[string][3]float64{"a": {}}}, nodes)
	err := w.plugin.CheckSources(context.Background(), nodes, &out)
	for _, want := range []string{"by ordinary pods: measured on 1 of 2 nodes", "by pods: measured for 1 pods"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, want %q", out.String(), want)
		}
	}
	for _, want := range []string{"1 nodes take no overcommitting pods", "for example b", "/metrics/cadvisor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}
