// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

func mustNew(t testing.TB, args runtime.Object, lister framework.SharedLister) *WorkloadTopology {
	t.Helper()
	return plugintest.New(t, New, t.Name(), args, lister).(*WorkloadTopology)
}

// zones are three nodes in zone a, of which two in one rack, and one each in zones b, of the same region, and far.
func zones() *cluster {
	return newCluster(newNode("a1", "a", "r"), newNode("a2", "a", "r"), newNode("a3", "a", "r"), newNode("b1", "b", "r"), newNode("far", "z", "s"))
}

func newPod(app, component string) *v1.Pod {
	return st.MakePod().Namespace("default").Name("incoming").UID("incoming").Label("app", app).Label("component", component).Obj()
}

// scores runs PreFilter and Score for a pod on all nodes.
func scores(t *testing.T, pl *WorkloadTopology, c *cluster, pod *v1.Pod) map[string]int64 {
	t.Helper()
	state := framework.NewCycleState()
	if status := pl.PreFilter(context.Background(), state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	got := make(map[string]int64)
	for _, nodeInfo := range c.all {
		name := nodeInfo.Node().Name
		score, status := pl.Score(context.Background(), state, pod, name)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		got[name] = score
	}
	list := make(framework.NodeScoreList, len(c.all))
	for i, nodeInfo := range c.all {
		list[i].Name = nodeInfo.Node().Name
	}
	if status := pl.ScoreNodes(state, pod, c.all, list); !status.IsSuccess() {
		t.Fatal(status)
	}
	for _, scored := range list {
		if scored.Score != got[scored.Name] {
			t.Errorf("among others %s scores %d, and alone %d", scored.Name, scored.Score, got[scored.Name])
		}
	}
	return got
}

func expectScores(t *testing.T, got, want map[string]int64) {
	t.Helper()
	for name, score := range want {
		if got[name] != score {
			t.Errorf("%s scores %d, want %d (all: %v)", name, got[name], score, got)
		}
	}
}

func TestScore(t *testing.T) {
	tests := []struct {
		name  string
		args  func(*config.WorkloadTopologyArgs)
		place func(*cluster)
		pod   *v1.Pod
		want  map[string]int64
	}{
		{
			name: "the first pod of a job is at home everywhere", pod: newPod("job", "taskmanager"),
			want: map[string]int64{"a1": 100, "b1": 100, "far": 100},
		},
		{
			name: "two peers in zone a, one of them on a1: a1 100 - (0 + 10)/2, a2 the same, a3 100 - 10, b1 100 - 50",
			place: func(c *cluster) {
				c.place("a1", "job", "taskmanager", 1)
				c.place("a2", "job", "jobmanager", 1)
			},
			pod:  newPod("job", "taskmanager"),
			want: map[string]int64{"a1": 95, "a2": 95, "a3": 90, "b1": 50, "far": 1},
		},
		{
			name:  "another job, and the same one in another namespace, are no peers",
			place: func(c *cluster) { c.place("a1", "other", "taskmanager", 5) },
			pod:   newPod("job", "taskmanager"),
			want:  map[string]int64{"a1": 100, "far": 100},
		},
		{
			name:  "a pod without a group",
			place: func(c *cluster) { c.place("a1", "job", "taskmanager", 5) },
			pod:   st.MakePod().Namespace("default").Name("p").Obj(),
			want:  map[string]int64{"a1": 0, "far": 0},
		},
		{
			name: "edges with weights: 9 to the task manager on b1, 1 to the job manager on a1: b1 100 - (0×9 + 50×1)/10, a1 100 - (50×9)/10",
			args: func(args *config.WorkloadTopologyArgs) {
				args.Edges = []config.WorkloadTopologyEdge{
					{From: labelled("component", "taskmanager"), To: labelled("component", "taskmanager"), Weight: pointer.Int32(9)},
					{From: labelled("component", "taskmanager"), To: labelled("component", "jobmanager"), Weight: pointer.Int32(1)},
				}
			},
			place: func(c *cluster) {
				c.place("b1", "job", "taskmanager", 1)
				c.place("a1", "job", "jobmanager", 1)
			},
			pod:  newPod("job", "taskmanager"),
			want: map[string]int64{"b1": 95, "a1": 55, "a2": 54},
		},
		{
			name: "an edge counts in both directions",
			args: func(args *config.WorkloadTopologyArgs) {
				args.Edges = []config.WorkloadTopologyEdge{
					{From: labelled("component", "taskmanager"), To: labelled("component", "jobmanager"), Weight: pointer.Int32(1)},
				}
			},
			place: func(c *cluster) { c.place("b1", "job", "taskmanager", 3) },
			pod:   newPod("job", "jobmanager"),
			want:  map[string]int64{"b1": 100, "a1": 50},
		},
		{
			name:  "an annotation names the job, and the arguments do not count",
			place: func(c *cluster) { c.node("a1").AddPod(ofJob("peer", "job")); c.place("b1", "job", "taskmanager", 1) },
			pod:   ofJob("incoming", "job"),
			want:  map[string]int64{"a1": 100, "b1": 50},
		},
		{
			name:  "an annotation that is too long for a name is ignored",
			place: func(c *cluster) { c.node("a1").AddPod(ofJob("peer", strings.Repeat("x", 64))) },
			pod:   ofJob("incoming", strings.Repeat("x", 64)),
			want:  map[string]int64{"a1": 100, "b1": 100},
		},
		{
			name: "a pod with the labels, which the arguments do not select",
			args: func(args *config.WorkloadTopologyArgs) {
				args.PodSelector = labelled("type", "flink-native-kubernetes")
			},
			place: func(c *cluster) { c.place("a1", "job", "taskmanager", 5) },
			pod:   newPod("job", "taskmanager"),
			want:  map[string]int64{"a1": 0, "far": 0},
		},
		{
			name:  "a pod of a namespace that the arguments do not select",
			args:  func(args *config.WorkloadTopologyArgs) { args.Namespaces = []string{"streaming-*"} },
			place: func(c *cluster) { c.place("a1", "job", "taskmanager", 5) },
			pod:   newPod("job", "taskmanager"),
			want:  map[string]int64{"a1": 0, "far": 0},
		},
		{
			name:  "without arguments, pods with equal labels app are no job",
			args:  func(args *config.WorkloadTopologyArgs) { args.PodSelector, args.GroupBy = nil, nil },
			place: func(c *cluster) { c.place("a1", "job", "taskmanager", 5) },
			pod:   newPod("job", "taskmanager"),
			want:  map[string]int64{"a1": 0, "far": 0},
		},
		{
			name:  "half for spread: a1 (100×50 + 25×50)/100, a2 (90×50 + 100×50)/100",
			args:  func(args *config.WorkloadTopologyArgs) { args.SpreadWeight = 50 },
			place: func(c *cluster) { c.place("a1", "job", "taskmanager", 3) },
			pod:   newPod("job", "taskmanager"),
			want:  map[string]int64{"a1": 62, "a2": 95, "b1": 75},
		},
		{
			name: "pods that are to be deleted are no peers",
			place: func(c *cluster) {
				now := metav1.Now()
				pod := newPod("job", "taskmanager")
				pod.Name, pod.DeletionTimestamp = "leaving", &now
				c.node("a1").AddPod(pod)
				c.place("b1", "job", "taskmanager", 1)
			},
			pod:  newPod("job", "taskmanager"),
			want: map[string]int64{"a1": 50, "b1": 100},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, c := newArgs(), zones()
			if tt.args != nil {
				tt.args(args)
			}
			if tt.place != nil {
				tt.place(c)
			}
			pl := mustNew(t, args, c)
			expectScores(t, scores(t, pl, c, tt.pod), tt.want)
		})
	}
}

