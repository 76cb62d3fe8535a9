// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/testutil"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// newPlugin makes the plugin as the scheduler does, for a profile of the given name.
func newPlugin(t testing.TB, profile string, args runtime.Object, factory informers.SharedInformerFactory) (framework.Plugin, error) {
	t.Helper()
	handle, err := frameworkruntime.NewFramework(nil, &schedulerconfig.KubeSchedulerProfile{SchedulerName: profile},
		frameworkruntime.WithInformerFactory(factory))
	if err != nil {
		t.Fatal(err)
	}
	return New(args, handle)
}

// mustNew makes a plugin whose informers never start: the test tells it what there is.
func mustNew(t testing.TB, profile string, args *config.RunningImageLocalityArgs) *RunningImageLocality {
	t.Helper()
	if args.Count == "" {
		args.Count = config.CountImages
	}
	plugin, err := newPlugin(t, profile, args, informers.NewSharedInformerFactory(clientset.NewSimpleClientset(), 0))
	if err != nil {
		t.Fatal(err)
	}
	return plugin.(*RunningImageLocality)
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

// node makes a node that reports images by name and size.
func node(name string, mebibytes map[string]int64) *v1.Node {
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

func TestScoresByWhatRuns(t *testing.T) {
	oneNodeOfFour := []*v1.Node{node("n1", nil), node("n2", nil), node("n3", nil), node("n4", nil)}
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
			name: "only containers that run, of pods that run: not one that waits, ended, has no status; not a pod that starts, ended, is nowhere",
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
				running("p6", "", "app"),
				running("p7", "n7", "app"),
			},
			pod: incoming("app"), want: []int64{0, 0, 0, 0, 0, 0, 100},
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
			nodes: []*v1.Node{node("n1", map[string]int64{"big": 750}), node("n2", map[string]int64{"docker.io/library/small:latest": 250})},
			pods:  []*v1.Pod{running("p1", "n1", "big"), running("p2", "n2", "small")}, pod: incoming("big", "small"), want: []int64{75, 25},
		},
		{
			name:  "without a weight, size is nothing to it",
			nodes: []*v1.Node{node("n1", map[string]int64{"big": 750}), node("n2", map[string]int64{"small": 250})},
			pods:  []*v1.Pod{running("p1", "n1", "big"), running("p2", "n2", "small")}, pod: incoming("big", "small"), want: []int64{100, 100},
		},
		{
			name:  "an image of unknown size counts as (600 + 200) / 2 = 400 MiB, less than 600 and more than 200: 100 × 0.6, 0.4 and 0.2",
			args:  config.RunningImageLocalityArgs{SizeWeight: 100},
			nodes: []*v1.Node{node("n1", map[string]int64{"big": 600}), node("n2", nil), node("n3", map[string]int64{"small": 200})},
			pods:  []*v1.Pod{running("p1", "n1", "big"), running("p2", "n2", "unknown"), running("p3", "n3", "small")},
			pod:   incoming("big", "unknown", "small"), want: []int64{60, 40, 20},
		},
		{
			name: "no size is known at all: as if it did not matter",
			args: config.RunningImageLocalityArgs{SizeWeight: 100},
			pods: []*v1.Pod{running("p1", "n1", "app")}, pod: incoming("app"), want: []int64{100, 0},
		},
		{
			name: "all by spread, 1 node of 4 runs the image: 100 × 1/1 × 1/4, which is a weak pull",
			args: config.RunningImageLocalityArgs{SpreadWeight: 100}, nodes: oneNodeOfFour,
			pods: []*v1.Pod{running("p1", "n1", "app")}, pod: incoming("app"), want: []int64{25, 0, 0, 0},
		},
		{
			name: "half by spread, 1 node of 4 runs the image: 100 × (1 - 0.5 + 0.5 × 0.25), rounded down",
			args: config.RunningImageLocalityArgs{SpreadWeight: 50}, nodes: oneNodeOfFour,
			pods: []*v1.Pod{running("p1", "n1", "app")}, pod: incoming("app"), want: []int64{62, 0, 0, 0},
		},
		{
			name: "all by spread, n1 runs what 1 node of 4 runs, n2 and n3 what 2 of 4 run: 100 × 0.25/0.5 × 0.5 and 100 × 0.5/0.5 × 0.5",
			args: config.RunningImageLocalityArgs{SpreadWeight: 100}, nodes: oneNodeOfFour,
			pods: []*v1.Pod{running("p1", "n1", "a"), running("p2", "n2", "b"), running("p3", "n3", "b")},
			pod:  incoming("a", "b"), want: []int64{25, 50, 50, 0},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pl := mustNew(t, "profile", &tt.args)
			for _, node := range tt.nodes {
				pl.nodeIs(node)
			}
			for _, pod := range tt.pods {
				pl.podIs(pod)
			}
			if got := scoresOf(t, pl, tt.pod, len(tt.want), true); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got the scores %v, want %v", got, tt.want)
			}
			if got := scoresOf(t, pl, tt.pod, len(tt.want), false); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("without PreScore: got the scores %v, want %v", got, tt.want)
			}
		})
	}
}

