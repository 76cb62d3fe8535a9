// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

func newChaos(t *testing.T, args string, nodes []*v1.Node) *decision.Scheduler {
	t.Helper()
	return decision.New(t, decision.Options{Config: with(chaos.Name, args), Nodes: nodes, Seed: 1, Parallelism: 16, Plugins: registered()})
}

// chaosPod returns a pod of the namespace chaos that requests one CPU.
func chaosPod() *v1.Pod {
	return st.MakePod().Namespace("chaos").Name("chaos-1").UID("uid-chaos-1").Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
}

func TestChaosRejectionEvent(t *testing.T) {
	s := newChaos(t, `{namespaces: [chaos], rejectPercent: 100, maxConsecutiveRejections: 2}`, nodesOf(3, "1"))
	failure := "0/3 nodes are available: 3 node(s) were rejected by a coin of Chaos (rejectPercent 100)."
	if got := s.Schedule(chaosPod())[0].Failure; got != failure {
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
	s := newChaos(t, args, nodesOf(2, "1"))
	s.Create(st.MakePod().Namespace("prod").Name("victim").UID("victim").Priority(0).Node("node-1").
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj())
	pod := chaosPod()
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
