// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/draw"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

const patience = 30 * time.Second

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, patience, func() (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
}

// chaosConfiguration has the profile chaos, with the given args, and the profile other without Chaos. Both have the
// plugin gate.
func chaosConfiguration(args string) string {
	return `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: chaos
  plugins:
    multiPoint:
      enabled:
      - name: Chaos
      - name: Gate
    bind:
      enabled:
      - name: Chaos
      - name: DefaultBinder
  pluginConfig:
  - name: Chaos
    args: ` + args + `
- schedulerName: other
  plugins:
    multiPoint:
      enabled:
      - name: Gate
`
}

// gate is a plugin that stops pods where a test says.
type gate struct {
	// hold are the names of the pods that wait at Permit, until they are let go.
	hold func(pod string) bool
	// preFilter is called at PreFilter: after the snapshot was taken, before the filters.
	preFilter func(pod string)

	handles []framework.Handle
}

func (g *gate) Name() string { return "Gate" }

func (g *gate) PreFilter(_ context.Context, _ *framework.CycleState, pod *v1.Pod) *framework.Status {
	if g.preFilter != nil {
		g.preFilter(pod.Name)
	}
	return nil
}

func (g *gate) PreFilterExtensions() framework.PreFilterExtensions { return nil }

func (g *gate) Permit(_ context.Context, _ *framework.CycleState, pod *v1.Pod, _ string) (*framework.Status, time.Duration) {
	if g.hold != nil && g.hold(pod.Name) {
		return framework.NewStatus(framework.Wait, ""), time.Minute
	}
	return nil, 0
}

// letGo lets all pods go on that wait for the gate.
func (g *gate) letGo() {
	for _, handle := range g.handles {
		handle.IterateOverWaitingPods(func(pod framework.WaitingPod) { pod.Allow(g.Name()) })
	}
}

func newChaos(t *testing.T, args string, g *gate, nodes []*v1.Node) *decision.Scheduler {
	t.Helper()
	return newChaosWith(t, args, g, nodes, 16)
}

func newChaosWith(t *testing.T, args string, g *gate, nodes []*v1.Node, parallelism int32) *decision.Scheduler {
	t.Helper()
	return newChaosOf(t, chaosConfiguration(args), g, nodes, parallelism)
}

func newChaosOf(t *testing.T, config string, g *gate, nodes []*v1.Node, parallelism int32) *decision.Scheduler {
	t.Helper()
	return decision.New(t, decision.Options{
		Config:      config,
		Nodes:       nodes,
		Seed:        1,
		Parallelism: parallelism,
		Plugins: frameworkruntime.Registry{
			chaos.Name: chaos.New,
			"Gate": func(_ apiruntime.Object, handle framework.Handle) (framework.Plugin, error) {
				g.handles = append(g.handles, handle)
				return g, nil
			},
		},
	})
}

// podOf makes a pod that asks for one CPU, for the profile that is its namespace too.
func podOf(profile string, number int) *v1.Pod {
	name := fmt.Sprintf("%s-%d", profile, number)
	return st.MakePod().Namespace(profile).Name(name).UID("uid-" + name).SchedulerName(profile).
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
}

func podsOf(profile string, count int) []*v1.Pod {
	var pods []*v1.Pod
	for i := 1; i <= count; i++ {
		pods = append(pods, podOf(profile, i))
	}
	return pods
}

// drawnNode is the node that a pod goes to at its first attempt, if all nodes are feasible and it is redirected: each
// node draws a number, and the lowest wins.
func drawnNode(seed int64, uid types.UID, nodes []*v1.Node) string {
	target := draw.Mix(draw.Key(seed, string(uid), "1"), "target")
	return slices.MinFunc(nodes, func(a, b *v1.Node) int {
		return cmp.Compare(draw.Mix(target, a.Name), draw.Mix(target, b.Name))
	}).Name
}

