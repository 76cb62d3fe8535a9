// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pseudorandom"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// everything are args with which all that Chaos can do happens in most cycles.
func everything() config.ChaosArgs {
	return config.ChaosArgs{
		Namespaces: []string{"test"}, Seed: 7, RejectPercent: 30, RandomScore: true, RandomBindPercent: 100,
	}
}

// TestIsTarget lets every pod through all points with everything switched on: nothing may happen to those that are no
// targets, not even to be counted.
func TestIsTarget(t *testing.T) {
	critical, almostCritical := int32(2000000000), int32(1999999999)
	tests := []struct {
		name       string
		pod        *v1.Pod
		namespaces []string
		want       bool
	}{
		{name: "a named namespace", pod: makePod(1), want: true},
		{name: "one of several namespaces", pod: st.MakePod().Namespace("b").Name("pod").UID("u").Obj(), namespaces: []string{"a", "b"}, want: true},
		{name: "another namespace", pod: st.MakePod().Namespace("other").Name("pod").UID("u").Obj()},
		{name: "a namespace that begins the same", pod: st.MakePod().Namespace("test-2").Name("pod").UID("u").Obj()},
		{name: "kube-system", pod: st.MakePod().Namespace("kube-system").Name("pod").UID("u").Obj()},
		{name: "the highest priority below", pod: st.MakePod().Namespace("test").Name("pod").UID("u").Priority(almostCritical).Obj(), want: true},
		{name: "system-critical by priority", pod: st.MakePod().Namespace("test").Name("pod").UID("u").Priority(critical).Obj()},
		{name: "system-critical by cluster class", pod: withClass("system-cluster-critical")},
		{name: "system-critical by node class", pod: withClass("system-node-critical")},
		{name: "another class", pod: withClass("important"), want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := everything()
			if tt.namespaces != nil {
				args.Namespaces = tt.namespaces
			}
			w := newWorld(t, args, makeNodes(20), tt.pod)
			before := counted(t, w)
			r := w.cycle(t, tt.pod)
			after := counted(t, w)

			if tt.want {
				if len(r.rejected) == 0 || len(r.rejected) == 20 || r.scores[r.best] != 100 {
					t.Errorf("a target is not disturbed: rejected %v, scores %v", r.rejected, r.scores)
				}
				if reflect.DeepEqual(before, after) {
					t.Error("nothing was counted")
				}
			} else {
				w.expectUndisturbed(t, r)
				if !reflect.DeepEqual(before, after) {
					t.Errorf("counted %v, then %v", before, after)
				}
				if w.plugin.attempts.read(r.state) != nil {
					t.Error("an attempt was begun")
				}
			}
		})
	}
}

// expectUndisturbed checks that a cycle, the only one so far, has no effect of the plugin.
func (w *world) expectUndisturbed(t *testing.T, r *result) {
	t.Helper()
	if len(r.rejected) != 0 || len(w.events) != 0 {
		t.Errorf("disturbed: rejected %v, events %q", r.rejected, w.events)
	}
	for node, score := range r.scores {
		if score != 0 {
			t.Errorf("%s scores %d, want 0", node, score)
		}
	}
}

func withClass(class string) *v1.Pod {
	pod := makePod(1)
	pod.Spec.PriorityClassName = class
	return pod
}

// TestNewAndIsTargetRefuseKubeSystem goes around validation.
func TestNewAndIsTargetRefuseKubeSystem(t *testing.T) {
	args := everything()
	args.Namespaces = []string{"kube-system"}
	args.MaxConsecutiveRejections = pointer.Int32(1)
	if _, err := New(&args, nil); err == nil || !strings.Contains(err.Error(), "namespaces[0]: Forbidden") {
		t.Errorf("New = %v, want an error about namespaces[0]", err)
	}
	pl := newWorld(t, everything(), nil).plugin
	pl.namespaces.Insert("kube-system")
	if pl.isTarget(st.MakePod().Namespace("kube-system").Name("pod").Obj()) {
		t.Error("a pod of kube-system is a target")
	}
}

// happenings are all that is drawn for the pods in their first attempts, as text.
func happenings(t *testing.T, args config.ChaosArgs, attempts int, pods []*v1.Pod) []string {
	t.Helper()
	w := newWorld(t, args, makeNodes(20), pods...)
	var lines []string
	for i := 0; i < attempts; i++ {
		for _, pod := range pods {
			r := w.cycle(t, pod)
			current := w.plugin.attempts.read(r.state)
			lines = append(lines, fmt.Sprintf("%s attempt %d: rejected %d %v, scores %v, best %s, drawn %q", pod.Name,
				current.number, len(r.rejected), r.rejected, r.scores, r.best, current.drawn))
		}
	}
	return append(lines, w.events...)
}

