// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func ended(pod *st.PodWrapper, phase v1.PodPhase) *st.PodWrapper {
	pod.Status.Phase = phase
	return pod
}

func TestGangOf(t *testing.T) {
	w := newWorld(t, func(args *config.CoschedulingArgs) {
		args.RequiredTopologyKey, args.PreferredTopologyKey = "zone", "rack"
	})
	w.group("g", 3, 0)
	other := podOf("e", "g").SchedulerName("other")
	w.set(podOf("c", "g"), podOf("b", "g").Node("n"), podOf("a", "g"), other, podOf("f", "g").SchedulerName("other").Node("n"),
		podOf("g", "g").Node("n").Terminating(), podOf("h", "g").Terminating(), ended(podOf("i", "g").Node("n"), v1.PodSucceeded),
		ended(podOf("j", "g").Node("n"), v1.PodFailed), podOf("k", "of-another"), podOf("z", "g"), podOf("y", "g"), podOf("x", "g"), podOf("w", "g"), podOf("v", "g"), podOf("l", "g").Namespace("other"))
	gang, reason := w.GangOf(podOf("a", "g").Obj())
	if reason != "" || gang == nil {
		t.Fatal(reason)
	}
	if names(gang.Waiting) != "a c v w x y z" || names(gang.Placed) != "b f" {
		t.Errorf("waiting are %s, placed are %s", names(gang.Waiting), names(gang.Placed))
	}
	if gang.Name != "ns/g" || gang.MinMember != 3 || gang.MinResources.Cpu().Value() != 3 || gang.Required != "zone" || gang.Preferred != "rack" || gang.Timeout == 0 {
		t.Errorf("got %+v", gang)
	}
	// A pod that begins to end, and one that is deleted.
	w.set(podOf("b", "g").Node("n").Terminating())
	for _, name := range []string{"a", "v", "w", "x", "y", "z"} {
		w.delete(podOf(name, "g"))
	}
	if _, reason := w.GangOf(podOf("c", "g").Obj()); reason != ofOthers {
		t.Errorf("with one of its own, one of another scheduler, and a third that waits for that: %q", reason)
	}
	w.delete(other)
	if _, reason := w.GangOf(podOf("c", "g").Obj()); reason != "PodGroup ns/g"+gangs.TooFew {
		t.Errorf("without it: %q", reason)
	}
}

func TestReasons(t *testing.T) {
	w := newWorld(t, nil)
	w.group("zero", 0, 0)
	w.group("negative", -1, 0)
	w.group("bad-key", 1, 0, requiredAnnotation, "a b")
	w.group("huge", 1, 0)
	for i := 0; i <= maxMembers; i++ {
		w.groups.podChanged(nil, podOf(fmt.Sprint(i), "huge").Obj())
	}
	w.group("deleted", 1, 0)
	w.set(podOf("stays", "deleted"))
	deleted := podGroupOf("deleted", 1, 0)
	w.groups.groupDeleted(nameOf(deleted))
	for group, want := range map[string]string{
		"": "", "unknown": noPodGroup, "deleted": noPodGroup, "zero": badMinMember, "negative": badMinMember, "bad-key": badTopologyKey, "huge": tooMany,
	} {
		gang, reason := w.GangOf(podOf("a", group).Obj())
		if gang != nil || reason != want {
			t.Errorf("%q: %v, %q, want %q", group, gang, reason, want)
		}
	}
	w.groups.groupChanged(nil, deleted)
	if gang, reason := w.GangOf(podOf("stays", "deleted").Obj()); reason != "" || len(gang.Waiting) != 1 {
		t.Errorf("created again: %v, %q", gang, reason)
	}
}

func TestTopologyKeys(t *testing.T) {
	w := newWorld(t, func(args *config.CoschedulingArgs) { args.RequiredTopologyKey = "zone" })
	for want, annotations := range map[string][]string{
		"zone ": nil, "rack ": {requiredAnnotation, "rack"}, " ": {requiredAnnotation, ""}, "zone rack": {preferredAnnotation, "rack"},
	} {
		w.group("g", 1, 0, annotations...)
		w.set(podOf("a", "g"))
		gang, reason := w.GangOf(podOf("a", "g").Obj())
		if reason != "" || gang.Required+" "+gang.Preferred != want {
			t.Errorf("%v: %q, %+v", annotations, reason, gang)
		}
	}
}

