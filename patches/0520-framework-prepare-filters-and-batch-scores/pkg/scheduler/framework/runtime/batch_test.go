// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// preparing names the called method in its reasons, and scores a node by the length of its name.
type preparing struct {
	name    string
	passes  bool
	invalid bool
	here    bool // it needs no updates when pods are added or removed
}

func (p *preparing) Name() string                               { return p.name }
func (p *preparing) ScoreExtensions() framework.ScoreExtensions { return nil }

func (p *preparing) PreFilter(context.Context, *framework.CycleState, *v1.Pod) *framework.Status {
	return nil
}
func (p *preparing) PreFilterExtensions() framework.PreFilterExtensions {
	if p.here {
		return nil
	}
	return p
}
func (p *preparing) AddPod(context.Context, *framework.CycleState, *v1.Pod, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return nil
}
func (p *preparing) RemovePod(context.Context, *framework.CycleState, *v1.Pod, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return nil
}

func (p *preparing) Filter(context.Context, *framework.CycleState, *v1.Pod, *framework.NodeInfo) *framework.Status {
	return framework.NewStatus(framework.Unschedulable, "node by node")
}

func (p *preparing) PrepareFilter(*framework.CycleState, *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	if p.passes {
		return nil
	}
	once := framework.NewStatus(framework.Unschedulable, "once").WithFailedPlugin(p.name)
	return func(*framework.NodeInfo) *framework.Status { return once }
}

func (p *preparing) Score(_ context.Context, _ *framework.CycleState, _ *v1.Pod, name string) (int64, *framework.Status) {
	return int64(len(name)), nil
}

// batching scores all nodes in one call, with the same scores as preparing.
type batching struct{ preparing }

func (p *batching) ScoreNodes(_ *framework.CycleState, _ *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	for i := range nodes {
		scores[i].Score += int64(len(nodes[i].Node().Name))
		if p.invalid {
			scores[i].Score = framework.MaxNodeScore + 1
		}
	}
	return nil
}

func named(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// embedding overrides Filter and Score of another plugin.
type embedding struct{ batching }

func (p *embedding) Filter(context.Context, *framework.CycleState, *v1.Pod, *framework.NodeInfo) *framework.Status {
	return embedded
}

func (p *embedding) Score(context.Context, *framework.CycleState, *v1.Pod, string) (int64, *framework.Status) {
	return 1, nil
}

var embedded = framework.NewStatus(framework.Unschedulable, "its own")

// TestEmbeddedPluginsAreNotCalled checks that overridden methods are called, and that a status which the plugin
// returns repeatedly is not changed.
func TestEmbeddedPluginsAreNotCalled(t *testing.T) {
	nodes := []*v1.Node{named("node")}
	snapshot := internalcache.NewSnapshot(nil, nodes)
	nodeInfo, _ := snapshot.Get("node")
	ctx, state, pod := context.Background(), framework.NewCycleState(), &v1.Pod{}
	fwk := frameworkOf(t, snapshot, 1, &embedding{batching{preparing{name: "embedding"}}})
	fwk.RunPreFilterPlugins(ctx, state, pod)
	status := fwk.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodeInfo)
	if got := status.FailedPlugin() + ": " + status.Message(); got != "embedding: its own" {
		t.Errorf("got %q", got)
	}
	status.AppendReason("more")
	if embedded.FailedPlugin() != "" || len(embedded.Reasons()) != 1 {
		t.Errorf("the plugin's status was changed to %v", embedded)
	}
	// The weight is 2.
	if totals, _ := fwk.ScoreTotals(ctx, state, pod, nodes); totals[0].Score != 2 {
		t.Errorf("the score is %d", totals[0].Score)
	}
}

// appending is a PostFilter plugin that changes the statuses it gets.
type appending struct{ *TestPlugin }

func (appending) PostFilter(_ context.Context, _ *framework.CycleState, _ *v1.Pod, m framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	for _, status := range m {
		status.AppendReason("seen")
	}
	return nil, framework.NewStatus(framework.Unschedulable)
}