func TestReplay(t *testing.T) {
	pods := []*v1.Pod{makePod(1), makePod(2), makePod(3)}
	want := happenings(t, everything(), 4, pods)
	if got := happenings(t, everything(), 4, pods); !reflect.DeepEqual(got, want) {
		t.Errorf("the same seed did not do the same:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	seen := map[string]string{}
	for _, line := range want[:12] {
		what := line[strings.Index(line, ":"):]
		if other, found := seen[what]; found {
			t.Errorf("the same happened twice:\n%s\n%s", other, line)
		}
		seen[what] = line
	}
	other := everything()
	other.Seed = 8
	if got := happenings(t, other, 4, pods); reflect.DeepEqual(got, want) {
		t.Error("another seed did the same")
	}
}

func TestMaxConsecutiveRejections(t *testing.T) {
	pod, other := makePod(1), makePod(2)
	args := config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 100, MaxConsecutiveRejections: pointer.Int32(3)}
	w := newWorld(t, args, makeNodes(5), pod, other)
	before := counted(t, w)
	var got []int
	for attempt := 1; attempt <= 9; attempt++ {
		got = append(got, len(w.cycle(t, pod).rejected))
	}
	// Three attempts without a node, then one that is left alone; and again.
	if want := []int{5, 5, 5, 0, 5, 5, 5, 0, 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("rejected nodes by attempt: %v, want %v", got, want)
	}
	if rejected := len(w.cycle(t, other).rejected); rejected != 5 {
		t.Errorf("the first attempt of another pod has %d nodes rejected, want 5", rejected)
	}
	// Each attempt counts once, however many nodes: 3 + 3 + 1 of the one pod and 1 of the other.
	after := counted(t, w)
	if rejected, spared := after["reject"]-before["reject"], after["spare"]-before["spare"]; rejected != 8 || spared != 2 {
		t.Errorf("counted are %g rejected and %g spared attempts, want 8 and 2", rejected, spared)
	}
}

// TestStreakOfPodsWithANode: the pod's binding fails, but Chaos' rejections did not keep it from a node, so there is
// nothing to cap.
func TestStreakOfPodsWithANode(t *testing.T) {
	pod := makePod(1)
	args := config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 50, MaxConsecutiveRejections: pointer.Int32(1)}
	w := newWorld(t, args, makeNodes(20), pod)
	for attempt := 1; attempt <= 10; attempt++ {
		r := w.cycle(t, pod)
		if len(r.rejected) == 0 {
			t.Errorf("attempt %d was left alone", attempt)
		}
		if r.best == "" {
			t.Fatalf("attempt %d found no node of 20", attempt)
		}
	}
}

// TestStreakWithOtherFailures: the attempts between, in which no coin was flipped because another plugin came
// first, do not count, but they do not make the count begin again either.
func TestStreakWithOtherFailures(t *testing.T) {
	pod := makePod(1)
	args := config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 100, MaxConsecutiveRejections: pointer.Int32(2)}
	w := newWorld(t, args, makeNodes(5), pod)
	failElsewhere := func() {
		if status := w.RunPreFilterPlugins(context.Background(), framework.NewCycleState(), pod); !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
	}
	var got []int
	for i := 0; i < 6; i++ {
		got = append(got, len(w.cycle(t, pod).rejected))
		if i%3 == 0 {
			failElsewhere()
		}
	}
	if want := []int{5, 5, 0, 5, 5, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("rejected nodes by attempt: %v, want %v", got, want)
	}
}

// TestNominatedPodIsNotDisturbed: pods were evicted for it, so it gets what they had.
func TestNominatedPodIsNotDisturbed(t *testing.T) {
	pod := makePod(1)
	args := everything()
	args.RejectPercent = 100
	w := newWorld(t, args, makeNodes(20), pod)
	nominated := pod.DeepCopy()
	nominated.Status.NominatedNodeName = "node-3"
	w.expectUndisturbed(t, w.cycle(t, nominated))
	if r := w.cycle(t, pod); len(r.rejected) != 20 {
		t.Errorf("without the nomination %d nodes are rejected, want 20", len(r.rejected))
	}
}

// TestReserveSendsOneEvent: one event for an attempt, whatever the number of nodes.
func TestReserveSendsOneEvent(t *testing.T) {
	tests := []struct {
		name    string
		percent int32
		die     bool
		drawn   int32
		// want are the events, with NODE for the node that the pod gets.
		want []string
	}{
		{name: "nothing"},
		{name: "rejected", percent: 50, want: []string{"The choice of a node was disturbed: some nodes were rejected at random (rejectPercent 50)"}},
		{name: "scored", die: true, want: []string{"The choice of a node was disturbed: the nodes were scored at random (randomScore)"}},
		{name: "both", percent: 50, die: true, want: []string{
			"The choice of a node was disturbed: some nodes were rejected at random (rejectPercent 50); the nodes were scored at random (randomScore)"}},
		{name: "drawn", drawn: 100, want: []string{"The choice of a node was disturbed: NODE was chosen at random from the nodes that fit (randomBindPercent 100)"}},
		{name: "all, in which the die is not thrown", percent: 50, die: true, drawn: 100, want: []string{
			"The choice of a node was disturbed: some nodes were rejected at random (rejectPercent 50); NODE was chosen at random from the nodes that fit (randomBindPercent 100)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := makePod(1)
			args := config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: tt.percent, RandomScore: tt.die, RandomBindPercent: tt.drawn}
			w := newWorld(t, args, makeNodes(20), pod)
			r := w.cycle(t, pod)
			if r.best == "" {
				t.Fatal("no node was found")
			}
			var want recorder
			for _, note := range tt.want {
				want = append(want, "pod-1: Normal Chaos Choose: "+strings.Replace(note, "NODE", r.best, 1))
			}
			if !reflect.DeepEqual(w.events, want) {
				t.Errorf("events %q, want %q", w.events, want)
			}
		})
	}
}