// waitForNoGoroutines fails the test if Chaos' goroutines do not end.
func waitForNoGoroutines(t *testing.T) {
	t.Helper()
	waitFor(t, "no goroutine of Chaos is left", func() bool {
		buffer := make([]byte, 1<<22)
		stacks := string(buffer[:runtime.Stack(buffer, true)])
		return !strings.Contains(stacks, "created by k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos.(*")
	})
}

// overfilled lists the nodes with more pods than they have CPUs.
func overfilled(bound map[string]string, cpus int) []string {
	pods := map[string]int{}
	for _, node := range bound {
		pods[node]++
	}
	var full []string
	for node, count := range pods {
		if count > cpus {
			full = append(full, fmt.Sprintf("%s has %d pods", node, count))
		}
	}
	return full
}

// eventsOf returns the events about a pod, and drops what is not of Chaos.
func eventsOf(s *decision.Scheduler, pod *v1.Pod) []string {
	var notes []string
	for _, event := range s.Events() {
		if event.Object == pod.Namespace+"/"+pod.Name && event.Reason == "Chaos" {
			notes = append(notes, event.Type+" "+event.Note)
		}
	}
	return notes
}

// TestPodsGoToTheDrawnNodes: every node has room, so each pod goes to the node that its name, and nothing else, draws.
func TestPodsGoToTheDrawnNodes(t *testing.T) {
	nodes := nodesOf(10, "100")
	s := newChaos(t, `{namespaces: [chaos], seed: 7, randomBindPercent: 100, maxPermitDelay: 20ms}`, &gate{}, nodes)
	pods := append(podsOf("chaos", 30), podsOf("other", 10)...)
	decisions := s.Schedule(pods...)
	s.Settle()
	bound, redirected := s.Bound(), 0
	for _, made := range decisions {
		name := made.Pod[strings.Index(made.Pod, "/")+1:]
		want := made.Node
		if strings.HasPrefix(made.Pod, "chaos/") {
			want = drawnNode(7, types.UID("uid-"+name), nodes)
		}
		if got := bound[made.Pod]; got != want {
			t.Errorf("%s is bound to %s, want %s", made.Pod, got, want)
		}
		if want == made.Node {
			continue
		}
		redirected++
		note := fmt.Sprintf("Normal Bound to %s, drawn from the nodes that fit; the best was %s (randomBindPercent 100)", want, made.Node)
		if notes := eventsOf(s, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: name}}); len(notes) != 1 || notes[0] != note {
			t.Errorf("events %q, want %q", notes, note)
		}
	}
	// On average nine of ten pods go elsewhere.
	if redirected < 20 {
		t.Errorf("only %d of 30 pods were redirected", redirected)
	}
	end(t, s, nodes)
}

// end checks that nothing is left of Chaos when the scheduler knows of all bindings: the next cycle of its profile,
// with a pod that it does not touch, gives up the last places.
func end(t *testing.T, s *decision.Scheduler, nodes []*v1.Node) {
	t.Helper()
	bystanders := 0
	waitFor(t, "all places are given up", func() bool {
		bystanders++
		s.Schedule(st.MakePod().Namespace("bystanders").Name(fmt.Sprintf("bystander-%d", bystanders)).SchedulerName("chaos").Obj())
		for _, node := range nodes {
			if len(s.Profiles["other"].NominatedPodsForNode(node.Name)) != 0 {
				return false
			}
		}
		return true
	})
	waitForNoGoroutines(t)
}

