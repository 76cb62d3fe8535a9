// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/pointer"
)

// arguments returns the args of a profile with the given resources and defaults for everything else.
func arguments(resources ...config.NodeLoadResource) config.NodeLoadArgs {
	return config.NodeLoadArgs{
		Prometheus:           config.NodeLoadPrometheus{Endpoints: []string{"http://127.0.0.1:9090"}, Timeout: &metav1.Duration{Duration: 10 * time.Second}},
		RefreshInterval:      &metav1.Duration{Duration: 30 * time.Second},
		MaxSampleAge:         &metav1.Duration{Duration: 3 * time.Minute},
		NodeMatch:            config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchName},
		Resources:            resources,
		Fallback:             config.NodeLoadFallbackRequests,
		FilterOnStale:        config.NodeLoadFilterOpen,
		MinFreshNodesPercent: pointer.Int32(50),
		ExemptDaemonSets:     pointer.Bool(true),
		ExemptPriorityAbove:  pointer.Int32(1999999999),
	}
}

// cpu is measured as a share over 5 minutes. The estimate for a pod is its request.
func cpu(threshold int32) config.NodeLoadResource {
	r := config.NodeLoadResource{
		Name: "cpu", Query: "busy", TimestampQuery: "timestamp(busy)", DeviationQuery: "varies", Unit: config.NodeLoadRatio, Window: &metav1.Duration{Duration: 5 * time.Minute}, Weight: pointer.Int32(1), Strategy: config.NodeLoadLeastUsed,
		Target: pointer.Int32(40), Margin: pointer.Float64(1), Sensitivity: pointer.Float64(1), Estimator: config.NodeLoadEstimator{
			Resource: v1.ResourceCPU, By: config.NodeLoadEstimateRequests, Factor: pointer.Int32(100), Default: parsed("0"),
		},
	}
	if threshold > 0 {
		r.Threshold = pointer.Int32(threshold)
	}
	return r
}

// network has estimates only from pods' annotations, and a capacity of 1 GB/s.
func network(threshold int32) config.NodeLoadResource {
	r := cpu(threshold)
	r.Name, r.Query, r.Capacity = "network", "transmitted", parsed("1G")
	r.Estimator = config.NodeLoadEstimator{By: config.NodeLoadEstimateRequests, Factor: pointer.Int32(100), Default: parsed("0"), Annotation: "example.com/bandwidth"}
	return r
}

// world is a real framework with the plugin, and with a fake client, clock and measurements.
type world struct {
	framework.Framework
	plugin *NodeLoad
	clock  *testingclock.FakeClock
	client *clientset.Clientset
	ids    uint64
	last   *collector.Snapshot
	stop   chan struct{}
	names  []string // of nodes, for benchmarks

	mu    sync.Mutex
	moves []framework.ClusterEvent
}

// moved returns how often pending pods were moved.
func (w *world) moved() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.moves)
}

func newWorld(t testing.TB, args config.NodeLoadArgs, nodes []*v1.Node, pods ...*v1.Pod) *world {
	t.Helper()
	return newWorldAt(t, args, nodes, pods, "preFilter", "filter", "preScore", "score")
}

// newWorldAt enables the plugin at some extension points only.
func newWorldAt(t testing.TB, args config.NodeLoadArgs, nodes []*v1.Node, pods []*v1.Pod, points ...string) *world {
	t.Helper()
	var objects []runtime.Object
	for _, node := range nodes {
		objects = append(objects, node)
	}
	var placed []*v1.Pod
	for _, pod := range pods {
		objects = append(objects, pod)
		if pod.Spec.NodeName != "" {
			placed = append(placed, pod)
		}
	}
	w := &world{
		clock:  testingclock.NewFakeClock(epoch),
		client: clientset.NewSimpleClientset(objects...),
		stop:   make(chan struct{}),
	}
	enabled := schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: Name, Weight: 1}}}
	plugins := &schedulerconfig.Plugins{
		QueueSort: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: queuesort.Name}}},
		Bind:      schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: defaultbinder.Name}}},
	}
	for _, point := range points {
		*map[string]*schedulerconfig.PluginSet{
			"preFilter": &plugins.PreFilter, "filter": &plugins.Filter, "preScore": &plugins.PreScore, "score": &plugins.Score,
		}[point] = enabled
	}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	var err error
	w.Framework, err = frameworkruntime.NewFramework(frameworkruntime.Registry{
		Name: func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			if w.plugin, err = newPlugin(args, handle, w.clock, &group{}); err != nil {
				return nil, err
			}
			w.plugin.source = fresh{}
			w.plugin.group.add(w.plugin)
			_, err = w.plugin.spec()
			return w.plugin, err
		},
		queuesort.Name:     queuesort.New,
		defaultbinder.Name: defaultbinder.New,
	}, &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: t.Name(), // its own profile, because all tests of a process share its metrics
		Plugins:       plugins,
		PluginConfig:  []schedulerconfig.PluginConfig{{Name: Name, Args: &args}},
	},
		frameworkruntime.WithClientSet(w.client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(placed, nodes)),
		frameworkruntime.WithPodNominator(queue.NewPodNominator(factory.Core().V1().Pods().Lister())),
	)
	if err != nil {
		t.Fatal(err)
	}
	w.plugin.SetPodMover(func(event framework.ClusterEvent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moves = append(w.moves, event)
	})
	t.Cleanup(func() { close(w.stop) })
	factory.Start(w.stop)
	factory.WaitForCacheSync(w.stop)
	return w
}

