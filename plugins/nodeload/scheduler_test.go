// SPDX-License-Identifier: Apache-2.0

package nodeload_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/decision"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/pointer"
)

// These tests run whole schedulers: queue, cycles, bindings, informers. The plugin has another name in them, because a
// scheduler that has the plugin itself would take that.
const name = "Measured"

// configuration has a profile with the default plugins and NodeLoad, and one in which nothing but NodeLoad scores.
const configuration = `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: Measured}]
- schedulerName: alone
  plugins:
    multiPoint:
      enabled: [{name: Measured}]
    score:
      disabled: [{name: "*"}]
      enabled: [{name: Measured}]
`

func arguments() *config.NodeLoadArgs {
	return &config.NodeLoadArgs{
		Prometheus:      config.NodeLoadPrometheus{Endpoints: []string{"http://127.0.0.1:9090"}, Timeout: metav1.Duration{Duration: 10 * time.Second}},
		RefreshInterval: metav1.Duration{Duration: 30 * time.Second},
		MaxSampleAge:    metav1.Duration{Duration: time.Hour},
		NodeMatch:       config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchName},
		Resources: []config.NodeLoadResource{{
			Name: "cpu", Unit: config.NodeLoadRatio, Window: metav1.Duration{Duration: 5 * time.Minute}, Weight: 1,
			Threshold: pointer.Int32(80), Strategy: config.NodeLoadLeastUsed, Target: 40, Margin: 1, Sensitivity: 1,
			Estimator: config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: 85, Default: apiresource.MustParse("250m")},
		}},
		Fallback:             config.NodeLoadFallbackRequests,
		FilterOnStale:        config.NodeLoadFilterOpen,
		MinFreshNodesPercent: 50,
		ExemptDaemonSets:     true,
	}
}

// scheduler is one with measurements that a test fills.
type scheduler struct {
	*decision.Scheduler
	measurements nodeload.Measurements
	plugins      []nodeload.Renamed
	handles      []framework.Handle
	snapshots    uint64
}

func newScheduler(t *testing.T, args *config.NodeLoadArgs, nodes []*v1.Node, noBackoff bool) *scheduler {
	t.Helper()
	s := &scheduler{}
	s.Scheduler = decision.New(t, decision.Options{
		Config: configuration, Nodes: nodes, Seed: 1, Parallelism: 16, NoBackoff: noBackoff,
		Plugins: frameworkruntime.Registry{name: func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := nodeload.NewRenamed(name, args, handle, clock.RealClock{}, &s.measurements)
			if err == nil {
				s.plugins, s.handles = append(s.plugins, plugin), append(s.handles, handle)
				t.Cleanup(plugin.Close)
			}
			return plugin, err
		}},
	})
	// As the scheduler does that offers this.
	for _, plugin := range s.plugins {
		plugin.SetPodMover(func(event framework.ClusterEvent) { s.SchedulingQueue.MoveAllToActiveOrBackoffQueue(event, nil) })
	}
	return s
}

// measure gives the plugins the loads of nodes, measured at a time.
func (s *scheduler) measure(at time.Time, loads map[string]float64) {
	s.snapshots++
	index, samples := map[string]int32{}, []measured.Sample(nil)
	for node, load := range loads {
		index[node] = int32(len(samples))
		samples = append(samples, measured.Sample{Value: load, At: at.UnixNano()})
	}
	s.measurements.Swap(measured.New(s.snapshots, at, 1, index, samples))
}

func nodesOf(count int, cpu string) []*v1.Node {
	var nodes []*v1.Node
	for i := 0; i < count; i++ {
		nodes = append(nodes, st.MakeNode().Name(fmt.Sprintf("node-%d", i)).
			Capacity(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: "64Gi", v1.ResourcePods: "1000"}).Obj())
	}
	return nodes
}

// evenly loads all nodes alike.
func evenly(nodes []*v1.Node, load float64) map[string]float64 {
	loads := map[string]float64{}
	for _, node := range nodes {
		loads[node.Name] = load
	}
	return loads
}