// TestNodesAreNeverOverfilled: 16 redirected pods wait at Permit, so the scheduler counts each of them only where it
// assumed it; then 8 pods of another profile come. 20 nodes with 2 CPUs have room for all of the 16 twice, and the 8.
func TestNodesAreNeverOverfilled(t *testing.T) {
	nodes := nodesOf(20, "2")
	for seed := 1; seed <= 5; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			g := &gate{hold: func(pod string) bool { return strings.HasPrefix(pod, "chaos-") }}
			s := newChaos(t, fmt.Sprintf(`{namespaces: [chaos], seed: %d, randomBindPercent: 100}`, seed), g, nodes)
			for _, pods := range [][]*v1.Pod{podsOf("chaos", 16), podsOf("other", 8)} {
				for _, made := range s.Schedule(pods...) {
					if made.Node == "" {
						t.Errorf("%s found no node: %s", made.Pod, made.Failure)
					}
				}
			}
			g.letGo()
			s.Settle()
			bound := s.Bound()
			if len(bound) != 24 {
				t.Errorf("%d pods are bound, want 24", len(bound))
			}
			if full := overfilled(bound, 2); len(full) != 0 {
				t.Errorf("overfilled: %v", full)
			}
			end(t, s, nodes)
		})
	}
}

// TestACycleWithAnOldSnapshot: while a pod of another profile is between snapshot and filters, the redirected pod is
// bound, and the scheduler learns of it. Neither the snapshot nor the scheduler's own nominations hold it any more.
func TestACycleWithAnOldSnapshot(t *testing.T) {
	nodes := nodesOf(2, "1")
	redirected := redirectedPod(t, nodes)
	var drawn string
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	g := &gate{
		hold: func(pod string) bool { return pod == redirected.Name },
		preFilter: func(pod string) {
			if pod == "other-1" {
				once.Do(func() { close(begun) })
				<-goOn
			}
		},
	}
	s := newChaosWith(t, `{namespaces: [chaos], seed: 7, randomBindPercent: 100}`, g, nodes, 1)
	best := s.Schedule(redirected)[0].Node
	if drawn = drawnNode(7, redirected.UID, nodes); drawn == best {
		t.Fatalf("%s goes to the best node", redirected.Name)
	}

	decisions := make(chan []decision.Decision, 1)
	go func() { decisions <- s.Schedule(podOf("other", 1)) }()
	<-begun
	g.letGo()
	waitFor(t, "the scheduler learns of the binding", func() bool {
		assumed, err := s.SchedulerCache.IsAssumedPod(redirected)
		return err == nil && !assumed && s.Bound()["chaos/"+redirected.Name] == drawn
	})
	// Its own nominations too: the queue hears of the binding after the cache or before.
	waitFor(t, "the queue learns of the binding", func() bool { return len(s.SchedulingQueue.PendingPods()) == 0 })
	close(goOn)

	// In the old snapshot the best node holds the redirected pod, so there is no room for the other one at all.
	if made := (<-decisions)[0]; made.Node != "" {
		t.Errorf("the other pod goes to %s; in its snapshot %s is assumed on %s, and it is bound to %s", made.Node, redirected.Name, best, drawn)
	}
	end(t, s, nodes)
}

// redirectedPod is a pod that goes to the other one of two nodes than a scheduler with one worker takes for the best:
// equal nodes are drawn by lot.
func redirectedPod(t *testing.T, nodes []*v1.Node) *v1.Pod {
	t.Helper()
	best := newChaosWith(t, `{namespaces: [another]}`, &gate{}, nodes, 1).Schedule(podOf("chaos", 1))[0].Node
	for number := 1; number < 100; number++ {
		if pod := podOf("chaos", number); drawnNode(7, pod.UID, nodes) != best {
			return pod
		}
	}
	t.Fatal("all pods go to the best node")
	return nil
}