// TestNodesThatAreNotScoredDoNotChangeTheScale scores only n1: what n2 runs is out of the pod's reach.
func TestNodesThatAreNotScoredDoNotChangeTheScale(t *testing.T) {
	for _, bigRuns := range []bool{false, true} {
		pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{SizeWeight: 100})
		pl.nodeIs(node("n1", map[string]int64{"small": 50}))
		pl.nodeIs(node("n2", map[string]int64{"big": 1000}))
		pl.podIs(running("p1", "n1", "small"))
		if bigRuns {
			pl.podIs(running("p2", "n2", "big"))
		}
		// 100 × 1/1 × 50/1000.
		if got := scoresOf(t, pl, incoming("big", "small"), 1, true); !reflect.DeepEqual(got, []int64{5}) {
			t.Errorf("big runs elsewhere: %t, and the scores are %v, want 5", bigRuns, got)
		}
	}
}

// TestAMatchIsMoreThanNone has an image on one node of 200: 100 × 1/200 is half a point.
func TestAMatchIsMoreThanNone(t *testing.T) {
	pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{SpreadWeight: 100})
	for i := 1; i <= 200; i++ {
		pl.nodeIs(node(fmt.Sprintf("n%d", i), nil))
	}
	pl.podIs(running("p1", "n1", "app"))
	if got := scoresOf(t, pl, incoming("app"), 2, true); !reflect.DeepEqual(got, []int64{1, 0}) {
		t.Errorf("got the scores %v, want 1 and 0", got)
	}
}

// TestSizesThatNoImageHas has nodes claim sizes whose sum is more than an int64 holds.
func TestSizesThatNoImageHas(t *testing.T) {
	pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{SizeWeight: 100})
	for _, name := range []string{"n1", "n2", "n3"} {
		claims := node(name, nil)
		claims.Status.Images = []v1.ContainerImage{{Names: []string{"app"}, SizeBytes: math.MaxInt64}}
		pl.nodeIs(claims)
	}
	pl.podIs(running("p1", "n1", "app"))
	if got := pl.index.sizes.of("docker.io/library/app:latest"); got != maxSize {
		t.Errorf("the size is %d, want %d", got, maxSize)
	}
	if got := scoresOf(t, pl, incoming("app"), 2, true); !reflect.DeepEqual(got, []int64{100, 0}) {
		t.Errorf("got the scores %v, want 100 and 0", got)
	}
}

