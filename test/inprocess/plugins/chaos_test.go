// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pseudorandom"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

// chaosConfiguration returns a configuration with the profile chaos, which has the given args, and the profile other
// without Chaos.
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
  pluginConfig:
  - name: Chaos
    args: ` + args + `
- schedulerName: other
`
}

func newChaos(t *testing.T, args string, nodes []*v1.Node) *decision.Scheduler {
	t.Helper()
	return newChaosWith(t, args, nodes, 16)
}

func newChaosWith(t *testing.T, args string, nodes []*v1.Node, parallelism int32) *decision.Scheduler {
	t.Helper()
	return decision.New(t, decision.Options{
		Config:      chaosConfiguration(args),
		Nodes:       nodes,
		Seed:        1,
		Parallelism: parallelism,
		Plugins:     frameworkruntime.Registry{chaos.Name: chaos.New},
	})
}

// podOf returns a pod that requests one CPU. The profile is its namespace too.
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

// drawnNode returns the node of a redirected pod at its first attempt if
// all nodes are feasible: the one with the lowest pseudorandom number.
func drawnNode(seed int64, pod *v1.Pod, nodes []*v1.Node) string {
	target := pseudorandom.Mix(pseudorandom.Key(seed, string(pod.UID), "1"), "target")
	return slices.MinFunc(nodes, func(a, b *v1.Node) int {
		return cmp.Compare(pseudorandom.Mix(target, a.Name), pseudorandom.Mix(target, b.Name))
	}).Name
}

// eventsOf returns the events of a pod with one of the reasons.
func eventsOf(s *decision.Scheduler, pod *v1.Pod, reasons ...string) []string {
	var notes []string
	for _, event := range s.Events() {
		if event.Object == pod.Namespace+"/"+pod.Name && slices.Contains(reasons, event.Reason) {
			notes = append(notes, event.Type+" "+event.Note)
		}
	}
	return notes
}

// TestChaosRedirectsPods gives every node room, so the node of each pod depends on its UID alone. The scheduler's
// decision, its events and the binding must name that node.
func TestChaosRedirectsPods(t *testing.T) {
	nodes := nodesOf(10, "100")
	s := newChaos(t, `{namespaces: [chaos], seed: 7, randomBindPercent: 100}`, nodes)
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
			fmt.Sprintf("Normal The choice of a node was disturbed: %s was chosen at random from the nodes that fit (randomBindPercent 100)", want),
			fmt.Sprintf("Normal Successfully assigned chaos/%s to %s", pod.Name, want),
		}
		if got := eventsOf(s, pod, "Chaos", "Scheduled"); !reflect.DeepEqual(got, notes) {
			t.Errorf("events %q, want %q", got, notes)
		}
	}
	for _, pod := range podsOf("other", 10) {
		if got := eventsOf(s, pod, "Chaos"); len(got) != 0 || bound["other/"+pod.Name] == "" {
			t.Errorf("%s is bound to %q, with events %q", pod.Name, bound["other/"+pod.Name], got)
		}
	}
}

func TestChaosRejectionEvent(t *testing.T) {
	s := newChaos(t, `{namespaces: [chaos], rejectPercent: 100, maxConsecutiveRejections: 2}`, nodesOf(3, "1"))
	failure := "0/3 nodes are available: 3 node(s) were rejected by a coin of Chaos (rejectPercent 100)."
	if got := s.Schedule(podOf("chaos", 1))[0].Failure; got != failure {
		t.Errorf("attempt 1 failed with %q, want %q", got, failure)
	}
	if got := s.Retry("chaos/chaos-1")[0].Failure; got != failure {
		t.Errorf("attempt 2 failed with %q, want %q", got, failure)
	}
	if made := s.Retry("chaos/chaos-1")[0]; made.Node == "" {
		t.Errorf("attempt 3 was disturbed: %s", made.Failure)
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

// deleted returns the names of the deleted pods.
func deleted(s *decision.Scheduler) []string {
	var names []string
	for _, action := range s.Client.Actions() {
		if deletion, ok := action.(clienttesting.DeleteAction); ok && action.GetResource().Resource == "pods" {
			names = append(names, deletion.GetName())
		}
	}
	return names
}

// preempting returns a scheduler whose node-0 is empty and whose node-1 is full with the pod prod/victim, and a pod
// that fits on node-0, or on node-1 without the victim.
func preempting(t *testing.T, args string) (*decision.Scheduler, *v1.Pod) {
	s := newChaosWith(t, args, nodesOf(2, "1"), 16)
	s.Create(st.MakePod().Namespace("prod").Name("victim").UID("victim").Priority(0).Node("node-1").
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj())
	pod := podOf("chaos", 1)
	priority := int32(100)
	pod.Spec.Priority = &priority
	return s, pod
}

// TestChaosRejectionEvictsNoPod covers attempts in which Chaos rejects
// the empty node: preemption would evict the victim from the other one.
func TestChaosRejectionEvictsNoPod(t *testing.T) {
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
		t.Errorf("the pod found no node with only %d of 40 seeds", failed)
	}
}

// TestChaosKeepsPreemption covers an attempt in which other plugins reject both nodes first, so that Chaos rejects none.
// Preemption must then work as without Chaos, although its simulations have room.
func TestChaosKeepsPreemption(t *testing.T) {
	s, pod := preempting(t, `{namespaces: [chaos], rejectPercent: 100}`)
	full := st.MakePod().Namespace("prod").Name("stays").UID("stays").Priority(1000).Node("node-0").
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
	s.Create(full)
	made := s.Schedule(pod)[0]
	if names := deleted(s); !reflect.DeepEqual(names, []string{"victim"}) {
		t.Errorf("%v deleted, want the victim; %s", names, made.Failure)
	}
}