// fresh is the status of a source that answers.
type fresh struct{}

func (fresh) Status() collector.Status {
	return collector.Status{Source: "0", State: collector.Fresh}
}

// measure gives the plugin a snapshot with samples that were taken now.
func (w *world) measure(samples map[string][]collector.Sample) {
	w.ids++
	var resources []collector.Resource
	for i := range w.plugin.resources {
		resources = append(resources, w.plugin.resources[i].asked)
	}
	w.last = collector.NewSnapshot(w.ids, w.clock.Now(), resources, samples)
	w.plugin.swapped(w.last)
}

// scoreOf returns the score of a node in whole points.
func (w *world) scoreOf(state *framework.CycleState, pod *v1.Pod, node string) int64 {
	score, _ := w.plugin.Score(context.Background(), state, pod, node)
	return score / point
}

// sample returns a value that was measured at the given age.
func (w *world) sample(value float64, age time.Duration) collector.Sample {
	return collector.Sample{Value: value, At: w.clock.Now().Add(-age).UnixNano()}
}

func (w *world) nodeInfo(t testing.TB, name string) *framework.NodeInfo {
	t.Helper()
	info, err := w.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// outcome is the result of a cycle for the nodes.
type outcome struct {
	rejected map[string]string
	scores   map[string]int64
}

// cycle runs a pod's scheduling cycle, and scores the rejected nodes too.
func (w *world) cycle(t testing.TB, pod *v1.Pod) outcome {
	t.Helper()
	ctx, state := context.Background(), framework.NewCycleState()
	o := outcome{rejected: map[string]string{}, scores: map[string]int64{}}
	if status := w.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	infos, err := w.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*v1.Node
	statuses := make([]*framework.Status, len(infos))
	w.Parallelizer().Until(ctx, len(infos), func(i int) {
		statuses[i] = w.RunFilterPluginsWithNominatedPods(ctx, state, pod, infos[i])
	})
	for i, status := range statuses {
		nodes = append(nodes, infos[i].Node())
		switch status.Code() {
		case framework.Success:
		case framework.UnschedulableAndUnresolvable:
			o.rejected[infos[i].Node().Name] = status.Message()
		default:
			t.Fatalf("Filter: %v", status)
		}
	}
	if status := w.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	scores, status := w.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	for _, score := range scores[Name] {
		o.scores[score.Name] = score.Score
	}
	return o
}

// node returns a node with 10 cores.
func node(name string) *v1.Node {
	return st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "10", v1.ResourceMemory: "10G", v1.ResourcePods: "110"}).Obj()
}

func nodes(count int) []*v1.Node {
	var all []*v1.Node
	for i := 0; i < count; i++ {
		all = append(all, node(fmt.Sprintf("node-%d", i)))
	}
	return all
}

// pod returns a pod that requests some CPU; none if the amount is empty.
func pod(name, cpu string) *v1.Pod {
	made := st.MakePod().Namespace("test").Name(name).UID(name)
	if cpu != "" {
		made.Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu})
	} else {
		made.Container("image")
	}
	return made.Obj()
}

// on places a pod on a node, running since some seconds after epoch.
func on(pod *v1.Pod, node string, since int) *v1.Pod {
	pod.Spec.NodeName = node
	pod.Status.Phase = v1.PodRunning
	pod.Status.ContainerStatuses = []v1.ContainerStatus{runs(since, 0)}
	return pod
}

func count(t testing.TB, counter metrics.CounterMetric) int {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(counter)
	if err != nil {
		t.Fatal(err)
	}
	return int(value)
}

func gauge(t testing.TB, metric metrics.GaugeMetric) float64 {
	t.Helper()
	value, err := testutil.GetGaugeMetricValue(metric)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
