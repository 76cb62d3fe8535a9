// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/decision"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/extensionpointlogger"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// everywhere has the plugin at each extension point, before all others: multiPoint enables it, and naming it at a point
// puts it first there. %s takes further args.
const everywhere = `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        enabled: [{name: ExtensionPointLogger}]
      queueSort:
        disabled: [{name: PrioritySort}]
      preFilter:
        enabled: [{name: ExtensionPointLogger}]
      filter:
        enabled: [{name: ExtensionPointLogger}]
      postFilter:
        enabled: [{name: ExtensionPointLogger}]
      bind:
        enabled: [{name: ExtensionPointLogger}]
    pluginConfig:
      - name: ExtensionPointLogger
        args:
          queueSort: true
%s`

var registry = frameworkruntime.Registry{extensionpointlogger.Name: extensionpointlogger.New}

func configuration(args ...string) string {
	var indented strings.Builder
	for _, arg := range args {
		fmt.Fprintf(&indented, "          %s\n", arg)
	}
	return fmt.Sprintf(everywhere, indented.String())
}

// outcome is all that can be seen of what a scheduler did.
type outcome struct {
	Decisions []decision.Decision
	Bound     map[string]string
	Failures  []decision.Event
}

// crowd fills a third of the nodes with pods, schedules others, of which some fit nowhere and some preempt, and tries the
// latter again.
func crowd(t *testing.T, config string) outcome {
	s := decision.New(t, decision.Options{Config: config, Plugins: registry, Nodes: decision.MixedNodes(150), Seed: 42})
	for i := 0; i < 150; i += 3 {
		s.Create(st.MakePod().Name(fmt.Sprintf("low-%d", i)).Node(fmt.Sprintf("node-%d", i)).Priority(int32(-1-i)).
			Label("app", "app-1").Req(map[v1.ResourceName]string{v1.ResourceCPU: "1500m"}).Obj())
	}
	pods := decision.MixedPods(120)
	var preemptors []string
	for i := 0; i < 3; i++ {
		name := fmt.Sprintf("preemptor-%d", i)
		preemptors = append(preemptors, "default/"+name)
		pods = append(pods, st.MakePod().Name(name).Priority(100).Req(map[v1.ResourceName]string{v1.ResourceCPU: "2"}).
			NodeAffinityIn(v1.LabelHostname, []string{fmt.Sprintf("node-%d", 30*i), fmt.Sprintf("node-%d", 30*i+3)}).Obj())
	}
	result := outcome{Decisions: s.Schedule(pods...)}
	result.Decisions = append(result.Decisions, s.Retry(preemptors...)...)
	s.Settle()
	result.Bound = s.Bound()
	for _, event := range s.Events() {
		if event.Type == v1.EventTypeWarning || event.Reason == "Preempted" {
			result.Failures = append(result.Failures, event)
		}
	}
	return result
}

func TestPlacementsAreTheSameWithAndWithout(t *testing.T) {
	without := crowd(t, "")
	log := captureLog(t)
	with := crowd(t, configuration())
	if !reflect.DeepEqual(with.Decisions, without.Decisions) {
		for i := range without.Decisions {
			if with.Decisions[i] != without.Decisions[i] {
				t.Fatalf("decision %d with the plugin: %+v, without: %+v", i, with.Decisions[i], without.Decisions[i])
			}
		}
	}
	if !reflect.DeepEqual(with, without) {
		t.Errorf("bound and failed with the plugin: %+v\nwithout: %+v", with, without)
	}

	// The comparison is worth something only if all of this took place.
	var failed, preempted int
	nodes := make(map[string]bool)
	for _, one := range without.Decisions {
		if one.Failure != "" {
			failed++
		}
		nodes[one.Node] = true
	}
	for _, event := range without.Failures {
		if event.Reason == "Preempted" {
			preempted++
		}
	}
	if failed < 10 || preempted < 3 || len(nodes) < 40 {
		t.Errorf("%d failures, %d preempted, %d nodes used: the scenario is too poor", failed, preempted, len(nodes))
	}
	if seen := counts(log.calls(t)); seen["Filter"] < 10000 || seen["QueueSort"] == 0 || seen["RemovePod"] == 0 {
		t.Errorf("the plugin was not at work: %v", seen)
	}
}