// TestInformersFillTheIndex lets an API server's objects come, change and go.
func TestInformersFillTheIndex(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	app := running("p1", "n1", "app")
	client := clientset.NewSimpleClientset(app, node("n1", map[string]int64{"app": 500}))
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin, err := newPlugin(t, "profile", &config.RunningImageLocalityArgs{Count: config.CountImages, SizeWeight: 100}, factory)
	if err != nil {
		t.Fatal(err)
	}
	pl := plugin.(*RunningImageLocality)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	expect := func(when string, want ...int64) {
		t.Helper()
		var got []int64
		if err := wait.PollImmediate(time.Millisecond, wait.ForeverTestTimeout, func() (bool, error) {
			got = scoresOf(t, pl, incoming("app"), len(want), true)
			return reflect.DeepEqual(got, want), nil
		}); err != nil {
			t.Fatalf("%s: got the scores %v, want %v", when, got, want)
		}
	}
	must := func(_ interface{}, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pods, nodes := client.CoreV1().Pods(""), client.CoreV1().Nodes()
	expect("after the start, half of 1,000 MiB", 50, 0)
	must(pods.Create(ctx, running("p2", "n2", "app"), metav1.CreateOptions{}))
	expect("after a pod was created", 50, 50)
	must(pods.UpdateStatus(ctx, with(app.DeepCopy(), func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }), metav1.UpdateOptions{}))
	expect("after a pod ended", 0, 50)
	must(nodes.UpdateStatus(ctx, node("n1", map[string]int64{"app": 250}), metav1.UpdateOptions{}))
	expect("after a node reported another size", 0, 25)
	must(nodes.Create(ctx, node("n3", map[string]int64{"app": 750}), metav1.CreateOptions{}))
	expect("after a node came that reports 750 MiB, 500 on average", 0, 50)
	must(nil, nodes.Delete(ctx, "n1", metav1.DeleteOptions{}))
	expect("after the node went that reported 250 MiB", 0, 75)
	must(nil, pods.Delete(ctx, "p2", metav1.DeleteOptions{}))
	expect("after a pod was deleted", 0, 0)
}

func TestOtherObjectsInEventsChangeNothing(t *testing.T) {
	pl := mustNew(t, "profile", &config.RunningImageLocalityArgs{})
	pl.podIs(running("p1", "n1", "app"))
	pl.podIs(&v1.Node{})
	pl.podIs(nil)
	pl.podIsGone("pod")
	pl.nodeIs(&v1.Pod{})
	pl.nodeIsGone(nil)
	if got := scoresOf(t, pl, incoming("app"), 2, true); !reflect.DeepEqual(got, []int64{100, 0}) {
		t.Errorf("got the scores %v", got)
	}
}

