// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

func mustNew(t testing.TB, profile string, args *config.RunningImageLocalityArgs, lister framework.SharedLister) *RunningImageLocality {
	t.Helper()
	if args.SpreadWeight == nil {
		args.SpreadWeight = pointer.Int32(0)
	}
	return plugintest.New(t, New, profile, args, lister).(*RunningImageLocality)
}

// running makes a pod that runs a container of each image.
func running(name, node string, images ...string) *v1.Pod {
	pod := st.MakePod().Name(name).UID(name).Node(node).Obj()
	pod.Status.Phase = v1.PodRunning
	for i, image := range images {
		container := fmt.Sprintf("c%d", i)
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: container, Image: image})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			v1.ContainerStatus{Name: container, Image: image, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
	}
	return pod
}

// with changes a pod.
func with(pod *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	change(pod)
	return pod
}

// incoming makes a pod that is to be scheduled, with a container of each image.
func incoming(images ...string) *v1.Pod {
	pod := st.MakePod().Name("incoming").Obj()
	for i, image := range images {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Image: image})
	}
	return pod
}

// nodeOf makes a node that reports images by name and size.
func nodeOf(name string, mebibytes map[string]int64) *v1.Node {
	node := st.MakeNode().Name(name).Obj()
	for image, size := range mebibytes {
		node.Status.Images = append(node.Status.Images, v1.ContainerImage{Names: []string{image}, SizeBytes: size * mebibyte})
	}
	return node
}