// smallCluster is a scenario whose calls can be counted by hand: a node that is full of a pod of low priority, and two
// free ones. It schedules, in this order (by priority), a pod that has to preempt; one that fits on both free nodes; one
// that fits on one node only; one whose binding fails; one that fits nowhere. Then the first once more.
func smallCluster(t *testing.T, config string) {
	cpu := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount}
	}
	node := func(name string) *v1.Node {
		return st.MakeNode().Name("secret-"+name).Label("name", name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "2", v1.ResourcePods: "9"}).Obj()
	}
	pod := func(name string, priority int32) *st.PodWrapper {
		return st.MakePod().Namespace("secret-namespace").Name("secret-" + name).UID("uid-of-" + name).Priority(priority)
	}
	s := decision.New(t, decision.Options{Config: config, Plugins: registry, Nodes: []*v1.Node{node("full"), node("left"), node("right")}})
	s.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding, ok := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		return ok && binding.Name == "secret-unbindable", nil, errors.New("the test does not want it bound")
	})
	s.Create(pod("victim", 0).Req(cpu("2")).Node("secret-full").Obj())
	s.Schedule(
		pod("preemptor", 5).Req(cpu("2")).NodeSelector(map[string]string{"name": "full"}).Obj(),
		pod("choosing", 4).Req(cpu("100m")).NodeAffinityNotIn("name", []string{"full"}).Obj(),
		pod("pinned", 3).Req(cpu("100m")).NodeSelector(map[string]string{"name": "left"}).Obj(),
		pod("unbindable", 2).Req(cpu("100m")).NodeSelector(map[string]string{"name": "right"}).Obj(),
		pod("huge", 0).Req(cpu("64")).Obj(),
	)
	s.Settle()
	s.Retry("secret-namespace/secret-preemptor")
	s.Settle()
	if bound := s.Bound(); len(bound) != 3 || bound["secret-namespace/secret-preemptor"] != "secret-full" {
		t.Fatalf("the scenario went differently: %v", bound)
	}
}

// lastCalls waits for what comes after the end of the scenario: three pods' PostBind.
func lastCalls(t *testing.T, log *capture, postBinds int) []call {
	t.Helper()
	err := wait.PollImmediate(time.Millisecond, time.Minute, func() (bool, error) {
		return counts(log.calls(t))["PostBind"] >= postBinds, nil
	})
	if err != nil {
		t.Fatalf("waited in vain for %d PostBind", postBinds)
	}
	return log.calls(t)
}

