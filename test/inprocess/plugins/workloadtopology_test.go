// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

// inZones returns nodes with 8 cores, in the zones in turn.
func inZones(n int, zones ...string) []*v1.Node {
	var nodes []*v1.Node
	for i := 0; i < n; i++ {
		name := fmt.Sprintf("node-%d", i)
		nodes = append(nodes, st.MakeNode().Name(name).Label(v1.LabelHostname, name).Label(v1.LabelTopologyZone, zones[i%len(zones)]).
			Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "8", v1.ResourceMemory: "32Gi", v1.ResourcePods: "110"}).Obj())
	}
	return nodes
}

func ofJob(job, name string) *v1.Pod {
	return st.MakePod().Namespace("default").Name(name).Label("app", job).Label("component", "taskmanager").
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "100m", v1.ResourceMemory: "128Mi"}).Obj()
}

// topologyAlone is a profile in which only WorkloadTopology scores.
func topologyAlone(args, more string) string {
	return fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: WorkloadTopology}, {name: NodeLoad}]
    score:
      disabled: [{name: "*"}]
      enabled: [{name: WorkloadTopology}]
  pluginConfig:
  - {name: WorkloadTopology, args: %s}
  - {name: NodeLoad, args: %s}
`, args, more)
}

const noNodeLoad = `{prometheus: {endpoints: ["http://127.0.0.1:1"]}}`

// zonesOf returns the number of pods in each of three zones.
func zonesOf(t *testing.T, decided []decision.Decision) map[int]int {
	t.Helper()
	zones := map[int]int{}
	for _, d := range decided {
		var number int
		if _, err := fmt.Sscanf(d.Node, "node-%d", &number); err != nil {
			t.Fatalf("%s is on %q: %s", d.Pod, d.Node, d.Failure)
		}
		zones[number%3]++
	}
	return zones
}

// TestAnOrdinaryServiceStaysSpread has the plugin in the default profile: equal labels app do not make pods a job.
func TestAnOrdinaryServiceStaysSpread(t *testing.T) {
	s := decision.New(t, decision.Options{
		Config: with("WorkloadTopology", "{}"), Plugins: registered(), Nodes: inZones(12, "a", "b", "c"), Seed: 1,
	})
	var pods []*v1.Pod
	for i := 0; i < 12; i++ {
		pods = append(pods, ofJob("web", fmt.Sprintf("web-%d", i)))
	}
	zones := zonesOf(t, s.Schedule(pods...))
	if len(zones) != 3 {
		t.Errorf("the pods are in the zones %v, want all three", zones)
	}
}

// TestPreemptionMakesRoomInAGroup has a node that fits the pod only without a
// pod of its group. Pods of another group with the same low priority must stay.
func TestPreemptionMakesRoomInAGroup(t *testing.T) {
	s := decision.New(t, decision.Options{
		Config: topologyAlone(`{podSelector: {}, groupBy: [app], maxPerNode: 1}`, noNodeLoad), Plugins: registered(), Nodes: inZones(1, "a"), Seed: 1, NoBackoff: true,
	})
	for _, d := range s.Schedule(ofJob("other", "other"), ofJob("job", "low")) {
		if d.Node == "" {
			t.Fatalf("%s has no node: %s", d.Pod, d.Failure)
		}
	}
	s.Settle()
	urgent := ofJob("job", "urgent")
	priority := int32(100)
	urgent.Spec.Priority = &priority
	if got := s.Schedule(urgent); got[0].Failure == "" {
		t.Fatalf("there are as many pods of the group as may be, and still: %v", got)
	}
	if got := s.Next(1); got[0].Node != "node-0" {
		t.Fatalf("after preemption: %v", got)
	}
	s.Settle()
	if bound := s.Bound(); bound["default/urgent"] != "node-0" || bound["default/other"] != "node-0" || bound["default/low"] != "" {
		t.Errorf("bound are %v, want urgent and other, and low gone", bound)
	}
}

// TestPreemptionMakesRoomBesideANominatedPod has fewer placed pods than the maximum, but another pod is nominated.
func TestPreemptionMakesRoomBesideANominatedPod(t *testing.T) {
	s := decision.New(t, decision.Options{
		Config: with("WorkloadTopology", "{podSelector: {}, groupBy: [app], maxPerNode: 2}"), Plugins: registered(), Nodes: inZones(1, "a"), Seed: 1, NoBackoff: true,
	})
	if got := s.Schedule(ofJob("job", "low")); got[0].Node == "" {
		t.Fatal(got)
	}
	s.Settle()
	priority := int32(100)
	urgent, nominated := ofJob("job", "urgent"), ofJob("job", "nominated")
	urgent.Spec.Priority, nominated.Spec.Priority = &priority, &priority
	nominated.Status.NominatedNodeName = "node-0"
	s.Create(urgent, nominated)
	if got := s.Next(1); got[0].Pod != "default/urgent" || got[0].Failure == "" {
		t.Fatalf("two pods of the group are there or to come, and still: %v", got)
	}
	plugintest.WaitFor(t, "the pod of low priority to go", func() bool { return s.Pods()["default/low"] == nil })
}

// TestAJobKeepsAwayFromAHotNode checks that pods avoid the hot node of their peer once NodeLoad has measured it.
func TestAJobKeepsAwayFromAHotNode(t *testing.T) {
	p := newPrometheus(t, map[string]float64{"node-0": 0.75, "node-1": 0.1}, time.Time{})
	s := decision.New(t, decision.Options{
		Config:  topologyAlone(`{podSelector: {}, groupBy: [app], avoidAbove: 70}`, fmt.Sprintf(`{prometheus: {endpoints: [%q]}, refreshInterval: 1s, resources: [{name: cpu}]}`, p.url)),
		Plugins: registered(), Nodes: inZones(2, "a"), Seed: 1,
	})
	tried := 0
	plugintest.WaitFor(t, "a pod to keep away from the hot node", func() bool {
		tried++
		// Each is of a job with one peer, on the hot node.
		job := fmt.Sprintf("job-%d", tried)
		peer := ofJob(job, job+"-peer")
		peer.Spec.NodeName = "node-0"
		s.Create(peer)
		return s.Schedule(ofJob(job, job+"-pod"))[0].Node == "node-1"
	})
}