// scoresOf calls the plugin as the framework does, and returns the scores of n1, n2, ….
func scoresOf(t testing.TB, pl *RunningImageLocality, pod *v1.Pod, nodes int, preScore bool) []int64 {
	t.Helper()
	ctx, state := context.Background(), framework.NewCycleState()
	if preScore {
		if status := pl.PreScore(ctx, state, pod, nil); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	list := make(framework.NodeScoreList, nodes)
	for i := range list {
		list[i].Name = fmt.Sprintf("n%d", i+1)
		score, status := pl.Score(ctx, state, pod, list[i].Name)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		list[i].Score = score
	}
	if status := pl.ScoreExtensions().NormalizeScore(ctx, state, pod, list); !status.IsSuccess() {
		t.Fatal(status)
	}
	scores := make([]int64, nodes)
	for i := range list {
		scores[i] = list[i].Score
	}
	return scores
}

func TestScore(t *testing.T) {
	oneNodeOfFour := []*v1.Node{nodeOf("n1", nil), nodeOf("n2", nil), nodeOf("n3", nil), nodeOf("n4", nil)}
	tests := []struct {
		name  string
		args  config.RunningImageLocalityArgs
		nodes []*v1.Node
		pods  []*v1.Pod
		pod   *v1.Pod
		// want are the scores of n1, n2, ….
		want []int64
	}{
		{
			name: "the images of no running pod: nothing is better than anything",
			pods: []*v1.Pod{running("p1", "n1", "other")}, pod: incoming("app"), want: []int64{0, 0},
		},
		{
			name: "one node runs the image: 100 × 1/1, the other 100 × 0/1",
			pods: []*v1.Pod{running("p1", "n1", "other"), running("p2", "n2", "app")}, pod: incoming("app"), want: []int64{0, 100},
		},
		{
			name: "1 and 2 of the pod's 3 images: 100 × 1/2 and 100 × 2/2",
			pods: []*v1.Pod{running("p1", "n1", "a"), running("p2", "n2", "b"), running("p3", "n2", "c", "other")},
			pod:  incoming("a", "b", "c"), want: []int64{50, 100, 0},
		},
		{
			name: "images are counted once for each node: 3 containers on n1 are worth as much as 1 on n2",
			pods: []*v1.Pod{running("p1", "n1", "app", "app"), running("p2", "n1", "app"), running("p3", "n2", "app")},
			pod:  incoming("app"), want: []int64{100, 100, 0},
		},
		{
			name: "containers are counted: 100 × 3/3 on n1, 100 × 1/3 on n2, rounded down",
			args: config.RunningImageLocalityArgs{Count: config.CountContainers},
			pods: []*v1.Pod{running("p1", "n1", "app", "app"), running("p2", "n1", "app"), running("p3", "n2", "app")},
			pod:  incoming("app"), want: []int64{100, 33, 0},
		},
		{
			name: "an image that the pod has twice counts once: 100 × 1/1 on both, not 100 × 2/2 and 100 × 1/2",
			pods: []*v1.Pod{running("p1", "n1", "a"), running("p2", "n2", "b")}, pod: incoming("a", "docker.io/library/a:latest", "b"), want: []int64{100, 100},
		},
		{
			name: "the same image by other names",
			pods: []*v1.Pod{running("p1", "n1", "docker.io/library/app:latest"), running("p2", "n2", "app:1"), running("p3", "n3", "registry.k8s.io/app")},
			pod:  incoming("app"), want: []int64{100, 0, 0},
		},
		{
			name: "a digest that the runtime reports of a pod that names a tag",
			pods: []*v1.Pod{
				with(running("p1", "n1", "app:1"), func(pod *v1.Pod) {
					pod.Status.ContainerStatuses[0].ImageID = "docker-pullable://app@" + digestA
				}),
				with(running("p2", "n2", "app:1"), func(pod *v1.Pod) {
					pod.Status.ContainerStatuses[0].ImageID = "docker.io/library/app@" + digestB
				}),
			},
			pod: incoming("app:2@" + digestA), want: []int64{100, 0},
		},
		{
			name: "a container whose name and report are one digest counts once",
			args: config.RunningImageLocalityArgs{Count: config.CountContainers},
			pods: []*v1.Pod{
				with(running("p1", "n1", "app@"+digestA), func(pod *v1.Pod) { pod.Status.ContainerStatuses[0].ImageID = "docker.io/library/app@" + digestA }),
				running("p2", "n2", "app@"+digestA),
			},
			pod: incoming("app@" + digestA), want: []int64{100, 100},
		},
		{
			name: "the tag that the runtime reports is not the pod's",
			pods: []*v1.Pod{with(running("p1", "n1", "app:1"), func(pod *v1.Pod) { pod.Status.ContainerStatuses[0].Image = "docker.io/library/app:2" })},
			pod:  incoming("app:2"), want: []int64{0},
		},
		{
			name: "only containers that run, of pods that run: not one that waits, ended, has no status; not a pod that starts, ended",
			pods: []*v1.Pod{
				with(running("p1", "n1", "app"), func(pod *v1.Pod) {
					pod.Status.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
				}),
				with(running("p2", "n2", "app"), func(pod *v1.Pod) {
					pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
				}),
				with(running("p3", "n3", "app"), func(pod *v1.Pod) { pod.Status.ContainerStatuses = nil }),
				with(running("p4", "n4", "app"), func(pod *v1.Pod) { pod.Status.Phase = v1.PodPending }),
				with(running("p5", "n5", "app"), func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }),
				running("p6", "n6", "app"),
			},
			pod: incoming("app"), want: []int64{0, 0, 0, 0, 0, 100},
		},
		{
			name: "a pod that is being deleted runs until its containers end",
			pods: []*v1.Pod{with(running("p1", "n1", "app"), func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} })},
			pod:  incoming("app"), want: []int64{100, 0},
		},
		{
			name: "ephemeral containers of running pods count; init containers have ended",
			pods: []*v1.Pod{
				with(running("p1", "n1", "other"), func(pod *v1.Pod) {
					pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "app"}}}
					pod.Status.EphemeralContainerStatuses = []v1.ContainerStatus{{Name: "debug", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
				}),
				with(running("p2", "n2", "other"), func(pod *v1.Pod) {
					pod.Spec.InitContainers = []v1.Container{{Name: "init", Image: "app"}}
					pod.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
				}),
			},
			pod: incoming("app"), want: []int64{100, 0},
		},
		{
			name: "init containers of the pod count: the node needs their images too",
			pods: []*v1.Pod{running("p1", "n1", "builder"), running("p2", "n2", "app", "builder")},
			pod:  with(incoming("app"), func(pod *v1.Pod) { pod.Spec.InitContainers = []v1.Container{{Name: "init", Image: "builder"}} }),
			want: []int64{50, 100},
		},
		{
			name: "what is no image name matches nothing, not even itself",
			pods: []*v1.Pod{running("p1", "n1", "Wrong Name", ""), running("p2", "n2", "app")}, pod: incoming("Wrong Name", "", "app"), want: []int64{0, 100},
		},
		{
			name:  "all by size: an image of 750 MiB against one of 250: 100 × 750/750 × 0.75 and 100 × 250/750 × 0.75",
			args:  config.RunningImageLocalityArgs{SizeWeight: 100},
			nodes: []*v1.Node{nodeOf("n1", map[string]int64{"big": 750}), nodeOf("n2", map[string]int64{"docker.io/library/small:latest": 250})},
			pods:  []*v1.Pod{running("p1", "n1", "big"), running("p2", "n2", "small")}, pod: incoming("big", "small"), want: []int64{75, 25},
		},
		{
			name:  "without a weight, size is nothing to it",
			nodes: []*v1.Node{nodeOf("n1", map[string]int64{"big": 750}), nodeOf("n2", map[string]int64{"small": 250})},
			pods:  []*v1.Pod{running("p1", "n1", "big"), running("p2", "n2", "small")}, pod: incoming("big", "small"), want: []int64{100, 100},
		},
		{
			name:  "an image that its node does not report is none of the 50 largest, and counts as nothing: 100 × 0.6, at least 1, and 100 × 0.2",
			args:  config.RunningImageLocalityArgs{SizeWeight: 100},
			nodes: []*v1.Node{nodeOf("n1", map[string]int64{"big": 600}), nodeOf("n2", nil), nodeOf("n3", map[string]int64{"small": 200})},
			pods:  []*v1.Pod{running("p1", "n1", "big"), running("p2", "n2", "unknown"), running("p3", "n3", "small")},
			pod:   incoming("big", "unknown", "small"), want: []int64{60, 1, 20},
		},
		{
			name:  "the largest report counts, of nodes that run the image: 100 × 0.6, not 0.3, and not 0.9 of n3",
			args:  config.RunningImageLocalityArgs{SizeWeight: 100},
			nodes: []*v1.Node{nodeOf("n1", map[string]int64{"app": 600}), nodeOf("n2", map[string]int64{"app": 300}), nodeOf("n3", map[string]int64{"app": 900})},
			pods:  []*v1.Pod{running("p1", "n1", "app"), running("p2", "n2", "app")}, pod: incoming("app"), want: []int64{60, 60, 0},
		},
		{
			name: "all by spread, 1 node of 4 runs the image: 100 × 1/1 × 1/4, which is a weak pull",
			args: config.RunningImageLocalityArgs{SpreadWeight: pointer.Int32(100)}, nodes: oneNodeOfFour,
			pods: []*v1.Pod{running("p1", "n1", "app")}, pod: incoming("app"), want: []int64{25, 0, 0, 0},
		},
		{
			name: "half by spread, 1 node of 4 runs the image: 100 × (1 - 0.5 + 0.5 × 0.25), rounded down",
			args: config.RunningImageLocalityArgs{SpreadWeight: pointer.Int32(50)}, nodes: oneNodeOfFour,
			pods: []*v1.Pod{running("p1", "n1", "app")}, pod: incoming("app"), want: []int64{62, 0, 0, 0},
		},
		{
			name: "all by spread, n1 runs what 1 node of 4 runs, n2 and n3 what 2 of 4 run: 100 × 0.25/0.5 × 0.5 and 100 × 0.5/0.5 × 0.5",
			args: config.RunningImageLocalityArgs{SpreadWeight: pointer.Int32(100)}, nodes: oneNodeOfFour,
			pods: []*v1.Pod{running("p1", "n1", "a"), running("p2", "n2", "b"), running("p3", "n3", "b")},
			pod:  incoming("a", "b"), want: []int64{25, 50, 50, 0},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := plugintest.NewCluster(t)
			for i := range tt.want {
				c.Add(nodeOf(fmt.Sprintf("n%d", i+1), nil))
			}
			for _, node := range tt.nodes {
				c.UpdateNode(nil, node)
			}
			for _, pod := range tt.pods {
				c.Add(pod)
			}
			pl := mustNew(t, "profile", &tt.args, c)
			if got := scoresOf(t, pl, tt.pod, len(tt.want), true); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got the scores %v, want %v", got, tt.want)
			}
			if got := scoresOf(t, pl, tt.pod, len(tt.want), false); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("without PreScore: got the scores %v, want %v", got, tt.want)
			}
		})
	}
}