func TestEveryExtensionPointIsLoggedOncePerCall(t *testing.T) {
	log := captureLog(t)
	smallCluster(t, configuration())
	calls := lastCalls(t, log, 3)

	bound := map[string]int{"PreFilter": 1, "Filter": 3, "Reserve": 1, "Permit": 1, "PreBind": 1, "Bind": 1, "PostBind": 1}
	tests := []struct {
		pod  string
		why  string
		want map[string]int
	}{
		{
			pod:  "choosing",
			why:  "three nodes filtered, two of them scored; the one to which the preemptor is nominated is filtered with it added",
			want: plus(bound, map[string]int{"AddPod": 1, "PreScore": 1, "Score": 2, "NormalizeScore": 1}),
		},
		{
			pod:  "pinned",
			why:  "a single node that fits is not scored",
			want: plus(bound, map[string]int{"AddPod": 1}),
		},
		{
			pod:  "unbindable",
			why:  "Unreserve instead of PostBind",
			want: plus(bound, map[string]int{"AddPod": 1, "PostBind": -1, "Unreserve": 1}),
		},
		{
			pod: "huge",
			why: "PostFilter, and nobody to preempt. The preemptor is nominated to a node, which is filtered with it added: by " +
				"the first pass, which fails, so that there is no second one",
			want: map[string]int{"PreFilter": 1, "Filter": 3, "AddPod": 1, "PostFilter": 1},
		},
		{
			pod: "preemptor",
			why: "first cycle: 3 nodes filtered; then on the one node that preemption might help the victim is removed (Filter " +
				"passes), put back (Filter fails) and removed. Second cycle: bound; only one node fits",
			want: plus(bound, map[string]int{"PreFilter": 1, "Filter": 3 + 2, "PostFilter": 1, "RemovePod": 2, "AddPod": 1}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.pod, func(t *testing.T) {
			got := where(calls, "pod", "secret-namespace/secret-"+tt.pod)
			n := counts(got)
			delete(n, "QueueSort")
			if !reflect.DeepEqual(n, tt.want) {
				t.Errorf("%s: logged %v, want %v", tt.why, n, tt.want)
			}
			for _, one := range got {
				checkFields(t, one)
			}
		})
	}
	// How often a heap of five compares is its own business.
	if counts(calls)["QueueSort"] < 4 {
		t.Errorf("%d comparisons of the five pods", counts(calls)["QueueSort"])
	}
}

func plus(a, b map[string]int) map[string]int {
	sum := make(map[string]int)
	for key := range a {
		sum[key] = a[key]
	}
	for key := range b {
		if sum[key] += b[key]; sum[key] == 0 {
			delete(sum, key)
		}
	}
	return sum
}

// checkFields checks that a line has what its extension point has to say, and nothing else.
func checkFields(t *testing.T, one call) {
	t.Helper()
	keys := map[string][]string{
		"QueueSort":      {"otherPod"},
		"PreFilter":      {"cycle", "duration"},
		"AddPod":         {"cycle", "duration", "node", "otherPod"},
		"RemovePod":      {"cycle", "duration", "node", "otherPod"},
		"Filter":         {"cycle", "duration", "node"},
		"PostFilter":     {"cycle", "duration", "nodes", "status"},
		"PreScore":       {"cycle", "duration", "nodes"},
		"Score":          {"cycle", "duration", "node"},
		"NormalizeScore": {"cycle", "duration", "nodes"},
		"Reserve":        {"cycle", "duration", "node"},
		"Unreserve":      {"cycle", "duration", "node"},
		"Permit":         {"cycle", "duration", "node"},
		"PreBind":        {"cycle", "duration", "node"},
		"Bind":           {"cycle", "duration", "node", "status"},
		"PostBind":       {"cycle", "duration", "node"},
	}[one["extensionPoint"]]
	if len(one) != len(keys)+3 || one["profile"] != "default-scheduler" {
		t.Errorf("want extensionPoint, profile, pod and %v, got %v", keys, one)
	}
	for _, key := range keys {
		if one[key] == "" {
			t.Errorf("no %s in %v", key, one)
		}
	}
	if want := map[string]string{"PostFilter": "Unschedulable", "Bind": "Skip"}[one["extensionPoint"]]; one["status"] != want {
		t.Errorf("status %q in %v, want %q", one["status"], one, want)
	}
}

func TestLinesOfOneCycleShareItsNumber(t *testing.T) {
	log := captureLog(t)
	smallCluster(t, configuration())
	podOf, cyclesOf := make(map[string]string), make(map[string]map[string]bool)
	for _, one := range lastCalls(t, log, 3) {
		pod, number := one["pod"], one["cycle"]
		if one["extensionPoint"] == "QueueSort" {
			continue
		}
		if podOf[number] != "" && podOf[number] != pod {
			t.Errorf("cycle %s is of both %s and %s", number, podOf[number], pod)
		}
		podOf[number] = pod
		if cyclesOf[pod] == nil {
			cyclesOf[pod] = make(map[string]bool)
		}
		cyclesOf[pod][number] = true
	}
	// Highest priority first; the preemptor, first of all, once more at the end.
	want := map[string]string{"1": "preemptor", "2": "choosing", "3": "pinned", "4": "unbindable", "5": "huge", "6": "preemptor"}
	for number, pod := range want {
		if podOf[number] != "secret-namespace/secret-"+pod {
			t.Errorf("cycle %s is of %s, want %s", number, podOf[number], pod)
		}
	}
	if len(podOf) != len(want) {
		t.Errorf("cycles of %v, want %v", podOf, want)
	}
}

func TestRedactLeavesNoName(t *testing.T) {
	log := captureLog(t)
	smallCluster(t, configuration())
	plain := lastCalls(t, log, 3)
	smallCluster(t, configuration("redact: true"))
	all := lastCalls(t, log, 6)
	redacted := all[len(plain):]
	if !reflect.DeepEqual(without(counts(redacted), "QueueSort"), without(counts(plain), "QueueSort")) {
		t.Fatalf("redacted %v, plain %v", counts(redacted), counts(plain))
	}
	hash, podHash := regexp.MustCompile(`^[0-9a-f]{12}$`), regexp.MustCompile(`^[0-9a-f]{12}/[0-9a-f]{12}$`)
	values := map[string]map[string]bool{"pod": {}, "node": {}}
	for _, one := range redacted {
		for key, value := range one {
			if strings.Contains(value, "secret") {
				t.Fatalf("%s in %v", key, one)
			}
			switch key {
			case "pod", "otherPod":
				if !podHash.MatchString(value) {
					t.Errorf("%s=%q", key, value)
				}
			case "node":
				if !hash.MatchString(value) {
					t.Errorf("%s=%q", key, value)
				}
			}
			if values[key] != nil {
				values[key][value] = true
			}
		}
	}
	if len(values["pod"]) != 5 || len(values["node"]) != 3 {
		t.Errorf("5 pods and 3 nodes have the hashes %v", values)
	}
}

func without(n map[string]int, key string) map[string]int {
	delete(n, key)
	return n
}

func TestHashesAreThoseOfTheProcess(t *testing.T) {
	log := captureLog(t)
	state, pod := framework.NewCycleState(), st.MakePod().Namespace("a").Name("b").Obj()
	for i := 0; i < 2; i++ {
		pl := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: 1, Redact: true})
		pl.PreBind(context.Background(), state, pod, "node")
	}
	calls := log.calls(t)
	if len(calls) != 2 || calls[0]["node"] != calls[1]["node"] || calls[0]["pod"] != calls[1]["pod"] {
		t.Errorf("two profiles write of the same node and pod %v", calls)
	}
}

