// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

// pool returns nodes of a pool, each with room for a number of pods of one CPU.
func pool(name string, count int, cpu string) []*v1.Node {
	var nodes []*v1.Node
	for i := 0; i < count; i++ {
		nodes = append(nodes, st.MakeNode().Name(fmt.Sprintf("%s-%d", name, i)).Label("pool", name).
			Capacity(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: "64Gi", v1.ResourcePods: "1000"}).Obj())
	}
	return nodes
}

// ofShare returns a pod that counts for the shares here: app=web, one CPU.
func ofShare(name string, priority int32) *v1.Pod {
	return st.MakePod().Namespace("default").Name(name).UID(name).Label("app", "web").Priority(priority).
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Obj()
}

func running(node string, pod *v1.Pod) *v1.Pod {
	pod.Spec.NodeName = node
	return pod
}

// shareOfSpot returns a configuration with a Share rule for the pods
// app=web on the pool spot, with the given bounds, in two profiles.
func shareOfSpot(bounds string) string {
	one := with(nodefilter.Name, `{rules: [{name: spot-share, action: Share, whenUnsatisfiable: DoNotSchedule, `+bounds+`, nodeSelector: {matchLabels: {pool: spot}}, podSelector: {matchLabels: {app: web}}}]}`)
	_, profile, _ := strings.Cut(one, "profiles:\n")
	return one + strings.Replace(profile, "default-scheduler", "second", 1)
}

func newShare(t *testing.T, bounds string, nodes []*v1.Node) *decision.Scheduler {
	t.Helper()
	return decision.New(t, decision.Options{Config: shareOfSpot(bounds), Plugins: registered(), Nodes: nodes, Seed: 1, NoBackoff: true})
}

// TestAPodPreemptsForItsShare allows half of the pods on spot nodes, where two of four are; there is no room elsewhere.
// A pod of a higher priority must preempt one of them, although spot-0 has room for all.
func TestAPodPreemptsForItsShare(t *testing.T) {
	s := newShare(t, "maxPercent: 50", append(pool("spot", 1, "10"), pool("on-demand", 1, "2")...))
	s.Create(
		running("spot-0", ofShare("low-1", 0)), running("spot-0", ofShare("low-2", 10)), running("spot-0", st.MakePod().Namespace("default").Name("other").UID("other").Obj()),
		running("on-demand-0", ofShare("high-1", 1000)), running("on-demand-0", ofShare("high-2", 1000)),
	)
	failure := `0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had the most pods that rule "spot-share" of NodeFilter allows them.`
	if got := s.Schedule(ofShare("low-3", 0))[0]; got.Failure != failure {
		t.Fatalf("got %v, want the failure %q", got, failure)
	}
	if got := s.Schedule(ofShare("preemptor", 100))[0]; got.Failure != failure {
		t.Fatalf("got %v, want the failure %q", got, failure)
	}
	// The deletion of the victim requeues both pending pods.
	decided := map[string]string{}
	for _, made := range s.Next(2) {
		decided[made.Pod] = made.Node
	}
	if want := map[string]string{"default/preemptor": "spot-0", "default/low-3": ""}; !reflect.DeepEqual(decided, want) {
		t.Errorf("decided %v, want %v", decided, want)
	}
	if got := deleted(s); !reflect.DeepEqual(got, []string{"low-1"}) {
		t.Errorf("%v deleted, want the pod of the lowest priority that counts", got)
	}
}

// TestAShareCountsPodsOfAllProfiles also covers pods that are being bound. One profile places ten pods on on-demand
// nodes. Only because the other profile counts these, ten of its own can go to spot nodes: by its own alone, none
// could. The next one, of either profile, would be 11 of 21.
func TestAShareCountsPodsOfAllProfiles(t *testing.T) {
	s := newShare(t, "maxPercent: 50", append(pool("spot", 2, "20"), pool("on-demand", 2, "20")...))
	place := func(pod, scheduler, pool string) decision.Decision {
		t.Helper()
		made := ofShare(pod, 0)
		made.Spec.SchedulerName = scheduler
		made.Spec.NodeSelector = map[string]string{"pool": pool}
		return s.Schedule(made)[0]
	}
	for _, of := range []struct{ scheduler, pool string }{{v1.DefaultSchedulerName, "on-demand"}, {"second", "spot"}} {
		for i := 0; i < 10; i++ {
			if got := place(fmt.Sprintf("%s-%d", of.pool, i), of.scheduler, of.pool); got.Node == "" {
				t.Fatalf("%s: %s", got.Pod, got.Failure)
			}
		}
	}
	for _, scheduler := range []string{v1.DefaultSchedulerName, "second"} {
		if got := place("too-many-for-"+scheduler, scheduler, "spot"); got.Node != "" {
			t.Errorf("%s is on %s, as the 11th of 21 pods", got.Pod, got.Node)
		}
	}
}

// TestAPodWaitsForItsShare has a pod that only fits where its share is
// full. It must be retried when another pod of the share is deleted.
func TestAPodWaitsForItsShare(t *testing.T) {
	s := newShare(t, "maxPercent: 50", append(pool("spot", 1, "10"), pool("on-demand", 1, "10")...))
	s.Create(running("spot-0", ofShare("spot", 0)), running("spot-0", ofShare("too-many", 0)), running("on-demand-0", ofShare("on-demand", 0)))
	waiting := ofShare("waiting", 0)
	waiting.Spec.NodeSelector = map[string]string{"pool": "spot"}
	if got := s.Schedule(waiting)[0]; got.Node != "" {
		t.Fatalf("it is on %s, and does not wait", got.Node)
	}
	s.DeletePod("default/spot")
	if got := s.Next(1)[0]; got.Node != "" {
		t.Fatalf("it is on %s, with one of two pods on spot nodes", got.Node)
	}
	s.DeletePod("default/too-many")
	if got := s.Next(1)[0]; got.Node != "spot-0" {
		t.Errorf("it waits, with no other pod on spot nodes: %s", got.Failure)
	}
}