func TestRunPostFilterPluginsThatChangeStatuses(t *testing.T) {
	plugins := &config.Plugins{PostFilter: config.PluginSet{Enabled: []config.Plugin{{Name: "appending"}}}}
	fwk := frameworkOf(t, internalcache.NewSnapshot(nil, nil), 1)
	if err := updatePluginList(&fwk.postFilterPlugins, plugins.PostFilter, map[string]framework.Plugin{"appending": appending{&TestPlugin{name: "appending"}}}); err != nil {
		t.Fatal(err)
	}
	shared := framework.NewStatus(framework.Unschedulable, "no room").WithFailedPlugin("p")
	statuses := framework.NodeToStatusMap{"a": shared, "b": shared}
	fwk.RunPostFilterPlugins(context.Background(), framework.NewCycleState(), &v1.Pod{}, statuses)
	for node, status := range statuses {
		if status.Message() != "no room, seen" || status.FailedPlugin() != "p" {
			t.Errorf("%s: got %v", node, status)
		}
	}
}

func frameworkOf(t *testing.T, snapshot *internalcache.Snapshot, parallelism int, all ...framework.Plugin) *frameworkImpl {
	t.Helper()
	registry, plugins := Registry{}, &config.Plugins{}
	add := func(pl framework.Plugin, sets ...*config.PluginSet) {
		registry[pl.Name()] = func(runtime.Object, framework.Handle) (framework.Plugin, error) { return pl, nil }
		for _, set := range sets {
			set.Enabled = append(set.Enabled, config.Plugin{Name: pl.Name(), Weight: int32(len(set.Enabled) + 2)})
		}
	}
	add(&TestQueueSortPlugin{}, &plugins.QueueSort)
	add(&TestBindPlugin{}, &plugins.Bind)
	for _, pl := range all {
		add(pl, &plugins.PreFilter, &plugins.Filter, &plugins.Score)
	}
	fwk, err := NewFramework(registry, &config.KubeSchedulerProfile{Plugins: plugins},
		WithSnapshotSharedLister(snapshot), WithParallelism(parallelism), WithPodNominator(internalqueue.NewPodNominator(nil)))
	if err != nil {
		t.Fatal(err)
	}
	return fwk.(*frameworkImpl)
}