// logger is what the plugin is at most extension points.
type logger interface {
	framework.PreFilterPlugin
	framework.FilterPlugin
	framework.ScorePlugin
	framework.PreBindPlugin
}

func newLogger(tb testing.TB, args *config.ExtensionPointLoggerArgs) logger {
	tb.Helper()
	plugin, err := extensionpointlogger.New(args, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plugin.(logger)
}

func TestSamplingTakesAllOfAPodOrNothing(t *testing.T) {
	log := captureLog(t)
	smallCluster(t, configuration())
	all := lastCalls(t, log, 3)
	before := len(all)
	// At a rate of a half, the draws of these UIDs take some of the five and leave some.
	smallCluster(t, configuration("sampleRate: 0.5"))
	var taken, left int
	sampled := log.calls(t)[before:]
	for _, name := range []string{"preemptor", "choosing", "pinned", "unbindable", "huge"} {
		pod := "secret-namespace/secret-" + name
		want := without(counts(where(all, "pod", pod)), "QueueSort")
		expectPostBind := want["PostBind"] > 0 && len(where(sampled, "pod", pod)) > 0
		err := wait.PollImmediate(time.Millisecond, time.Minute, func() (bool, error) {
			sampled = log.calls(t)[before:]
			return !expectPostBind || counts(where(sampled, "pod", pod))["PostBind"] > 0, nil
		})
		if err != nil {
			t.Fatalf("%s: no PostBind", name)
		}
		got := without(counts(where(sampled, "pod", pod)), "QueueSort")
		switch {
		case len(where(sampled, "pod", pod)) == 0:
			left++
		case reflect.DeepEqual(got, want):
			taken++
		default:
			t.Errorf("%s: logged %v of %v", name, got, want)
		}
	}
	if taken == 0 || left == 0 {
		t.Errorf("%d pods taken, %d left: the scenario says nothing", taken, left)
	}
}

func TestSampleRateIsTheShareOfPods(t *testing.T) {
	const pods = 2000
	for _, tt := range []struct {
		rate   float64
		lowest int
		most   int
	}{
		{rate: 1, lowest: pods, most: pods},
		// 3 standard deviations of 2,000 draws at 1/4: √(2000 × 1/4 × 3/4) = 19.4.
		{rate: 0.25, lowest: 500 - 58, most: 500 + 58},
		{rate: 1e-9, lowest: 0, most: 0},
	} {
		log := captureLog(t)
		pl := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: tt.rate})
		for i := 0; i < pods; i++ {
			pod := st.MakePod().Name("pod").UID(fmt.Sprintf("8b1f3f5e-0000-0000-0000-%012d", i)).Obj()
			pl.PreBind(context.Background(), framework.NewCycleState(), pod, "node")
		}
		if got := len(log.calls(t)); got < tt.lowest || got > tt.most {
			t.Errorf("at a sample rate of %v, %d of %d pods are logged, want %d to %d", tt.rate, got, pods, tt.lowest, tt.most)
		}
	}
}