// TestNormalizeScoreIgnoresOtherNodes scores only n1: what n2 runs is out of the pod's reach.
func TestNormalizeScoreIgnoresOtherNodes(t *testing.T) {
	c := plugintest.NewCluster(t, nodeOf("n1", map[string]int64{"small": 50}), nodeOf("n2", map[string]int64{"big": 1000}), running("p1", "n1", "small"))
	pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{SizeWeight: 100}, c)
	for _, when := range []string{"before", "after"} {
		// 100 × 1/1 × 50/1000.
		if got := scoresOf(t, pl, incoming("big", "small"), 1, true); !reflect.DeepEqual(got, []int64{5}) {
			t.Errorf("%s big runs elsewhere the scores are %v, want 5", when, got)
		}
		c.Add(running("p2-"+when, "n2", "big"))
	}
}

// TestScoreOfAMatchIsAtLeast1 has an image on one node of 200: 100 × 1/200 is half a point.
func TestScoreOfAMatchIsAtLeast1(t *testing.T) {
	c := plugintest.NewCluster(t)
	for i := 1; i <= 200; i++ {
		c.Add(nodeOf(fmt.Sprintf("n%d", i), nil))
	}
	c.Add(running("p1", "n1", "app"))
	pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{SpreadWeight: pointer.Int32(100)}, c)
	if got := scoresOf(t, pl, incoming("app"), 2, true); !reflect.DeepEqual(got, []int64{1, 0}) {
		t.Errorf("got the scores %v, want 1 and 0", got)
	}
}