// TestSparedAttempt checks the other points too.
func TestSparedAttempt(t *testing.T) {
	pod := makePod(1)
	args := everything()
	args.RejectPercent, args.MaxConsecutiveRejections = 100, pointer.Int32(1)
	w := newWorld(t, args, makeNodes(20), pod)
	if r := w.cycle(t, pod); r.best != "" {
		t.Fatalf("the first attempt found %s", r.best)
	}
	w.expectUndisturbed(t, w.cycle(t, pod))
}

// TestFilterWithACopyOfTheState: with a nominated pod on the node the scheduler filters twice, once with a copy of the
// state. Both belong to the same attempt, and the coin is the same.
func TestFilterWithACopyOfTheState(t *testing.T) {
	pod := makePod(1)
	nominee := st.MakePod().Namespace("test").Name("pod-2").UID("uid-2").Priority(10).Obj()
	nominee.Status.NominatedNodeName = "node-1"
	w := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 50}, makeNodes(20), pod, nominee)
	w.UpdateNominatedPod(nominee, framework.NewPodInfo(nominee))
	with := w.cycle(t, pod)
	if got := w.plugin.attempts.read(with.state).number; got != 1 {
		t.Errorf("the first cycle is attempt %d", got)
	}
	without := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, Seed: 0, RejectPercent: 50}, makeNodes(20), pod).cycle(t, pod)
	if !reflect.DeepEqual(with.rejected, without.rejected) {
		t.Errorf("rejected %v with a nominated pod, %v without", with.rejected, without.rejected)
	}
}

// TestFilterInASimulation: preemption removes pods from a copy of the state.
func TestFilterInASimulation(t *testing.T) {
	pod := makePod(1)
	w := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 50}, makeNodes(20), pod)
	r := w.cycle(t, pod)
	nodeInfo, simulated, victim := w.Node(t, r.best), r.state.Clone(), framework.NewPodInfo(makePod(2))
	if status := w.RunPreFilterExtensionRemovePod(context.Background(), simulated, pod, victim, nodeInfo); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	status := w.plugin.Filter(context.Background(), simulated.Clone(), pod, nodeInfo)
	want := "node(s) were left out of preemption, because a coin of Chaos fell against a node"
	if status.Code() != framework.UnschedulableAndUnresolvable || status.Message() != want {
		t.Errorf("Filter in a simulation = %v, want unresolvable, %q", status, want)
	}
	if status := w.plugin.Filter(context.Background(), r.state, pod, nodeInfo); !status.IsSuccess() {
		t.Errorf("Filter beside the simulation = %v, want success", status)
	}
}

// TestFilterWithoutPreFilter: a copy of the state is no place to begin an attempt, so nothing happens.
func TestFilterWithoutPreFilter(t *testing.T) {
	w := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 100}, makeNodes(1))
	for i := 0; i < 2; i++ {
		if status := w.plugin.Filter(context.Background(), framework.NewCycleState(), makePod(1), w.Node(t, "node-1")); !status.IsSuccess() {
			t.Errorf("Filter = %v, want success", status)
		}
	}
}

// TestScoreWithoutPreFilter: a profile may enable Score and nothing else; each cycle is an attempt all the same.
func TestScoreWithoutPreFilter(t *testing.T) {
	w := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, RandomScore: true}, makeNodes(100))
	pod := makePod(1)
	var attempts []string
	for i := 0; i < 2; i++ {
		state := framework.NewCycleState()
		scores := make([]int64, len(w.nodes))
		w.Parallelizer().Until(context.Background(), len(w.nodes), func(i int) {
			scores[i], _ = w.plugin.Score(context.Background(), state, pod, w.nodes[i].Name)
		})
		k := newKeys(pseudorandom.Key(0, "uid-1", fmt.Sprint(i+1)))
		for i, score := range scores {
			if want := k.score(w.nodes[i].Name); score != want {
				t.Fatalf("%s scores %d, want %d", w.nodes[i].Name, score, want)
			}
		}
		attempts = append(attempts, fmt.Sprint(scores))
	}
	if attempts[0] == attempts[1] {
		t.Error("the second attempt has the scores of the first")
	}
}

func TestEventsToRegister(t *testing.T) {
	want := []framework.ClusterEvent{{
		Resource:   framework.Node,
		ActionType: framework.Add | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
	}}
	if got := (&Chaos{}).EventsToRegister(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
