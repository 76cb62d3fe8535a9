// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
	"kube-scheduler-fork/test/inprocess/decision"
)

// nodeLoadConfiguration has a profile with the default plugins and NodeLoad, and one in which only NodeLoad scores.
const nodeLoadConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: NodeLoad}]
- schedulerName: alone
  plugins:
    multiPoint:
      enabled: [{name: NodeLoad}]
    score:
      disabled: [{name: "*"}]
      enabled: [{name: NodeLoad}]
`

func arguments() *config.NodeLoadArgs {
	args := &config.NodeLoadArgs{
		RefreshInterval: &metav1.Duration{Duration: time.Second},
		MaxSampleAge:    &metav1.Duration{Duration: time.Hour},
		NodeMatch:       config.NodeLoadNodeMatch{By: config.NodeLoadMatchName},
		Resources:       []config.NodeLoadResource{{Name: "cpu", Threshold: pointer.Int32(80)}},
	}
	scheme.Scheme.Default(args)
	return args
}

// nodeLoadScheduler is a scheduler whose NodeLoad queries the test's Prometheus.
type nodeLoadScheduler struct {
	*decision.Scheduler
	*prometheus
	t       *testing.T
	plugins []*nodeload.NodeLoad
}

// newNodeLoad returns a scheduler after its NodeLoad has received the loads of the nodes.
func newNodeLoad(t *testing.T, args *config.NodeLoadArgs, nodes []*v1.Node, loads map[string]float64, at time.Time,
	noBackoff bool) *nodeLoadScheduler {
	t.Helper()
	s := &nodeLoadScheduler{t: t, prometheus: newPrometheus(t, loads, at)}
	args.Prometheus.Endpoints = []string{s.url}
	factory := nodeload.Factory(collector.New())
	s.Scheduler = decision.New(t, decision.Options{
		Config: nodeLoadConfiguration, Nodes: nodes, Seed: 1, Parallelism: 16, NoBackoff: noBackoff,
		Plugins: frameworkruntime.Registry{
			nodeload.Name: func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
				plugin, err := factory(args, handle)
				if err == nil {
					s.plugins = append(s.plugins, plugin.(*nodeload.NodeLoad))
				}
				return plugin, err
			},
		},
	})
	// As the scheduler does that offers this.
	for _, plugin := range s.plugins {
		plugin.SetPodMover(func(event framework.ClusterEvent) {
			s.SchedulingQueue.MoveAllToActiveOrBackoffQueue(event, nil)
		})
	}
	plugintest.WaitFor(t, "NodeLoad has measured the nodes", func() bool {
		for _, profile := range s.page() {
			for _, node := range profile.Nodes {
				if _, measured := loads[node.Node]; measured != (node.Resources[0].Measured != nil) {
					return false
				}
			}
			if len(profile.Nodes) != len(nodes) {
				return false
			}
		}
		return true
	})
	return s
}

// profilePage has the fields of NodeLoad's status that the tests need.
type profilePage struct {
	Snapshot int `json:"snapshot"`
	Nodes    []struct {
		Node      string `json:"node"`
		Resources []struct {
			Measured *float64 `json:"measuredPercent"`
		} `json:"resources"`
	} `json:"nodes"`
}

// page returns NodeLoad's status.
func (s *nodeLoadScheduler) page() []profilePage {
	s.t.Helper()
	answer := httptest.NewRecorder()
	s.plugins[0].Pages()["/node-load"].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/node-load", nil))
	var page struct {
		Profiles []profilePage `json:"profiles"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
		s.t.Fatal(err)
	}
	return page.Profiles
}

func nodesOf(count int, cpu string) []*v1.Node {
	var nodes []*v1.Node
	for i := 0; i < count; i++ {
		nodes = append(nodes, st.MakeNode().Name(fmt.Sprintf("node-%d", i)).
			Capacity(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: "64Gi", v1.ResourcePods: "1000"}).Obj())
	}
	return nodes
}

// evenly returns the same load for all nodes.
func evenly(nodes []*v1.Node, load float64) map[string]float64 {
	loads := map[string]float64{}
	for _, node := range nodes {
		loads[node.Name] = load
	}
	return loads
}

func podsWith(count int, profile, cpu string) []*v1.Pod {
	var pods []*v1.Pod
	for i := 0; i < count; i++ {
		pods = append(pods, st.MakePod().Name(fmt.Sprintf("%s-%d", profile, i)).SchedulerName(profile).
			Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj())
	}
	return pods
}

// spread returns the fewest and the most pods on a node.
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

