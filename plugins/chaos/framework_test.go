// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/pointer"
)

// waitLimit is how long a test waits for a condition before it fails; a test that passes never waits so long.
const waitLimit = 30 * time.Second

func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, waitLimit, func() (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("waited %v in vain: %s", waitLimit, what)
	}
}

// goroutines are the stacks of those that the plugin runs.
func goroutines() string {
	buffer := make([]byte, 1<<22)
	var running []string
	for _, stack := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, "created by k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos.(*") {
			running = append(running, stack)
		}
	}
	return strings.Join(running, "\n\n")
}

func waitForNoGoroutines(t testing.TB) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, waitLimit, func() (bool, error) { return goroutines() == "", nil }); err != nil {
		t.Fatalf("goroutines are left running:\n%s", goroutines())
	}
}

// recorder keeps the events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(regarding, _ apiruntime.Object, eventType, reason, action, note string, args ...interface{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s: %s %s %s: %s", regarding.(*v1.Pod).Name, eventType, reason, action, fmt.Sprintf(note, args...)))
}

// with returns the events that contain the text, in order of their own text.
func (r *recorder) with(text string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, event := range r.events {
		if strings.Contains(event, text) {
			found = append(found, event)
		}
	}
	sort.Strings(found)
	return found
}

// world is a real framework with the plugin, around fakes: the client, the clock, the events.
type world struct {
	framework.Framework
	plugin *Chaos
	client *clientset.Clientset
	clock  *testingclock.FakeClock
	events *recorder
	nodes  []*v1.Node
}

// newWorld makes a profile with the plugin at all of its points, before DefaultBinder. The pods are known to the
// informer.
func newWorld(t testing.TB, args config.ChaosArgs, nodes []*v1.Node, pods ...*v1.Pod) *world {
	t.Helper()
	return newWorldWith(t, args, nodes, pods, []string{Name, defaultbinder.Name}, nil)
}

func newWorldWith(t testing.TB, args config.ChaosArgs, nodes []*v1.Node, pods []*v1.Pod, plugins []string, more frameworkruntime.Registry) *world {
	t.Helper()
	if args.MaxConsecutiveRejections == nil {
		args.MaxConsecutiveRejections = pointer.Int32(100)
	}
	scheme.Scheme.Default(&args)
	var objects []apiruntime.Object
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	w := &world{
		client: clientset.NewSimpleClientset(objects...),
		clock:  testingclock.NewFakeClock(time.Unix(1600000000, 0)),
		events: &recorder{},
		nodes:  nodes,
	}
	registry := frameworkruntime.Registry{
		Name: func(args apiruntime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := newWithClock(args, handle, w.clock)
			if err == nil {
				w.plugin = plugin.(*Chaos)
			}
			return plugin, err
		},
		queuesort.Name:     queuesort.New,
		defaultbinder.Name: defaultbinder.New,
	}
	if err := registry.Merge(more); err != nil {
		t.Fatal(err)
	}
	profile := &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: "chaos",
		Plugins:       &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: queuesort.Name}}}},
		PluginConfig:  []schedulerconfig.PluginConfig{{Name: Name, Args: &args}},
	}
	for _, name := range plugins {
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, schedulerconfig.Plugin{Name: name})
	}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	var err error
	w.Framework, err = frameworkruntime.NewFramework(registry, profile,
		frameworkruntime.WithClientSet(w.client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithEventRecorder(w.events),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(nil, nodes)),
		frameworkruntime.WithPodNominator(queue.NewPodNominator(factory.Core().V1().Pods().Lister())),
	)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return w
}

// result is what happened in a scheduling cycle.
type result struct {
	state *framework.CycleState
	// rejected holds the message for each node that did not fit.
	rejected map[string]string
	scores   map[string]int64
	best     string
	permit   *framework.Status
}

// cycle does what the scheduler does with a pod up to Permit, with 16 workers. The best node is the first one with the
// highest score.
func (w *world) cycle(t testing.TB, pod *v1.Pod) *result {
	t.Helper()
	ctx := context.Background()
	r := &result{state: framework.NewCycleState(), rejected: map[string]string{}, scores: map[string]int64{}}
	if status := w.RunPreFilterPlugins(ctx, r.state, pod); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	statuses := make([]*framework.Status, len(w.nodes))
	w.Parallelizer().Until(ctx, len(w.nodes), func(i int) {
		nodeInfo := framework.NewNodeInfo()
		nodeInfo.SetNode(w.nodes[i])
		statuses[i] = w.RunFilterPluginsWithNominatedPods(ctx, r.state, pod, nodeInfo)
	})
	var feasible []*v1.Node
	for i, status := range statuses {
		switch status.Code() {
		case framework.Success:
			feasible = append(feasible, w.nodes[i])
		case framework.UnschedulableAndUnresolvable:
			r.rejected[w.nodes[i].Name] = status.Message()
		default:
			t.Fatalf("Filter(%s) = %v", w.nodes[i].Name, status)
		}
	}
	if len(feasible) == 0 {
		return r
	}
	r.best = feasible[0].Name
	if len(feasible) > 1 {
		if status := w.RunPreScorePlugins(ctx, r.state, pod, feasible); !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		scores, status := w.RunScorePlugins(ctx, r.state, pod, feasible)
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		highest := int64(math.MinInt64)
		for _, score := range scores[Name] {
			r.scores[score.Name] = score.Score
			if score.Score > highest {
				r.best, highest = score.Name, score.Score
			}
		}
	}
	if status := w.RunReservePluginsReserve(ctx, r.state, pod, r.best); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	r.permit = w.RunPermitPlugins(ctx, r.state, pod, r.best)
	return r
}

// count is the value of a counter, which all tests of the process share.
func count(t testing.TB, counter metrics.CounterMetric) int {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(counter)
	if err != nil {
		t.Fatal(err)
	}
	return int(value)
}

func makePod(number int) *v1.Pod {
	return st.MakePod().Namespace("test").Name(fmt.Sprintf("pod-%d", number)).UID(fmt.Sprintf("uid-%d", number)).Obj()
}