func TestPreparedFilters(t *testing.T) {
	node := named("node")
	snapshot := internalcache.NewSnapshot(nil, []*v1.Node{node})
	nodeInfo, _ := snapshot.Get("node")
	fwk := frameworkOf(t, snapshot, 1, &preparing{name: "passes", passes: true}, &preparing{name: "rejects"})
	ctx, pod := context.Background(), &v1.Pod{}
	for name, test := range map[string]struct {
		change func(*framework.CycleState) *framework.CycleState
		want   string
	}{
		"the state as PreFilter left it": {func(s *framework.CycleState) *framework.CycleState { return s }, "rejects: once"},
		"a clone":                        {func(s *framework.CycleState) *framework.CycleState { return s.Clone() }, "passes: node by node"},
		"no cycle":                       {func(s *framework.CycleState) *framework.CycleState { return framework.NewCycleState() }, "passes: node by node"},
		"a pod was added": {func(s *framework.CycleState) *framework.CycleState {
			fwk.RunPreFilterExtensionAddPod(ctx, s, pod, framework.NewPodInfo(pod), nodeInfo)
			return s
		}, "passes: node by node"},
		"a pod was removed": {func(s *framework.CycleState) *framework.CycleState {
			fwk.RunPreFilterExtensionRemovePod(ctx, s, pod, framework.NewPodInfo(pod), nodeInfo)
			return s
		}, "passes: node by node"},
	} {
		t.Run(name, func(t *testing.T) {
			state := framework.NewCycleState()
			fwk.RunPreFilterPlugins(ctx, state, pod)
			status := fwk.RunFilterPluginsWithNominatedPods(ctx, test.change(state), pod, nodeInfo)
			if got := status.FailedPlugin() + ": " + status.Message(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestScoreTotals(t *testing.T) {
	var nodes []*v1.Node
	for i := 0; i < 200; i++ {
		nodes = append(nodes, named(strings.Repeat("n", i%40)+fmt.Sprint(i)))
	}
	snapshot := internalcache.NewSnapshot(nil, nodes)
	ctx, pod := context.Background(), &v1.Pod{}
	for _, parallelism := range []int{1, 16} {
		fwk := frameworkOf(t, snapshot, parallelism, &preparing{name: "one by one"}, &batching{preparing{name: "at once"}})
		// Twice, because memory is reused.
		for i := 0; i < 2; i++ {
			totals, status := fwk.ScoreTotals(ctx, framework.NewCycleState(), pod, nodes)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			lists, status := fwk.RunScorePlugins(ctx, framework.NewCycleState(), pod, nodes)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			for j, node := range nodes {
				// The weights are 2 and 3.
				want := framework.NodeScore{Name: node.Name, Score: int64(5 * len(node.Name))}
				if totals[j] != want {
					t.Fatalf("parallelism %d: got %v, want %v", parallelism, totals[j], want)
				}
				if got := lists["one by one"][j].Score + lists["at once"][j].Score; got != want.Score {
					t.Fatalf("parallelism %d: the sum of the lists for %s is %d, want %d", parallelism, node.Name, got, want.Score)
				}
			}
		}
		invalid := frameworkOf(t, snapshot, parallelism, &batching{preparing{name: "at once", invalid: true}})
		if _, status := invalid.ScoreTotals(ctx, framework.NewCycleState(), pod, nodes); status.IsSuccess() || !strings.Contains(status.Message(), "invalid score 101") {
			t.Errorf("a score above the maximum: got %v", status)
		}
		// Nodes that are not in the snapshot are scored one by one.
		alone := []*v1.Node{named("unknown")}
		if totals, _ := fwk.ScoreTotals(ctx, framework.NewCycleState(), pod, alone); len(totals) != 1 || totals[0].Score != 5*7 {
			t.Errorf("a node that is not in the snapshot: got %v", totals)
		}
	}
}

// rejecting rejects one node.
type rejecting struct{ name, node string }

func (r rejecting) Name() string { return r.name }
func (r rejecting) Filter(_ context.Context, _ *framework.CycleState, _ *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	if nodeInfo.Node().Name == r.node {
		return framework.NewStatus(framework.Unschedulable, "rejected")
	}
	return nil
}

// rejectingAtOnce is a rejecting that prepares.
type rejectingAtOnce struct{ rejecting }

func (p rejectingAtOnce) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		return p.Filter(context.Background(), state, pod, nodeInfo)
	}
}

// TestEachStatusIsMeasured has plugins that reject nodes after the first ones, which are measured.
func TestEachStatusIsMeasured(t *testing.T) {
	metrics.Register()
	metrics.PluginExecutionDuration.Reset()
	registry, plugins := Registry{}, config.PluginSet{}
	for _, plugin := range []framework.FilterPlugin{rejecting{"Plain", "node-40"}, rejectingAtOnce{rejecting{"Prepared", "node-60"}}} {
		plugin := plugin
		registry[plugin.Name()] = func(runtime.Object, framework.Handle) (framework.Plugin, error) { return plugin, nil }
		plugins.Enabled = append(plugins.Enabled, config.Plugin{Name: plugin.Name()})
	}
	recorder := newMetricsRecorder(1000, time.Nanosecond)
	fwk, err := newFrameworkWithQueueSortAndBind(registry, config.KubeSchedulerProfile{Plugins: &config.Plugins{Filter: plugins}}, withMetricsRecorder(recorder),
		WithPodNominator(internalqueue.NewPodNominator(nil)))
	if err != nil {
		t.Fatal(err)
	}
	state, pod := framework.NewCycleState(), &v1.Pod{}
	state.SetRecordPluginMetrics(true)
	fwk.RunPreFilterPlugins(context.Background(), state, pod)
	for i := 0; i < 100; i++ {
		node := framework.NewNodeInfo()
		node.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}})
		if status := fwk.RunFilterPluginsWithNominatedPods(context.Background(), state, pod, node); status.IsSuccess() == (i == 40 || i == 60) {
			t.Errorf("node %d: %v", i, status)
		}
	}
	close(recorder.stopCh)
	<-recorder.isStoppedCh
	recorder.flushMetrics()
	for _, name := range []string{"Plain", "Prepared"} {
		for status, want := range map[string]uint64{"Success": maxMeasured, "Unschedulable": 1} {
			got, err := testutil.GetHistogramMetricCount(metrics.PluginExecutionDuration.WithLabelValues(name, Filter, status))
			if err != nil || got != want {
				t.Errorf("%s of %s is measured %d times, want %d (%v)", status, name, got, want, err)
			}
		}
	}
}