// TestScoreWithoutASize is the largest that a node can claim.
func TestScoreWithoutASize(t *testing.T) {
	claims := nodeOf("n1", nil)
	claims.Status.Images = []v1.ContainerImage{{Names: []string{"app"}, SizeBytes: math.MaxInt64}}
	pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{SizeWeight: 100}, plugintest.NewCluster(t, claims, running("p1", "n1", "app")))
	if got := scoresOf(t, pl, incoming("app"), 2, true); !reflect.DeepEqual(got, []int64{100, 0}) {
		t.Errorf("got the scores %v, want 100 and 0", got)
	}
}

func TestScoreIsBounded(t *testing.T) {
	c := plugintest.NewCluster(t, nodeOf("n1", nil))
	for i := 0; i < 3000; i++ {
		c.Add(running(fmt.Sprintf("p%d", i), "n1", "app"))
	}
	pl, state := mustNew(t, "profile", &config.RunningImageLocalityArgs{Count: config.CountContainers}, c), framework.NewCycleState()
	if got, _ := pl.Score(context.Background(), state, incoming("app"), "n1"); got != math.MaxInt32 {
		t.Errorf("3,000 matches are worth %d, want no more than %d", got, math.MaxInt32)
	}
}

func TestMetrics(t *testing.T) {
	gone := running("p1", "n1", "app", "sidecar")
	c := plugintest.NewCluster(t, nodeOf("n1", nil), nodeOf("n2", nil), gone, running("p2", "n2", "app"))
	pl := mustNew(t, "counted", &config.RunningImageLocalityArgs{}, c)
	for _, pod := range []*v1.Pod{incoming("app"), incoming("other"), incoming("other", "sidecar")} {
		scoresOf(t, pl, pod, 2, true)
		scoresOf(t, pl, pod, 2, false)
	}
	for result, want := range map[string]float64{"match": 4, "no_match": 2} {
		if got := plugintest.MetricValue(t, attempts.WithLabelValues("counted", result)); got != want {
			t.Errorf("%g attempts with %s, want %g", got, result, want)
		}
	}
	images := func(want float64) {
		t.Helper()
		if got := plugintest.MetricValue(t, runningImages.WithLabelValues("counted")); got != want {
			t.Errorf("%g images run, want %g", got, want)
		}
	}
	images(2)
	c.Must(c.RemovePod(gone))
	scoresOf(t, pl, incoming("app"), 2, true)
	images(1)
}

// TestScoreInParallel lets 16 workers score the nodes of one cycle without a PreScore: one of them looks, and all see
// the same.
func TestScoreInParallel(t *testing.T) {
	c := plugintest.NewCluster(t, nodeOf("n1", nil))
	pl := mustNew(t, "parallel", &config.RunningImageLocalityArgs{Count: config.CountContainers}, c)
	for cycle := int64(1); cycle <= 50; cycle++ {
		c.Add(running(fmt.Sprintf("p%d", cycle), "n1", "app"))
		state, pod := framework.NewCycleState(), incoming("app")
		scores := make([]int64, 16)
		plugintest.InParallel(len(scores), func(worker int) {
			scores[worker], _ = pl.Score(context.Background(), state, pod, "n1")
		})
		for worker, score := range scores {
			if score != cycle*fullWorth {
				t.Fatalf("cycle %d: worker %d saw %d, want %d", cycle, worker, score, cycle*fullWorth)
			}
		}
	}
	if got := plugintest.MetricValue(t, attempts.WithLabelValues("parallel", "match")); got != 50 {
		t.Errorf("%g attempts are counted, want 50", got)
	}
}

// benchmarkNodes is how many nodes there are, of which benchmarkScored are scored.
const benchmarkNodes, benchmarkScored = 5000, 500

