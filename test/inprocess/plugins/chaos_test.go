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
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
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
        weight: 20
      - name: Gate
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
	hold    func(pod string) bool
	handles []framework.Handle
}

func (g *gate) Name() string { return "Gate" }

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
func drawnNode(seed int64, pod *v1.Pod, nodes []*v1.Node) string {
	target := draw.Mix(draw.Key(seed, string(pod.UID), "1"), "target")
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

// eventsOf returns the events about a pod that have one of the reasons.
func eventsOf(s *decision.Scheduler, pod *v1.Pod, reasons ...string) []string {
	var notes []string
	for _, event := range s.Events() {
		if event.Object == pod.Namespace+"/"+pod.Name && slices.Contains(reasons, event.Reason) {
			notes = append(notes, event.Type+" "+event.Note)
		}
	}
	return notes
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
    score: {enabled: [{name: Chaos, weight: 20}]}
    reserve: {enabled: [{name: Chaos}]}
    permit: {enabled: [{name: Chaos}]}
  pluginConfig:
  - name: Chaos
    args: {namespaces: [chaos], seed: 7, randomBindPercent: 100, maxPermitDelay: 20ms}
- schedulerName: other
`

// TestPodsGoToTheDrawnNodes: every node has room, so each pod goes to the node that its UID, and nothing else, draws.
// It is the scheduler's own choice: its decision, its events and the binding name that node.
func TestPodsGoToTheDrawnNodes(t *testing.T) {
	v1beta3 := chaosConfiguration(`{namespaces: [chaos], seed: 7, randomBindPercent: 100, maxPermitDelay: 20ms}`)
	for name, config := range map[string]string{"v1beta3": v1beta3, "v1beta2": v1beta2} {
		t.Run(name, func(t *testing.T) {
			nodes := nodesOf(10, "100")
			s := newChaosOf(t, config, &gate{}, nodes, 16)
			pods := podsOf("chaos", 30)
			decisions := s.Schedule(append(pods, podsOf("other", 10)...)...)
			s.Settle()
			bound := s.Bound()
			for i, pod := range pods {
				want := drawnNode(7, pod, nodes)
				if decided, got := decisions[i].Node, bound["chaos/"+pod.Name]; decided != want || got != want {
					t.Errorf("%s: decided %s, bound to %s, want %s", pod.Name, decided, got, want)
				}
				notes := []string{
					fmt.Sprintf("Normal The choice of a node was disturbed: %s was drawn from the nodes that fit (randomBindPercent 100)", want),
					fmt.Sprintf("Normal Successfully assigned chaos/%s to %s", pod.Name, want),
				}
				if got := eventsOf(s, pod, "Chaos", "Scheduled"); len(got) != 3 || got[0] != notes[0] || got[2] != notes[1] ||
					!strings.Contains(got[1], "Binding is delayed by") {
					t.Errorf("events %q, want %q and a delay between them", got, notes)
				}
			}
			for _, pod := range podsOf("other", 10) {
				if got := eventsOf(s, pod, "Chaos"); len(got) != 0 || bound["other/"+pod.Name] == "" {
					t.Errorf("%s is bound to %q, with events %q", pod.Name, bound["other/"+pod.Name], got)
				}
			}
			waitForNoGoroutines(t)
		})
	}
}

// TestEventsNameTheNodeThatAPodGets also where the plugin's weight is too low for the draw to decide always.
func TestEventsNameTheNodeThatAPodGets(t *testing.T) {
	nodes := nodesOf(10, "10")
	for i, node := range nodes {
		// NodeAffinity with weight 2 prefers the first five nodes by 200 points, which is more than Chaos' 100.
		node.Labels = map[string]string{"preferred": fmt.Sprint(i < 5)}
	}
	light := strings.Replace(chaosConfiguration(`{namespaces: [chaos], seed: 7, randomBindPercent: 100}`), "weight: 20", "weight: 1", 1)
	s := newChaosOf(t, light, &gate{}, nodes, 16)
	pods := podsOf("chaos", 20)
	for _, pod := range pods {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
			Weight: 100,
			Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: "preferred", Operator: v1.NodeSelectorOpIn, Values: []string{"true"}},
			}},
		}}}}
	}
	s.Schedule(pods...)
	s.Settle()
	drawn := 0
	for _, pod := range pods {
		node := s.Bound()["chaos/"+pod.Name]
		notes := eventsOf(s, pod, "Chaos")
		if node != drawnNode(7, pod, nodes) {
			if len(notes) != 0 {
				t.Errorf("%s is bound to %s, which was not drawn, and has the events %q", pod.Name, node, notes)
			}
			continue
		}
		drawn++
		if len(notes) != 1 || !strings.Contains(notes[0], node+" was drawn from the nodes that fit") {
			t.Errorf("%s is bound to %s, which was drawn, and has the events %q", pod.Name, node, notes)
		}
	}
	if drawn == 0 || drawn == len(pods) {
		t.Errorf("%d of %d pods got the node that was drawn, which is no test", drawn, len(pods))
	}
}

// TestNodesAreNeverOverfilled: 16 redirected pods wait at Permit; then 8 pods of another profile come. 20 nodes with 2
// CPUs have room for all.
func TestNodesAreNeverOverfilled(t *testing.T) {
	nodes := nodesOf(20, "2")
	g := &gate{hold: func(pod string) bool { return strings.HasPrefix(pod, "chaos-") }}
	s := newChaos(t, `{namespaces: [chaos], randomBindPercent: 100}`, g, nodes)
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
	if full := overfilled(bound, 2); len(bound) != 24 || len(full) != 0 {
		t.Errorf("%d pods are bound, want 24; overfilled: %v", len(bound), full)
	}
}

// TestAPodIsDeletedWhileItWaits: its delay ends, and its node is free again.
func TestAPodIsDeletedWhileItWaits(t *testing.T) {
	s := newChaos(t, `{namespaces: [chaos], seed: 7, randomBindPercent: 100, maxPermitDelay: 10m}`, &gate{}, nodesOf(2, "1"))
	pod := podOf("chaos", 1)
	if made := s.Schedule(pod)[0]; made.Node == "" {
		t.Fatal(made.Failure)
	}
	if err := s.Client.CoreV1().Pods("chaos").Delete(context.Background(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
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