func TestOnlyPodsOfTheNamespaces(t *testing.T) {
	log := captureLog(t)
	pl := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: 1, Namespaces: []string{"a", "b"}})
	for _, namespace := range []string{"a", "b", "c", "ab"} {
		pl.PreBind(context.Background(), framework.NewCycleState(), st.MakePod().Namespace(namespace).Name("pod").Obj(), "node")
	}
	var got []string
	for _, one := range log.calls(t) {
		got = append(got, one["pod"])
	}
	if want := []string{"a/pod", "b/pod"}; !reflect.DeepEqual(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

func TestDurationIsTheTimeSinceTheCyclesFirstCall(t *testing.T) {
	log := captureLog(t)
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	plugin, err := extensionpointlogger.NewWithClock(&config.ExtensionPointLoggerArgs{SampleRate: 1}, now)
	if err != nil {
		t.Fatal(err)
	}
	pl, pod := plugin.(logger), st.MakePod().Name("pod").Obj()
	first, second := framework.NewCycleState(), framework.NewCycleState()
	pl.PreFilter(context.Background(), first, pod)
	now.SetTime(time.Unix(1000, int64(5*time.Millisecond)))
	pl.Score(context.Background(), first.Clone(), pod, "node")
	pl.PreFilter(context.Background(), second, pod)
	now.SetTime(time.Unix(1002, 0))
	pl.PreBind(context.Background(), second, pod, "node")
	pl.PreBind(context.Background(), first, pod, "node")
	var got []string
	for _, one := range log.calls(t) {
		got = append(got, one["extensionPoint"]+" "+one["cycle"]+" "+one["duration"])
	}
	want := []string{"PreFilter 1 0s", "Score 1 5ms", "PreFilter 2 0s", "PreBind 2 1.995s", "PreBind 1 2s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFilterWithoutPreFilterLeavesTheStateAlone(t *testing.T) {
	log := captureLog(t)
	pl, state := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: 1}), framework.NewCycleState()
	nodeInfo := framework.NewNodeInfo()
	nodeInfo.SetNode(st.MakeNode().Name("node").Obj())
	pl.Filter(context.Background(), state, st.MakePod().Name("pod").Obj(), nodeInfo)
	calls := log.calls(t)
	if len(calls) != 1 || calls[0]["node"] != "node" || calls[0]["cycle"] != "" {
		t.Errorf("logged %v, want the node and no cycle", calls)
	}
	if _, err := state.Read(extensionpointlogger.Name); err == nil {
		t.Error("Filter wrote to the state, of which another worker may be making a copy")
	}
}

// atOnce runs what the workers do, and has them begin together.
func atOnce(work func(worker int)) {
	var group sync.WaitGroup
	begin := make(chan struct{})
	for worker := 0; worker < 16; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			<-begin
			work(worker)
		}(worker)
	}
	close(begin)
	group.Wait()
}

func TestManyWorkersAtOnce(t *testing.T) {
	const nodes = 50
	log := captureLog(t)
	pl, state, pod := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: 1}), framework.NewCycleState(), st.MakePod().Name("pod").Obj()
	pl.PreFilter(context.Background(), state, pod)
	atOnce(func(int) {
		for i := 0; i < nodes; i++ {
			name := fmt.Sprintf("node-%d", i)
			nodeInfo := framework.NewNodeInfo()
			nodeInfo.SetNode(st.MakeNode().Name(name).Obj())
			if status := pl.Filter(context.Background(), state, pod, nodeInfo); !status.IsSuccess() {
				t.Errorf("Filter(%s) = %v", name, status)
			}
			if score, status := pl.Score(context.Background(), state, pod, name); score != 0 || !status.IsSuccess() {
				t.Errorf("Score(%s) = %d, %v", name, score, status)
			}
		}
	})
	calls := log.calls(t)
	if got := counts(calls); got["Score"] != 16*nodes || got["Filter"] != 16*nodes {
		t.Errorf("logged %v, want %d of each", got, 16*nodes)
	}
	if got := len(where(calls, "cycle", "1")); got != len(calls) {
		t.Errorf("%d of %d lines are of cycle 1", got, len(calls))
	}
}

