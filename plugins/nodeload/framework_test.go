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
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
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

// world is a profile with the plugin, a fake clock and measurements.
type world struct {
	*plugintest.Profile
	plugin *NodeLoad
	clock  *testingclock.FakeClock
	ids    uint64
	last   *collector.Snapshot

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
	w := &world{clock: testingclock.NewFakeClock(epoch)}
	w.Profile = plugintest.NewProfile(t, plugintest.Options{
		Plugin: Name, Args: &args, Points: points, Nodes: nodes, Pods: pods,
		New: func(args runtime.Object, handle framework.Handle) (plugin framework.Plugin, err error) {
			if w.plugin, err = newPlugin(args, handle, w.clock, &group{}); err != nil {
				return nil, err
			}
			w.plugin.source = fresh{}
			w.plugin.group.add(w.plugin)
			_, err = w.plugin.spec()
			return w.plugin, err
		},
	})
	w.plugin.SetPodMover(func(event framework.ClusterEvent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moves = append(w.moves, event)
	})
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

// unmeasured is the load of a node without a measurement.
const unmeasured = -1

// samples returns samples of one resource that were taken now on node-0, node-1, ….
func (w *world) samples(loads ...float64) map[string][]collector.Sample {
	samples := map[string][]collector.Sample{}
	for i, load := range loads {
		if load != unmeasured {
			samples[fmt.Sprintf("node-%d", i)] = []collector.Sample{w.sample(load, 0)}
		}
	}
	return samples
}

// measureLoads gives the plugin a snapshot with one resource.
func (w *world) measureLoads(loads ...float64) { w.measure(w.samples(loads...)) }

// scoreOf returns the score of a node in whole points.
func (w *world) scoreOf(state *framework.CycleState, pod *v1.Pod, node string) int64 {
	score, _ := w.plugin.Score(context.Background(), state, pod, node)
	return score / point
}

// sample returns a value that was measured at the given age.
func (w *world) sample(value float64, age time.Duration) collector.Sample {
	return collector.Sample{Value: value, At: w.clock.Now().Add(-age).UnixNano()}
}

// outcome is the result of a cycle for the nodes.
type outcome struct {
	rejected map[string]string
	scores   map[string]int64
}

// cycle runs a pod's scheduling cycle, and scores the rejected nodes too.
func (w *world) cycle(t testing.TB, pod *v1.Pod) outcome {
	t.Helper()
	state, o, nodes := framework.NewCycleState(), outcome{rejected: map[string]string{}}, []*v1.Node(nil)
	for name, status := range w.Filter(t, state, pod) {
		nodes = append(nodes, w.Node(t, name).Node())
		switch status.Code() {
		case framework.Success:
		case framework.UnschedulableAndUnresolvable:
			o.rejected[name] = status.Message()
		default:
			t.Fatalf("Filter: %v", status)
		}
	}
	o.scores = w.Score(t, state, pod, nodes)
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