func TestNewRefusesBadArgs(t *testing.T) {
	tests := []struct {
		name string
		args runtime.Object
		want []string
	}{
		{name: "no args", args: nil, want: []string{"RunningImageLocalityArgs", "<nil>"}},
		{name: "another plugin's args", args: &config.RandScoreArgs{}, want: []string{"RandScoreArgs"}},
		{
			name: "every error at once, with the field's path",
			args: &config.RunningImageLocalityArgs{Count: "Pods", SizeWeight: 101, SpreadWeight: -1},
			want: []string{"pluginConfig[RunningImageLocality].args.count", "args.sizeWeight", "args.spreadWeight"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newPlugin(t, "profile", tt.args, informers.NewSharedInformerFactory(clientset.NewSimpleClientset(), 0))
			if err == nil {
				t.Fatal("New accepted the args")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q does not contain %q", err, want)
				}
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	pl := mustNew(t, "counted", &config.RunningImageLocalityArgs{})
	pl.podIs(running("p1", "n1", "app", "sidecar"))
	pl.podIs(running("p2", "n2", "app"))
	for _, pod := range []*v1.Pod{incoming("app"), incoming("other"), incoming("other", "sidecar")} {
		scoresOf(t, pl, pod, 2, true)
		scoresOf(t, pl, pod, 2, false)
	}
	for result, want := range map[string]float64{"match": 4, "no_match": 2} {
		if got, err := testutil.GetCounterMetricValue(attempts.WithLabelValues("counted", result)); err != nil || got != want {
			t.Errorf("%g attempts with %s, %v, want %g", got, result, err, want)
		}
	}
	images := func(want float64) {
		t.Helper()
		if got, err := testutil.GetGaugeMetricValue(runningImages.WithLabelValues("counted")); err != nil || got != want {
			t.Errorf("%g images run, %v, want %g", got, err, want)
		}
	}
	images(2)
	pl.podIsGone(running("p1", "n1"))
	images(1)
}

// TestScoreInParallel lets 16 workers score the nodes of one cycle without a PreScore, while pods come and go: all of
// them must see the same.
func TestScoreInParallel(t *testing.T) {
	pl := mustNew(t, "parallel", &config.RunningImageLocalityArgs{Count: config.CountContainers})
	stop := make(chan struct{})
	var informer, workers sync.WaitGroup
	informer.Add(1)
	go func() {
		defer informer.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				pl.podIs(running(fmt.Sprintf("p%d", i%10), "n1", "app"))
				pl.podIsGone(running(fmt.Sprintf("p%d", (i+5)%10), "n1", "app"))
			}
		}
	}()
	for cycle := 0; cycle < 50; cycle++ {
		state, pod := framework.NewCycleState(), incoming("app")
		scores := make([]int64, 16)
		for worker := range scores {
			workers.Add(1)
			go func(worker int) {
				defer workers.Done()
				scores[worker], _ = pl.Score(context.Background(), state, pod, "n1")
			}(worker)
		}
		workers.Wait()
		for worker := range scores {
			if scores[worker] != scores[0] {
				t.Fatalf("cycle %d: worker %d saw %d, and worker 0 %d", cycle, worker, scores[worker], scores[0])
			}
		}
	}
	close(stop)
	informer.Wait()
}

// TestCyclesDoNotShareMemory lets cycles overlap, as the requests to an extender do, each with an image that one node
// runs: what the one gives back must not be the other's, and must be clean when it is taken again.
func TestCyclesDoNotShareMemory(t *testing.T) {
	const cycles = 20
	pl := mustNew(t, "cycles", &config.RunningImageLocalityArgs{})
	for i := 0; i < cycles; i++ {
		pl.podIs(running(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i), fmt.Sprintf("app-%d", i)))
	}
	states, ctx := make([]*framework.CycleState, cycles), context.Background()
	for round := 0; round < 3; round++ {
		for i := range states {
			states[i] = framework.NewCycleState()
			pl.PreScore(ctx, states[i], incoming(fmt.Sprintf("app-%d", i)), nil)
		}
		for i := range states {
			pod := incoming(fmt.Sprintf("app-%d", i))
			for n := 0; n < cycles; n++ {
				want := int64(0)
				if n == i {
					want = fullWorth
				}
				if got, _ := pl.Score(ctx, states[i], pod, fmt.Sprintf("n%d", n)); got != want {
					t.Errorf("round %d, cycle %d: n%d is worth %d, want %d", round, i, n, got, want)
				}
			}
			clone := states[i].Clone()
			pl.NormalizeScore(ctx, states[i], pod, nil)
			pl.NormalizeScore(ctx, clone, pod, nil)
			if round > 0 {
				continue
			}
			if got, _ := pl.Score(ctx, states[i], pod, fmt.Sprintf("n%d", i)); got != fullWorth {
				t.Errorf("cycle %d: after its end n%d is worth %d", i, i, got)
			}
		}
		// More nodes: what was given back is too small now.
		pl.nodeIs(node(fmt.Sprintf("new-%d", round), nil))
	}
	kept := pl.index.worths
	if len(kept) == 0 || len(kept) > 4 {
		t.Errorf("%d slices are kept, want a few", len(kept))
	}
	for i := range kept {
		for j := range kept[:i] {
			if &kept[i][0] == &kept[j][0] {
				t.Errorf("slices %d and %d are the same: it was given back twice", i, j)
			}
		}
	}
}