// large makes a cluster of 5,000 nodes with 20 pods each. Each of share nodes runs the image app; each node runs the
// image sidecar, if all run app.
func large(t testing.TB, share int) *plugintest.Cluster {
	c := plugintest.NewCluster(t)
	for i := 0; i < benchmarkNodes; i++ {
		name := fmt.Sprintf("node-%04d", i)
		c.Add(nodeOf(name, map[string]int64{"app": 100}))
		for n := 0; n < 18; n++ {
			c.Add(running(fmt.Sprintf("%s-%d", name, n), name, fmt.Sprintf("service-%d", (i+n)%100)))
		}
		if share > 0 && i%share == 0 {
			c.Add(running(name+"-app", name, "app"))
		}
		if share == 1 {
			c.Add(running(name+"-agent", name, "sidecar"))
		}
	}
	return c
}

// TestScoreAllocatesLittle has one node change between two cycles, as a decision does.
func TestScoreAllocatesLittle(t *testing.T) {
	c := large(t, 10)
	pl := mustNew(t, "allocations", &config.RunningImageLocalityArgs{SizeWeight: 50, SpreadWeight: pointer.Int32(50)}, c)
	ctx, pod, scores := context.Background(), incoming("app", "sidecar", "new"), make(framework.NodeScoreList, benchmarkScored)
	for i := range scores {
		scores[i].Name = fmt.Sprintf("node-%04d", i)
	}
	changing, state := running("changing", "node-0001", "app"), framework.NewCycleState()
	pl.PreScore(ctx, state, pod, nil)
	c.Add(changing)
	all := c.All()
	update := func() {
		// The pod comes as another object, as with each news of its kubelet.
		c.Must(all[1].RemovePod(changing))
		changing = changing.DeepCopy()
		all[1].AddPod(changing)
		_, err := pl.index.match(c.Snapshot, pod, pl.valuation)
		c.Must(err)
	}
	update()
	plugintest.ExpectAllocations(t, "PreScore after one node of all changed", 10, update)
	pl.PreScore(ctx, state, pod, nil)
	plugintest.ExpectAllocations(t, "Score and NormalizeScore", 0, func() {
		for i := range scores {
			scores[i].Score, _ = pl.Score(ctx, state, pod, scores[i].Name)
		}
		pl.NormalizeScore(ctx, state, pod, scores)
	})
}

// forEachBenchmark runs a benchmark with an image that none, one in ten and all of the nodes run, and a pod that has it
// beside an image that none runs and, as a second, one that all run.
func forEachBenchmark(b *testing.B, run func(b *testing.B, pl *RunningImageLocality, c *plugintest.Cluster, pod *v1.Pod)) {
	for share, nodes := range map[int]int{0: 0, 10: benchmarkNodes / 10, 1: benchmarkNodes} {
		c := large(b, share)
		pl := mustNew(b, "benchmark", &config.RunningImageLocalityArgs{SizeWeight: 50, SpreadWeight: pointer.Int32(50)}, c)
		pl.PreScore(context.Background(), framework.NewCycleState(), incoming(), nil)
		b.Run(fmt.Sprintf("%d nodes run the image", nodes), func(b *testing.B) {
			run(b, pl, c, incoming("app", "sidecar", "new"))
		})
	}
}

// BenchmarkPreScore is one call for each pod, after one node got a pod and one lost a pod; its cost is divided by all
// nodes.
func BenchmarkPreScore(b *testing.B) {
	forEachBenchmark(b, func(b *testing.B, pl *RunningImageLocality, c *plugintest.Cluster, pod *v1.Pod) {
		state := framework.NewCycleState()
		all := c.All()
		plugintest.PerNode(b, benchmarkNodes, func(i int) {
			all[i%benchmarkNodes].Generation = -int64(i) - 1
			all[(i+100)%benchmarkNodes].Generation = -int64(i) - int64(b.N) - 1
			pl.PreScore(context.Background(), state, pod, nil)
		})
	})
}

// BenchmarkScore is Score and NormalizeScore for the nodes that are scored.
func BenchmarkScore(b *testing.B) {
	forEachBenchmark(b, func(b *testing.B, pl *RunningImageLocality, _ *plugintest.Cluster, pod *v1.Pod) {
		state, list := framework.NewCycleState(), make(framework.NodeScoreList, benchmarkScored)
		names := make([]string, benchmarkScored)
		for i := range names {
			names[i] = fmt.Sprintf("node-%04d", i)
		}
		pl.PreScore(context.Background(), state, pod, nil)
		plugintest.PerNode(b, benchmarkScored, func(int) {
			for n := range list {
				score, _ := pl.Score(context.Background(), state, pod, names[n])
				list[n] = framework.NodeScore{Name: names[n], Score: score}
			}
			pl.NormalizeScore(context.Background(), state, pod, list)
		})
	})
}