// TestNodeLoadSpreadsManyPods schedules 500 equal pods to 40 equal nodes before any measurement changes: each gets 12
// or 13, also of small pods, of which four are a hundredth of a node.
func TestNodeLoadSpreadsManyPods(t *testing.T) {
	for _, profile := range []string{"default-scheduler", "alone"} {
		for _, size := range []string{"1", "100m"} {
			t.Run(profile+" "+size, func(t *testing.T) {
				nodes := nodesOf(40, "40")
				s := newNodeLoad(t, arguments(), nodes, evenly(nodes, 0.2), time.Now(), false)
				decisions := s.Schedule(podsWith(500, profile, size)...)
				if fewest, most := spread(t, nodes, decisions); fewest < 12 || most > 13 {
					t.Errorf("nodes got %d to %d pods, want 12 or 13", fewest, most)
				}
				s.Settle()
			})
		}
	}
}

// TestNodeLoadUnmeasuredNode checks that a node without a measurement gets about as many pods as the others.
func TestNodeLoadUnmeasuredNode(t *testing.T) {
	const pods = 80
	for _, profile := range []string{"default-scheduler", "alone"} {
		for _, size := range []string{"1", "100m"} {
			for _, fallback := range []config.NodeLoadFallback{config.NodeLoadFallbackRequests, config.NodeLoadFallbackNeutral} {
				for _, load := range []float64{0.2, 0.6} {
					t.Run(fmt.Sprintf("%s %s %s %v", profile, size, fallback, load), func(t *testing.T) {
						nodes := nodesOf(40, "40")
						args := arguments()
						args.Fallback = fallback
						loads := evenly(nodes, load)
						delete(loads, "node-7")
						s := newNodeLoad(t, args, nodes, loads, time.Now(), false)
						counts := map[string]int{}
						for _, made := range s.Schedule(podsWith(pods, profile, size)...) {
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

// TestNodeLoadHotNodes checks that hot nodes get no pods until they cool, and that a waiting pod is told why once, and is
// retried as soon as a node has cooled.
func TestNodeLoadHotNodes(t *testing.T) {
	nodes := nodesOf(10, "40")
	loads := evenly(nodes, 0.79)
	for i := 0; i < 8; i++ {
		loads[fmt.Sprintf("node-%d", i)] = 0.9
	}
	loads["node-8"], loads["node-9"] = 0.5, 0.5
	s := newNodeLoad(t, arguments(), nodes, loads, time.Now(), true)
	for _, made := range s.Schedule(podsWith(20, "default-scheduler", "1")...) {
		if made.Node != "node-8" && made.Node != "node-9" {
			t.Errorf("%s goes to %q: %s", made.Pod, made.Node, made.Failure)
		}
	}
	s.Settle()
	// With ten pods each, they are at 71 %: each takes one more large pod, which does not count before it is placed.
	for _, made := range s.Schedule(podsWith(2, "alone", "10")...) {
		if made.Node != "node-8" && made.Node != "node-9" {
			t.Errorf("%s goes to %q: %s", made.Pod, made.Node, made.Failure)
		}
	}
	s.Settle()
	late := st.MakePod().Name("late").Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
	if made := s.Schedule(late)[0]; made.Node != "" {
		t.Fatalf("all nodes are hot, and still: %v", made)
	} else if want := "10 node(s) had cpu above 80 % of capacity"; !strings.Contains(made.Failure, want) {
		t.Errorf("the failure is %q, which does not contain %q", made.Failure, want)
	}
	// However often it is retried, the pod's condition is written once.
	for i := 0; i < 3; i++ {
		s.Retry("default/late")
	}
	written := 0
	for _, action := range s.Client.Actions() {
		if patch, is := action.(clienttesting.PatchAction); is && patch.GetName() == "late" && patch.GetSubresource() == "status" {
			written++
		}
	}
	if written != 1 {
		t.Errorf("%d conditions of the pod were written, want one", written)
	}
	s.set("node-3", 0.5, time.Now())
	// Only an event requeues the pod in time: the flush comes after a minute, which is the limit of this wait.
	if made := s.Next(1)[0]; made.Node != "node-3" {
		t.Errorf("got %v, want node-3", made)
	}
	s.Settle()
}

// bronze returns pods of priority 0 that have run on node-0 for an hour, and of which the last are being deleted.
func bronze(count, deleted int) []*v1.Pod {
	var pods []*v1.Pod
	for i := 0; i < count; i++ {
		pod := st.MakePod().Name(fmt.Sprintf("bronze-%d", i)).UID(fmt.Sprintf("bronze-%d", i)).Priority(0).Node("node-0").
			Req(map[v1.ResourceName]string{v1.ResourceCPU: "500m"}).Obj()
		pod.Status.Phase = v1.PodRunning
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))}},
		}}
		if i >= count-deleted {
			now := metav1.Now()
			pod.DeletionTimestamp = &now
		}
		pods = append(pods, pod)
	}
	return pods
}

func gold(name string) *v1.Pod {
	return st.MakePod().Name(name).UID(name).Priority(1000).Req(map[v1.ResourceName]string{v1.ResourceCPU: "100m"}).Obj()
}

// TestNodeLoadLowerPriorityLoad has a node with 10 cores at 90 %, and a threshold of 80 %. Six pods of a lower priority
// run on it.
func TestNodeLoadLowerPriorityLoad(t *testing.T) {
	for _, test := range []struct {
		name string
		mode config.NodeLoadLowerPriorityLoad
		// use is what each of the six uses, in cores; not measured if negative.
		use float64
		// deleted is how many of them are being deleted from the start.
		deleted   int
		evicted   int
		scheduled bool
	}{
		// 90 % less 2 x 5 % is 80 %, which is not below it by the margin.
		{"three evictions suffice", config.NodeLoadLowerPriorityPreemptible, 0.5, 0, 3, true},
		{"one eviction suffices", config.NodeLoadLowerPriorityPreemptible, 2, 0, 1, true},
		{"six evictions do not suffice: 84 %", config.NodeLoadLowerPriorityPreemptible, 0.1, 0, 0, false},
		{"their use is not measured", config.NodeLoadLowerPriorityPreemptible, -1, 0, 0, false},
		{"three are being deleted, which is enough: 75 %", config.NodeLoadLowerPriorityPreemptible, 0.5, 3, 0, true},
		{"three are being deleted, and are not measured", config.NodeLoadLowerPriorityPreemptible, -1, 3, 0, false},
		{"all load counts", config.NodeLoadLowerPriorityCounts, 2, 0, 0, false},
		{"theirs does not count", config.NodeLoadLowerPriorityIgnored, 0.5, 0, 0, true},
		{"theirs does not count, and is too little", config.NodeLoadLowerPriorityIgnored, 0.1, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodes, args := nodesOf(1, "10"), arguments()
			args.LowerPriorityLoad = test.mode
			args.Resources[0].PodQuery, args.Resources[0].PodTimestampQuery = podUse, "timestamp("+podUse+")"
			s := newNodeLoad(t, args, nodes, evenly(nodes, 0.5), time.Time{}, true)
			s.Create(bronze(6, test.deleted)...)
			uses := map[string]float64{}
			for i := 0; i < 6 && test.use >= 0; i++ {
				uses[fmt.Sprintf("bronze-%d", i)] = test.use
			}
			s.mutex.Lock()
			s.pods = uses
			s.mutex.Unlock()
			s.set("node-0", 0.9, time.Time{})
			measured := func() { s.awaitMeasured("node-0", 90) }
			measured()

			made := s.Schedule(gold("gold"))[0]
			if test.evicted > 0 {
				if made.Node != "" {
					t.Fatalf("the pod is scheduled without an eviction: %v", made)
				}
				// The end of the victims wakes it.
				made = s.Next(1)[0]
			}
			if (made.Node != "") != test.scheduled {
				t.Errorf("scheduled to %q: %s", made.Node, made.Failure)
			}
			s.Settle()
			if names := deleted(s.Scheduler); len(names) != test.evicted {
				t.Errorf("%v were evicted, want %d", names, test.evicted)
			}
			// The mean still contains the victims.
			measured()
			if made := s.Schedule(gold("next"))[0]; (made.Node != "") != test.scheduled {
				t.Errorf("the next pod is scheduled to %q: %s", made.Node, made.Failure)
			}
			s.Settle()
			if names := deleted(s.Scheduler); len(names) != test.evicted {
				t.Errorf("%v were evicted in the end, want %d", names, test.evicted)
			}
		})
	}
}

// awaitMeasured waits for a refresh that begins from now on, and shows a load.
func (s *nodeLoadScheduler) awaitMeasured(node string, percent float64) {
	s.t.Helper()
	before := s.page()[0].Snapshot
	plugintest.WaitFor(s.t, "NodeLoad has measured the node", func() bool {
		page := s.page()[0]
		// The first of two refreshes may have been answered before.
		return page.Snapshot >= before+2 && *page.Nodes[0].Resources[0].Measured == percent
	})
}