func TestScoreDoesNotAllocate(t *testing.T) {
	pl := mustNew(t, "allocations", &config.RunningImageLocalityArgs{})
	pl.podIs(running("p1", "n1", "app"))
	ctx, state, pod := context.Background(), framework.NewCycleState(), incoming("app")
	pl.PreScore(ctx, state, pod, nil)
	if allocations := testing.AllocsPerRun(100, func() { pl.Score(ctx, state, pod, "n1") }); allocations != 0 {
		t.Errorf("%g allocations, want none", allocations)
	}
}

// benchmarkNodes is how many nodes there are, of which benchmarkScored are scored.
const benchmarkNodes, benchmarkScored = 5000, 500

// forEachBenchmark runs a benchmark with an image that none, one in ten and all of the nodes run, and a pod that has it
// beside an image that none runs and, as a second, one that all run.
func forEachBenchmark(b *testing.B, run func(b *testing.B, pl *RunningImageLocality, pod *v1.Pod, names []string)) {
	for _, share := range []int{0, 10, 1} {
		pl := mustNew(b, "benchmark", &config.RunningImageLocalityArgs{SizeWeight: 50, SpreadWeight: 50})
		names := make([]string, benchmarkNodes)
		for i := range names {
			names[i] = fmt.Sprintf("node-%04d", i)
			pl.nodeIs(node(names[i], map[string]int64{"app": 100}))
			if share > 0 && i%share == 0 {
				pl.podIs(running(fmt.Sprintf("pod-%d", i), names[i], "app"))
			}
			if share == 1 {
				pl.podIs(running(fmt.Sprintf("agent-%d", i), names[i], "sidecar"))
			}
		}
		b.Run(fmt.Sprintf("%d nodes run the image", pl.index.nodes.existing*map[int]int{0: 0, 10: 1, 1: 10}[share]/10), func(b *testing.B) {
			b.ReportAllocs()
			run(b, pl, incoming("app", "sidecar", "new"), names)
		})
	}
}

// BenchmarkPreScore is one call for each pod; its cost is divided by all nodes.
func BenchmarkPreScore(b *testing.B) {
	forEachBenchmark(b, func(b *testing.B, pl *RunningImageLocality, pod *v1.Pod, names []string) {
		state := framework.NewCycleState()
		pl.PreScore(context.Background(), state, pod, nil)
		b.ResetTimer()
		start := time.Now()
		for i := 0; i < b.N; i++ {
			pl.PreScore(context.Background(), state, pod, nil)
			pl.NormalizeScore(context.Background(), state, pod, nil)
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N*benchmarkNodes), "ns/node")
	})
}

// BenchmarkScore is Score and NormalizeScore for the nodes that are scored.
func BenchmarkScore(b *testing.B) {
	forEachBenchmark(b, func(b *testing.B, pl *RunningImageLocality, pod *v1.Pod, names []string) {
		state, list := framework.NewCycleState(), make(framework.NodeScoreList, benchmarkScored)
		pl.PreScore(context.Background(), state, pod, nil)
		b.ResetTimer()
		start := time.Now()
		for i := 0; i < b.N; i++ {
			for n := range list {
				score, _ := pl.Score(context.Background(), state, pod, names[n])
				list[n] = framework.NodeScore{Name: names[n], Score: score}
			}
			if found := pl.matches(state, pod); found != nil {
				normaliseScores(list, found.best(list))
			}
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N*benchmarkScored), "ns/node")
	})
}

// BenchmarkEvent is what an informer's goroutine does for a pod that begins to run and one that ends, of an image that
// all nodes run.
func BenchmarkEvent(b *testing.B) {
	pl := mustNew(b, "benchmark", &config.RunningImageLocalityArgs{})
	for i := 0; i < benchmarkNodes; i++ {
		pl.podIs(running(fmt.Sprintf("pod-%d", i), fmt.Sprintf("node-%04d", i), "app"))
	}
	pod := running("another", "node-0042", "app")
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		pl.podIs(pod)
		pl.podIsGone(pod)
	}
}