// TestAPodIsDeletedWhileItWaits: its place, its delay and its node are free again.
func TestAPodIsDeletedWhileItWaits(t *testing.T) {
	nodes := nodesOf(2, "1")
	pod := redirectedPod(t, nodes)
	drawn := drawnNode(7, pod.UID, nodes)
	g := &gate{hold: func(name string) bool { return name == pod.Name }}
	s := newChaosWith(t, `{namespaces: [chaos], seed: 7, randomBindPercent: 100, maxPermitDelay: 10m}`, g, nodes, 1)
	s.Schedule(pod)
	other := s.Profiles["other"]
	if got := len(other.NominatedPodsForNode(drawn)); got != 1 {
		t.Fatalf("%d places are held on %s, want 1", got, drawn)
	}
	if err := s.Client.CoreV1().Pods("chaos").Delete(context.Background(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the place is given up", func() bool { return len(other.NominatedPodsForNode(drawn)) == 0 })
	waitForNoGoroutines(t)
	waitFor(t, "the scheduler forgets the pod", func() bool {
		count, err := s.SchedulerCache.PodCount()
		return err == nil && count == 0
	})
	for _, made := range s.Schedule(podsOf("other", 2)...) {
		if made.Node == "" {
			t.Errorf("%s finds no node: %s", made.Pod, made.Failure)
		}
	}
}

// v1beta2 is a configuration of that version, which knows no multiPoint, as the documentation gives it.
const v1beta2 = `
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: chaos
  plugins:
    preFilter: {enabled: [{name: Chaos}]}
    filter: {enabled: [{name: Chaos}]}
    preScore: {enabled: [{name: Chaos}]}
    score: {enabled: [{name: Chaos}]}
    reserve: {enabled: [{name: Chaos}]}
    permit: {enabled: [{name: Chaos}]}
    bind: {disabled: [{name: DefaultBinder}], enabled: [{name: Chaos}, {name: DefaultBinder}]}
    postBind: {enabled: [{name: Chaos}]}
  pluginConfig:
  - name: Chaos
    args: {namespaces: [chaos], seed: 7, randomBindPercent: 100}
- schedulerName: other
`

// TestPlaceAmongBinders: Chaos comes before DefaultBinder in both versions, if it is configured as the documentation
// says.
func TestPlaceAmongBinders(t *testing.T) {
	v1beta3 := chaosConfiguration(`{namespaces: [chaos], seed: 7, randomBindPercent: 100}`)
	nodes := nodesOf(10, "100")
	for name, config := range map[string]string{"v1beta3": v1beta3, "v1beta2": v1beta2} {
		config := config
		t.Run(name, func(t *testing.T) {
			s := newChaosOf(t, config, &gate{}, nodes, 1)
			s.Schedule(podsOf("chaos", 5)...)
			s.Settle()
			for _, pod := range podsOf("chaos", 5) {
				if got, want := s.Bound()["chaos/"+pod.Name], drawnNode(7, pod.UID, nodes); got != want {
					t.Errorf("%s is bound to %s, want %s", pod.Name, got, want)
				}
			}
			end(t, s, nodes)
		})
	}
}

func TestRejectionIsToldInTheEvent(t *testing.T) {
	s := newChaos(t, `{namespaces: [chaos], rejectPercent: 100, maxConsecutiveRejections: 2}`, &gate{}, nodesOf(3, "1"))
	failure := "0/3 nodes are available: 3 node(s) were rejected by a coin of Chaos (rejectPercent 100)."
	if got := s.Schedule(podOf("chaos", 1))[0].Failure; got != failure {
		t.Errorf("attempt 1 failed with %q, want %q", got, failure)
	}
	if got := s.Retry("chaos/chaos-1")[0].Failure; got != failure {
		t.Errorf("attempt 2 failed with %q, want %q", got, failure)
	}
	if made := s.Retry("chaos/chaos-1")[0]; made.Node == "" {
		t.Errorf("attempt 3 was not left alone: %s", made.Failure)
	}
	s.Settle()
	var failed int
	for _, event := range s.Events() {
		if event.Reason == "FailedScheduling" && event.Note == failure {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d events of failure with the reason, want 2: %v", failed, s.Events())
	}
}

// deleted are the names of the pods that were deleted.
func deleted(s *decision.Scheduler) []string {
	var names []string
	for _, action := range s.Client.Actions() {
		if deletion, ok := action.(clienttesting.DeleteAction); ok && action.GetResource().Resource == "pods" {
			names = append(names, deletion.GetName())
		}
	}
	return names
}

// preempting makes a scheduler with node-0, empty, and node-1, full with the pod prod/victim; and a pod that fits on
// node-0, or on node-1 in the victim's place.
func preempting(t *testing.T, args string) (*decision.Scheduler, *v1.Pod) {
	s := newChaosWith(t, args, &gate{}, nodesOf(2, "1"), 16)
	s.Create(st.MakePod().Namespace("prod").Name("victim").UID("victim").Priority(0).Node("node-1").
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj())
	pod := podOf("chaos", 1)
	priority := int32(100)
	pod.Spec.Priority = &priority
	return s, pod
}

// TestNoPodIsEvictedBecauseOfARejection: when a coin falls against the empty node, the pod finds none; preemption would
// evict the victim from the other one.
func TestNoPodIsEvictedBecauseOfARejection(t *testing.T) {
	failed := 0
	for seed := 1; seed <= 40; seed++ {
		s, pod := preempting(t, fmt.Sprintf(`{namespaces: [chaos], seed: %d, rejectPercent: 50}`, seed))
		made := s.Schedule(pod)[0]
		if made.Node == "" {
			failed++
		}
		s.Settle()
		if names := deleted(s); len(names) != 0 {
			t.Errorf("seed %d: %v deleted; %s", seed, names, made.Failure)
		}
	}
	if failed < 5 {
		t.Errorf("the pod found no node with %d of 40 seeds, which is too few to tell", failed)
	}
}

// TestPreemptionIsAsWithoutChaos when no coin fell against a node: in a dry run, and when the coins were not flipped
// because both nodes were full. Not even those of the simulations, in which nodes have room.
func TestPreemptionIsAsWithoutChaos(t *testing.T) {
	for _, args := range []string{`rejectPercent: 100, dryRun: true`, `rejectPercent: 100`} {
		s, pod := preempting(t, `{namespaces: [chaos], `+args+`}`)
		full := st.MakePod().Namespace("prod").Name("stays").UID("stays").Priority(1000).Node("node-0").
			Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
		s.Create(full)
		made := s.Schedule(pod)[0]
		if names := deleted(s); !reflect.DeepEqual(names, []string{"victim"}) {
			t.Errorf("%s: %v deleted, want the victim; %s", args, names, made.Failure)
		}
	}
}

// TestDryRunChangesNoPlacement schedules the same pods with and without Chaos, with one worker: with more the scheduler
// itself does not decide the same twice.
func TestDryRunChangesNoPlacement(t *testing.T) {
	run := func(args string) ([]decision.Decision, map[string]string, []decision.Event) {
		s := newChaosWith(t, args, &gate{}, decision.MixedNodes(30), 1)
		var pods []*v1.Pod
		for _, pod := range decision.MixedPods(60) {
			pod.Spec.SchedulerName = "chaos"
			pods = append(pods, pod)
		}
		decisions := s.Schedule(pods...)
		s.Settle()
		return decisions, s.Bound(), s.Events()
	}
	const everything = `rejectPercent: 30, randomScore: true, maxPermitDelay: 10m, randomBindPercent: 100`
	decisions, bound, _ := run(`{namespaces: [another], ` + everything + `}`)
	dryDecisions, dryBound, events := run(`{namespaces: [default, other], dryRun: true, ` + everything + `}`)
	if !reflect.DeepEqual(dryDecisions, decisions) || !reflect.DeepEqual(dryBound, bound) {
		t.Errorf("with a dry run:\n%v\n%v\nwithout Chaos:\n%v\n%v", dryDecisions, dryBound, decisions, bound)
	}
	for _, event := range events {
		if event.Reason == "Chaos" {
			t.Errorf("a dry run sent the event %v", event)
		}
	}
}