func podsOf(count int, profile, cpu string) []*v1.Pod {
	var pods []*v1.Pod
	for i := 0; i < count; i++ {
		pods = append(pods, st.MakePod().Name(fmt.Sprintf("%s-%d", profile, i)).SchedulerName(profile).
			Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj())
	}
	return pods
}

// spread returns the fewest and the most pods that a node got.
func spread(t *testing.T, nodes []*v1.Node, decisions []decision.Decision) (fewest, most int) {
	t.Helper()
	counts := map[string]int{}
	for _, made := range decisions {
		if made.Node == "" {
			t.Fatalf("%s found no node: %s", made.Pod, made.Failure)
		}
		counts[made.Node]++
	}
	fewest = len(decisions)
	for _, node := range nodes {
		if n := counts[node.Name]; n < fewest {
			fewest = n
		}
		if n := counts[node.Name]; n > most {
			most = n
		}
	}
	return fewest, most
}

// TestManyPodsSpreadThoughNoMeasurementMoves: 500 equal pods onto 40 equal nodes are 12 or 13 for each. Small pods too, of
// which four are a hundredth of a node.
func TestManyPodsSpreadThoughNoMeasurementMoves(t *testing.T) {
	for _, profile := range []string{"default-scheduler", "alone"} {
		for _, size := range []string{"1", "100m"} {
			t.Run(profile+" "+size, func(t *testing.T) {
				nodes := nodesOf(40, "40")
				s := newScheduler(t, arguments(), nodes, false)
				s.measure(time.Now(), evenly(nodes, 0.2))
				decisions := s.Schedule(podsOf(500, profile, size)...)
				if fewest, most := spread(t, nodes, decisions); fewest < 12 || most > 13 {
					t.Errorf("nodes got %d to %d pods, want 12 or 13", fewest, most)
				}
				s.Settle()
			})
		}
	}
}

// TestManyPodsSpreadThoughANodeIsNotMeasured: it gets about as many as the others, and not all.
func TestManyPodsSpreadThoughANodeIsNotMeasured(t *testing.T) {
	const pods = 80
	for _, profile := range []string{"default-scheduler", "alone"} {
		for _, size := range []string{"1", "100m"} {
			for _, fallback := range []config.NodeLoadFallback{config.NodeLoadFallbackRequests, config.NodeLoadFallbackNeutral} {
				for _, load := range []float64{0.2, 0.6} {
					t.Run(fmt.Sprintf("%s %s %s %v", profile, size, fallback, load), func(t *testing.T) {
						nodes := nodesOf(40, "40")
						args := arguments()
						args.Fallback = fallback
						s := newScheduler(t, args, nodes, false)
						loads := evenly(nodes, load)
						delete(loads, "node-7")
						s.measure(time.Now(), loads)
						counts := map[string]int{}
						for _, made := range s.Schedule(podsOf(pods, profile, size)...) {
							counts[made.Node]++
						}
						if counts["node-7"] > 3 || counts[""] > 0 {
							t.Errorf("of %d pods for 40 nodes, the one that is not measured got %d; %d found no node", pods, counts["node-7"], counts[""])
						}
						s.Settle()
					})
				}
			}
		}
	}
}

// TestManyPodsPileUpWithoutTheAccount of what is in flight: an estimator that reads nothing takes every pod for idle.
func TestManyPodsPileUpWithoutTheAccount(t *testing.T) {
	nodes := nodesOf(40, "40")
	args := arguments()
	args.Resources[0].Estimator = config.NodeLoadEstimator{Factor: 100}
	s := newScheduler(t, args, nodes, false)
	loads := evenly(nodes, 0.2)
	loads["node-7"] = 0.19
	s.measure(time.Now(), loads)
	// Until the node's CPUs are all requested: 40 pods, all on the one that was the coldest.
	if _, most := spread(t, nodes, s.Schedule(podsOf(500, "alone", "1")...)); most != 40 {
		t.Errorf("the node with most pods got %d, want 40", most)
	}
	s.Settle()
}