// yieldingClock lets the other workers come as far as they can while one of them asks it for the time.
type yieldingClock struct{ clock.RealClock }

// Now returns the time.
func (yieldingClock) Now() time.Time {
	for i := 0; i < 100; i++ {
		goruntime.Gosched()
	}
	return time.Now()
}

func TestManyWorkersBeginOneCycle(t *testing.T) {
	const cycles = 100
	log := captureLog(t)
	plugin, err := extensionpointlogger.NewWithClock(&config.ExtensionPointLoggerArgs{SampleRate: 1}, yieldingClock{})
	if err != nil {
		t.Fatal(err)
	}
	pl, pod := plugin.(logger), st.MakePod().Name("pod").Obj()
	for i := 0; i < cycles; i++ {
		state := framework.NewCycleState()
		atOnce(func(int) { pl.Score(context.Background(), state, pod, "node") })
	}
	calls := log.calls(t)
	for i := 1; i <= cycles; i++ {
		if got := len(where(calls, "cycle", fmt.Sprint(i))); got != 16 {
			t.Fatalf("%d lines of cycle %d, want one of each of the 16 workers", got, i)
		}
	}
}

func TestQueueSortOnlyOnRequest(t *testing.T) {
	first := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(st.MakePod().Name("first").Priority(1).Obj()), Timestamp: time.Unix(2, 0)}
	second := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(st.MakePod().Name("second").Obj()), Timestamp: time.Unix(1, 0)}
	third := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(st.MakePod().Name("third").Obj()), Timestamp: time.Unix(3, 0)}
	if _, sorts := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: 1}).(framework.QueueSortPlugin); sorts {
		t.Error("the plugin sorts without having been asked to")
	}
	captureLog(t)
	sorter, sorts := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: 1, QueueSort: true}).(framework.QueueSortPlugin)
	if !sorts {
		t.Fatal("the plugin does not sort")
	}
	if !sorter.Less(first, second) || sorter.Less(second, first) {
		t.Error("the pod with the higher priority is not first")
	}
	if !sorter.Less(second, third) || sorter.Less(third, second) {
		t.Error("of two pods with the same priority, the one that has waited longer is not first")
	}
}

func TestNewRefusesBadArgs(t *testing.T) {
	for _, tt := range []struct {
		name string
		args runtime.Object
		want string
	}{
		{name: "no args", args: nil, want: "ExtensionPointLoggerArgs"},
		{name: "another plugin's args", args: &schedulerconfig.NodeAffinityArgs{}, want: "NodeAffinityArgs"},
		{name: "a sample rate of 0", args: &config.ExtensionPointLoggerArgs{}, want: "pluginConfig[ExtensionPointLogger].args.sampleRate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := extensionpointlogger.New(tt.args, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New says %v, which does not contain %q", err, tt.want)
			}
		})
	}
}

const benchmarkNodes = 5000

func BenchmarkFilter(b *testing.B) {
	for _, tt := range []struct {
		name string
		args config.ExtensionPointLoggerArgs
	}{
		{name: "logged", args: config.ExtensionPointLoggerArgs{SampleRate: 1}},
		{name: "redacted", args: config.ExtensionPointLoggerArgs{SampleRate: 1, Redact: true}},
		{name: "another namespace", args: config.ExtensionPointLoggerArgs{SampleRate: 1, Namespaces: []string{"other"}}},
	} {
		args := tt.args
		b.Run(tt.name, func(b *testing.B) {
			klog.LogToStderr(false)
			klog.SetOutput(io.Discard)
			defer klog.LogToStderr(true)
			pl, state, pod := newLogger(b, &args), framework.NewCycleState(), st.MakePod().Namespace("default").Name("pod").Obj()
			nodeInfo := framework.NewNodeInfo()
			nodeInfo.SetNode(st.MakeNode().Name("node").Obj())
			pl.PreFilter(context.Background(), state, pod)
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for i := 0; i < b.N; i++ {
				for node := 0; node < benchmarkNodes; node++ {
					pl.Filter(context.Background(), state, pod, nodeInfo)
				}
			}
			b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64(b.N)/benchmarkNodes, "ns/node")
		})
	}
}