// TestHalves follows a gang of three from its first pod to its end.
func TestHalves(t *testing.T) {
	w := newWorld(t, nil)
	bind := func(name string) { w.groups.mark(podOf(name, "g").Node("n").Obj(), placed) }
	check := func(when string, want bool) {
		t.Helper()
		halves := w.Halves()
		if (len(halves) == 1) != want || (len(w.groups.halves) == 1) != want || want && halves[0].Name != "ns/g" {
			t.Errorf("%s: half gangs are %v", when, halves)
		}
	}
	w.group("g", 3, 0)
	w.set(podOf("a", "g"), podOf("b", "g"), podOf("c", "g"))
	check("all wait", false)
	for _, name := range []string{"a", "b", "c"} {
		w.Reserve(context.TODO(), nil, podOf(name, "g").Node("n").Obj(), "n")
	}
	bind("a")
	w.set(podOf("d", "g"))
	check("the first of three is bound, two are being, and a fourth waits", false)
	w.delete(podOf("d", "g"))
	w.set(podOf("a", "g")) // An event from before the binding.
	w.Unreserve(context.TODO(), nil, podOf("a", "g").Obj(), "n")
	w.Unreserve(context.TODO(), nil, podOf("c", "g").Obj(), "n")
	check("the binding of one failed", true)
	w.set(podOf("a", "g").Node("n"), podOf("b", "g").Node("n"), podOf("c", "g").SchedulerName("other"))
	check("the rest is of another scheduler", false)
	w.set(podOf("c", "g"))
	check("a new one waits", true)
	w.group("g", 2, 0)
	check("two are enough", false)
	w.group("g", 3, 0)
	check("they are not", true)
	w.set(podOf("c", "g").Label(gangs.Label, "h"))
	check("the one that waits changed to another gang", false)
	w.Reserve(context.TODO(), nil, podOf("c", "g").Node("n").Obj(), "n") // It was being scheduled meanwhile.
	if members := w.groups.byName[nameOf(podGroupOf("g", 3, 0))].members; len(members) != 2 {
		t.Errorf("members are %v", members)
	}
	w.set(podOf("c", "g").Node("n"))
	check("all run", false)
	w.set(podOf("c", "g").UID("c2"))
	check("one was replaced, with the same name", true)
	w.groups.groupDeleted(nameOf(podGroupOf("g", 3, 0)))
	check("there is no PodGroup", false)
	for _, pod := range []*st.PodWrapper{podOf("a", "g").Node("n"), podOf("b", "g").Node("n"), podOf("c", "g").UID("c2")} {
		w.delete(pod)
	}
	bind("a") // It was deleted while it was being bound.
	if len(w.groups.byName) > 0 || len(w.groups.halves) > 0 {
		t.Errorf("of a gang that is gone stay %v", w.groups.byName)
	}
	if actions := w.pods.Actions(); len(actions) > 0 {
		t.Errorf("it did %v without giveUpHalfGangsAfter", actions)
	}
}

func TestHalfGangsAreGivenUp(t *testing.T) {
	w := newWorld(t, func(args *config.CoschedulingArgs) { args.GiveUpHalfGangsAfter.Duration = time.Hour })
	w.pods.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	w.group("g", 3, 0)
	w.set(podOf("a", "g").Node("n"), podOf("b", "g").Node("n"), podOf("c", "g"))
	g := w.groups.byName[nameOf(podGroupOf("g", 3, 0))]
	for i := 0; i < 2; i++ {
		// The first one is too early.
		if halves := w.Halves(); len(halves) != 1 || time.Since(g.half) > time.Minute {
			t.Fatalf("half gangs are %v, since %v", halves, g.half)
		}
		g.half = g.half.Add(time.Duration(i-1) * time.Hour)
	}
	w.await("there are no events", func() bool { return len(w.events) == 2 })
	const want = "Warning HalfGangGivenUp Evicted, because fewer pods of its gang than minMember have had nodes for 1h0m0s"
	if event := <-w.events; event != want {
		t.Errorf("got the event %q, want %q", event, want)
	}
	for _, action := range w.pods.Actions() {
		if action.GetVerb() != "create" || action.GetSubresource() != "eviction" {
			t.Errorf("it did %v", action)
		}
	}
}

// TestInformers has two profiles in a cluster whose objects come through the informers.
func TestInformers(t *testing.T) {
	w := newWorld(t, nil)
	factory := informers.NewSharedInformerFactory(w.pods, 0)
	first, second := w.plugin(profile, nil, factory), w.plugin("second", nil, factory)
	if first.groups != second.groups {
		t.Error("the profiles have an informer each")
	}
	moves := make(chan framework.ClusterEvent, 10)
	second.SetPodMover(func(event framework.ClusterEvent) { moves <- event })
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	ctx, groups := context.Background(), w.custom.Resource(resource).Namespace("ns")
	object, err := groups.Create(ctx, podGroupOf("g", 2, 0), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if event := <-moves; event != moved {
		t.Errorf("moved by %v", event)
	}
	for _, pod := range []*st.PodWrapper{podOf("a", "g").Node("n"), podOf("b", "g").SchedulerName("second")} {
		if _, err := w.pods.CoreV1().Pods("ns").Create(ctx, pod.Obj(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.await("the gang is not half", func() bool { return len(second.Halves()) == 1 })
	if halves := first.Halves(); len(halves) > 0 {
		t.Errorf("in the profile without a pod of it: %v", halves)
	}
	gang, reason := second.GangOf(podOf("b", "g").SchedulerName("second").Obj())
	if reason != "" || names(gang.Waiting)+names(gang.Placed) != "ba" {
		t.Errorf("got %q, %+v", reason, gang)
	}
	// A change of the status moves nothing; those of the spec and of an annotation do.
	_ = unstructured.SetNestedField(object.Object, "Scheduling", "status", "phase")
	if object, err = groups.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("the phase is not seen", func() bool { return phaseOf(first, object) == "Scheduling" })
	_ = unstructured.SetNestedField(object.Object, int64(1), "spec", "minMember")
	if object, err = groups.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	object.SetAnnotations(map[string]string{requiredAnnotation: "zone"})
	if _, err := groups.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// All goes through the handlers of deletions.
	for _, name := range []string{"a", "b"} {
		if err := w.pods.CoreV1().Pods("ns").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := groups.Delete(ctx, "g", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("the gang is not forgotten", func() bool {
		first.groups.mutex.RLock()
		defer first.groups.mutex.RUnlock()
		return len(first.groups.byName) == 0
	})
	w.await("pods are not moved when the spec and an annotation change, and when there are enough of them", func() bool { return len(moves) == 3 })
	if pod := podOf("x", "g").Obj(); known(cache.DeletedFinalStateUnknown{Obj: pod}) != interface{}(pod) {
		t.Error("a deletion that the watch missed is not known")
	}
}