// TestHotNodesGetNoPods until they cool; then waiting pods are tried at once.
func TestHotNodesGetNoPods(t *testing.T) {
	nodes := nodesOf(10, "40")
	s := newScheduler(t, arguments(), nodes, true)
	loads := evenly(nodes, 0.79)
	for i := 0; i < 8; i++ {
		loads[fmt.Sprintf("node-%d", i)] = 0.9
	}
	loads["node-8"], loads["node-9"] = 0.5, 0.5
	s.measure(time.Now(), loads)
	for _, made := range s.Schedule(podsOf(20, "default-scheduler", "1")...) {
		if made.Node != "node-8" && made.Node != "node-9" {
			t.Errorf("%s goes to %q: %s", made.Pod, made.Node, made.Failure)
		}
	}
	s.Settle()
	late := st.MakePod().Name("late").Req(map[v1.ResourceName]string{v1.ResourceCPU: "10"}).Obj()
	if made := s.Schedule(late)[0]; made.Node != "" {
		t.Fatalf("there is no node with 8.5 of 40 cores to spare, and still: %v", made)
	} else if want := "0/10 nodes are available: 10 node load: cpu would be at "; len(made.Failure) < len(want) {
		t.Errorf("the failure is %q", made.Failure)
	}
	loads["node-3"] = 0.5
	s.measure(time.Now(), loads)
	// Only an event wakes the pod; the flush comes after a minute, which is the patience of this.
	if made := s.Next(1)[0]; made.Node != "node-3" {
		t.Errorf("got %v, want node-3", made)
	}
	s.Settle()
}

// TestARestartCountsNothingTwice: a scheduler that finds 1,000 pods running takes the same to be in flight as the one that
// saw them come: nothing of the old ones, half of those that began half a window before the measurement, all of the new.
func TestARestartCountsNothingTwice(t *testing.T) {
	nodes := nodesOf(10, "400")
	at := time.Now()
	began := func(seconds int) metav1.Time { return metav1.NewTime(at.Add(-time.Duration(seconds) * time.Second)) }
	var pods []*v1.Pod
	for i, pod := range podsOf(1000, "default-scheduler", "1") {
		pod.Spec.NodeName = nodes[i%10].Name
		pod.Status.Phase = v1.PodRunning
		since := began(3600)
		switch {
		case i >= 980: // two for each node
			since = began(-5)
		case i >= 940: // four for each node
			since = began(150)
		}
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: since}}}}
		pods = append(pods, pod)
	}
	const want = 0.85 * (4*0.5 + 2)
	inFlight := func(s *scheduler) map[string]float64 {
		s.measure(at, evenly(nodes, 0.25))
		s.Schedule(podsOf(1, "alone", "0")...) // takes the cache's snapshot
		found := map[string]float64{}
		for _, node := range nodes {
			info, err := s.handles[0].SnapshotSharedLister().NodeInfos().Get(node.Name)
			if err != nil {
				t.Fatal(err)
			}
			found[node.Name] = s.plugins[0].InFlight(info, 0)
		}
		return found
	}

	// The first one sees each pod come, pending, and then start.
	first := newScheduler(t, arguments(), nodes, false)
	var pending []*v1.Pod
	for _, pod := range pods {
		pod = pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodPending}
		pending = append(pending, pod)
	}
	first.Create(pending...)
	for _, pod := range first.Complete(pods...) {
		if _, err := first.Client.CoreV1().Pods(pod.Namespace).Update(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, first, pod)
	}
	second := newScheduler(t, arguments(), nodes, false)
	second.Create(pods...)
	for which, got := range []map[string]float64{inFlight(first), inFlight(second)} {
		for _, node := range nodes {
			// Seconds are what the API's times have.
			if diff := got[node.Name] - want; diff > 0.05 || diff < -0.05 {
				t.Errorf("scheduler %d: %v cores in flight on %s, want %v", which+1, got[node.Name], node.Name, want)
			}
		}
	}
}

// await waits until the scheduler's cache has the pod as it is.
func await(t *testing.T, s *scheduler, pod *v1.Pod) {
	t.Helper()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(100 * time.Microsecond) {
		if cached, err := s.SchedulerCache.GetPod(pod); err == nil && cached.Status.Phase == pod.Status.Phase {
			return
		}
	}
	t.Fatalf("waited in vain for %s in the cache", pod.Name)
}
