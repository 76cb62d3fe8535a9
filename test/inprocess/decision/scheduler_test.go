// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

func TestEqualSeedsGiveEqualDecisions(t *testing.T) {
	run := func(seed int64) []decision.Decision {
		s := decision.New(t, decision.Options{Nodes: decision.MixedNodes(30), Seed: seed})
		return s.Schedule(decision.MixedPods(60)...)
	}
	first, second, other := run(1), run(1), run(2)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("with the same seed:\n%v\n%v", first, second)
	}
	if reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same decisions: no draw decided any of them")
	}
}

func TestPodsAreBoundByPriorityAndFailuresSayWhy(t *testing.T) {
	s := decision.New(t, decision.Options{Nodes: []*v1.Node{
		st.MakeNode().Name("small").Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "1", v1.ResourcePods: "10"}).Obj(),
	}})
	cpu := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount}
	}
	got := s.Schedule(
		st.MakePod().Name("later").Req(cpu("500m")).Obj(),
		st.MakePod().Name("large").Req(cpu("2")).Obj(),
		st.MakePod().Name("urgent").Req(cpu("500m")).Priority(1).Obj(),
	)
	want := []decision.Decision{
		{Pod: "default/urgent", Node: "small"},
		{Pod: "default/later", Node: "small"},
		{Pod: "default/large", Failure: "0/1 nodes are available: 1 Insufficient cpu."},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.Settle()
	if got, want := s.Bound(), map[string]string{"default/later": "small", "default/urgent": "small"}; !reflect.DeepEqual(got, want) {
		t.Errorf("bound: %v, want %v", got, want)
	}
	var reasons []string
	for _, event := range s.Events() {
		if event.Object == "default/large" {
			reasons = append(reasons, event.Type+" "+event.Reason)
		}
	}
	if strings.Join(reasons, ", ") != "Warning FailedScheduling" {
		t.Errorf("the events of the pod that does not fit: %q", reasons)
	}
}

func TestPreemptionAndRetry(t *testing.T) {
	s := decision.New(t, decision.Options{Nodes: []*v1.Node{
		st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "1", v1.ResourcePods: "10"}).Obj(),
	}})
	cpu := map[v1.ResourceName]string{v1.ResourceCPU: "1"}
	s.Create(st.MakePod().Name("victim").Req(cpu).Node("node").Obj())
	if got := s.Schedule(st.MakePod().Name("urgent").Req(cpu).Priority(1).Obj()); got[0].Failure == "" {
		t.Fatalf("there is no room yet, and still: %v", got)
	}
	s.Settle()
	if got := s.Bound(); len(got) != 0 {
		t.Fatalf("bound: %v, want the victim gone", got)
	}
	got := s.Retry("default/urgent")
	if want := []decision.Decision{{Pod: "default/urgent", Node: "node"}}; !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	s.Settle()
	if got, want := s.Bound(), map[string]string{"default/urgent": "node"}; !reflect.DeepEqual(got, want) {
		t.Errorf("bound: %v, want %v", got, want)
	}
}

func TestDecideAssumesThePodOnTheNode(t *testing.T) {
	s := decision.New(t, decision.Options{Nodes: []*v1.Node{
		st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "1", v1.ResourcePods: "10"}).Obj(),
	}})
	cpu := map[v1.ResourceName]string{v1.ResourceCPU: "600m"}
	pods := s.Complete(st.MakePod().Name("first").Req(cpu).Obj(), st.MakePod().Name("second").Req(cpu).Obj())
	if node, err := s.Decide(pods[0]); node != "node" || err != nil {
		t.Errorf("the first pod: %q, %v", node, err)
	}
	if node, err := s.Decide(pods[1]); node != "" || err == nil {
		t.Errorf("there is no room for the second pod beside the first, and still: %q", node)
	}
	if bound := s.Bound(); len(bound) != 0 {
		t.Errorf("Decide has bound %v", bound)
	}
}