// ofJob is a pod whose annotation names its job.
func ofJob(name, job string) *v1.Pod {
	pod := st.MakePod().Namespace("default").Name(name).UID(name).Label("app", name).Obj()
	pod.Annotations = map[string]string{JobAnnotation: job}
	return pod
}

// filter runs Filter for a pod on each node, and returns the reasons of those that are rejected.
func filter(pl *WorkloadTopology, state *framework.CycleState, c *cluster, pod *v1.Pod) map[string]string {
	return rejected(c, func(nodeInfo *framework.NodeInfo) *framework.Status {
		return pl.Filter(context.Background(), state, pod, nodeInfo)
	})
}

func rejected(c *cluster, filter func(*framework.NodeInfo) *framework.Status) map[string]string {
	rejected := make(map[string]string)
	for _, nodeInfo := range c.all {
		if status := filter(nodeInfo); !status.IsSuccess() {
			rejected[nodeInfo.Node().Name] = fmt.Sprintf("%v: %s", status.Code(), status.Message())
		}
	}
	return rejected
}

func prefiltered(t *testing.T, pl *WorkloadTopology, pod *v1.Pod) *framework.CycleState {
	t.Helper()
	state := framework.NewCycleState()
	if status := pl.PreFilter(context.Background(), state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	return state
}

func TestMaxPerNode(t *testing.T) {
	args, c := newArgs(), zones()
	args.MaxPerNode = pointer.Int32(2)
	c.place("a1", "job", "taskmanager", 2)
	c.place("a2", "job", "taskmanager", 1)
	c.place("a2", "other", "taskmanager", 3)
	pl := mustNew(t, args, c)
	pod := newPod("job", "jobmanager")
	state := prefiltered(t, pl, pod)
	want := map[string]string{"a1": "Unschedulable: " + reasonMaxPerNode}
	if got := filter(pl, state, c, pod); !reflect.DeepEqual(got, want) {
		t.Errorf("rejected: %v, want %v", got, want)
	}
	if got := rejected(c, pl.PrepareFilter(state, pod)); !reflect.DeepEqual(got, want) {
		t.Errorf("prepared, the filter rejects %v, want %v", got, want)
	}

	// Preemption tries how it would be without a pod, and puts it back.
	tried, victim := state.Clone(), c.node("a1").Pods[0]
	node := c.node("a1")
	if status := pl.RemovePod(context.Background(), tried, pod, victim, node); !status.IsSuccess() {
		t.Fatal(status)
	}
	if got := filter(pl, tried, c, pod); len(got) != 0 {
		t.Errorf("without a pod of the group on a1 it is rejected: %v", got)
	}
	again := tried.Clone()
	if status := pl.AddPod(context.Background(), tried, pod, victim, node); !status.IsSuccess() {
		t.Fatal(status)
	}
	if got := filter(pl, tried, c, pod); len(got) != 1 {
		t.Errorf("with the pod back on a1 rejected are %v, want a1", got)
	}
	if got := filter(pl, again, c, pod); len(got) != 0 {
		t.Errorf("a copy of the state sees what is done to the other: %v", got)
	}
	if got := filter(pl, state, c, pod); len(got) != 1 {
		t.Errorf("the cycle itself sees what is tried: %v", got)
	}

	// A pod of another group, and one that is to be deleted, change nothing.
	for _, other := range []*v1.Pod{c.node("a2").Pods[1].Pod, deleted(victim.Pod)} {
		tried := state.Clone()
		if status := pl.RemovePod(context.Background(), tried, pod, framework.NewPodInfo(other), node); !status.IsSuccess() {
			t.Fatal(status)
		}
		if got := filter(pl, tried, c, pod); len(got) != 1 {
			t.Errorf("without %s rejected are %v, want a1", other.Name, got)
		}
	}

	if got := filter(pl, prefiltered(t, pl, newPod("", "")), c, newPod("", "")); len(got) != 0 {
		t.Errorf("a pod without a group is rejected: %v", got)
	}
}

func deleted(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	return pod
}

// TestScoreInParallel scores as the scheduler's workers do, where no earlier extension point is enabled; and two pods
// in turn, so that what is kept of the one must not decide over the other.
func TestScoreInParallel(t *testing.T) {
	c := zones()
	c.place("a1", "one", "x", 2)
	c.place("b1", "two", "x", 2)
	pl := mustNew(t, newArgs(), c)
	for round := 0; round < 20; round++ {
		for _, tt := range []struct {
			app  string
			want map[string]int64
		}{{"one", map[string]int64{"a1": 100, "b1": 50}}, {"two", map[string]int64{"a1": 50, "b1": 100}}} {
			pod, state := newPod(tt.app, "x"), framework.NewCycleState()
			plugintest.InParallel(8, func(int) {
				for name, want := range tt.want {
					if got, status := pl.Score(context.Background(), state, pod, name); got != want || !status.IsSuccess() {
						t.Errorf("%s scores %d on %s, want %d: %v", tt.app, got, name, want, status)
					}
				}
			})
		}
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	c := zones()
	c.place("a1", "job", "x", 1)
	pl := mustNew(t, newArgs(), c)
	prefiltered(t, pl, newPod("job", "x"))
	prefiltered(t, pl, newPod("first", "x"))
	prefiltered(t, pl, newPod("", ""))
	asked := framework.NewCycleState()
	whatif.Mark(asked)
	if status := pl.PreFilter(context.Background(), asked, newPod("job", "x")); !status.IsSuccess() {
		t.Fatal(status)
	}
	for result, want := range map[string]float64{"peers": 1, "no_peers": 1, "not_concerned": 1} {
		if got := plugintest.MetricValue(t, attempts.WithLabelValues(t.Name(), result)); got != want {
			t.Errorf("counted %g attempts with %s, want %g", got, result, want)
		}
	}
}

func TestExplain(t *testing.T) {
	c := zones()
	c.place("a1", "job", "x", 2)
	pl := mustNew(t, newArgs(), c)
	pod := newPod("job", "x")
	state := prefiltered(t, pl, pod)
	want := `Group default/job. Weight of the placed peers: 2. a1: near 100, pods of the group 2. b1: near 50.`
	if got := pl.Explain(state, pod, []string{"a1", "b1"}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	alone := newPod("", "")
	if got := pl.Explain(prefiltered(t, pl, alone), alone, []string{"a1"}); got != "" {
		t.Errorf("of a pod that is not concerned it says %q", got)
	}
	if got := pl.Explain(framework.NewCycleState(), pod, nil); got != "" {
		t.Errorf("of a cycle that did not begin it says %q", got)
	}
}

func TestEventsToRegister(t *testing.T) {
	args := newArgs()
	if got := mustNew(t, args, zones()).EventsToRegister(); got != nil {
		t.Errorf("it filters nothing, and registers %v", got)
	}
	args.MaxPerNode = pointer.Int32(1)
	if got := mustNew(t, args, zones()).EventsToRegister(); len(got) != 2 || got[1].ActionType&framework.Delete == 0 {
		t.Errorf("with maxPerNode it registers %v, want those of nodes and of pods", got)
	}
	of := func(namespace string) *v1.Pod { return st.MakePod().Namespace(namespace).Label("app", "job").Obj() }
	pl, pending := mustNew(t, args, zones()), of("a")
	if !pl.EndHelps(of("a"), pending) || pl.EndHelps(of("b"), pending) || !pl.EndHelps(of("a"), pending) {
		t.Error("the end of a pod of the group helps, and no other")
	}
	if ended := st.MakePod().Obj(); pl.EndHelps(ended, st.MakePod().Obj()) {
		t.Error("the end of a pod without a group helps none")
	}
}

// BenchmarkCycle is what a cycle costs that scores 500 of 5,000 nodes, with one pod placed between two cycles, by the
// size of the pod's group.
func BenchmarkCycle(b *testing.B) {
	const nodes, scored = 5000, 500
	for _, size := range []int{0, 10, 1000, 10000} {
		b.Run(fmt.Sprintf("group=%d", size), func(b *testing.B) {
			c, random := newCluster(), rand.New(rand.NewSource(1))
			for i := 0; i < nodes; i++ {
				c.all = append(c.all, plugintest.NodeInfo(newNode(fmt.Sprintf("node-%d", i), fmt.Sprintf("zone-%d", i%3), "region")))
			}
			for i := 0; i < size; i++ {
				name := fmt.Sprintf("pod-%d", i)
				c.all[random.Intn(nodes)].AddPod(st.MakePod().Namespace("default").Name(name).UID(name).Label("app", "job").Label("component", "x").Obj())
			}
			telling := &tellingCluster{cluster: c}
			pl := mustNew(b, newArgs(), telling)
			var spent time.Duration
			scores := make(framework.NodeScoreList, scored)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				start := time.Now()
				pod, state := newPod("job", "x"), framework.NewCycleState()
				if status := pl.PreFilter(context.Background(), state, pod); !status.IsSuccess() {
					b.Fatal(status)
				}
				for n := range scores {
					scores[n].Name = c.all[n].Node().Name
				}
				if status := pl.ScoreNodes(state, pod, c.all[:scored], scores); !status.IsSuccess() {
					b.Fatal(status)
				}
				spent += time.Since(start)
				b.StopTimer()
				telling.replace(c.all[i%nodes], pod)
				b.StartTimer()
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*scored), "ns/node")
		})
	}
}

// tellingCluster knows which node has changed, as the snapshot of the patched tree does.
type tellingCluster struct {
	*cluster
	changed []*framework.NodeInfo
	on      *framework.NodeInfo
	pod     *v1.Pod
}

// replace puts a pod on a node, in place of the one that was put on one before.
func (c *tellingCluster) replace(on *framework.NodeInfo, pod *v1.Pod) {
	if c.on != nil {
		if err := c.on.RemovePod(c.pod); err != nil {
			panic(err)
		}
		c.changed = append(c.changed, c.on)
	}
	on.AddPod(pod)
	c.on, c.pod = on, pod
	c.changed = append(c.changed, on)
}

func (c *tellingCluster) ChangedSince(position int64) ([]*framework.NodeInfo, int64, bool) {
	now := int64(len(c.changed)) + 1
	if position == 0 {
		return nil, now, false
	}
	return c.changed[position-1:], now, true
}
