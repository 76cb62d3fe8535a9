// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// happens plans an event of a history.
func (w *world) happens(at time.Duration, of input.Event) {
	w.At(at, func() { w.Apply(&of) })
}

// once returns a pod of a history, which was really bound.
func once(name, cores, owner, on string, waited time.Duration) *input.Workload {
	of := web(name, cores, 1)
	of.Owner, of.Real = owner, &input.Real{Node: on, Waited: waited}
	of.Pod.Labels = map[string]string{"app": name}
	of.Pod.Spec.TerminationGracePeriodSeconds = pointer.Int64(10)
	return of
}

func seconds(n int) *time.Duration {
	d := time.Duration(n) * time.Second
	return &d
}

// replayHistory preempts a ReplicaSet's and a StatefulSet's pod, which the history deletes then.
func replayHistory(w *world) {
	w.history = true
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}}
	budget.Spec.Selector, budget.Status.DisruptionsAllowed = &metav1.LabelSelector{}, 4
	w.cluster.Objects = append(w.cluster.Objects, budget)
	w.start(1)
	job := once("job", "1", "Job/job", "node-0", 0)
	job.Duration = 30 * time.Second
	high := once("high", "4", "ReplicaSet/high", "node-0", 0)
	high.Pod.Spec.Priority = pointer.Int32(1000)
	for _, of := range []*input.Workload{job, once("web", "2", "ReplicaSet/web", "node-0", 0), once("db-0", "1", "StatefulSet/db", "node-0", 0)} {
		w.happens(0, input.Event{Pods: of})
	}
	w.happens(time.Minute, input.Event{Pods: high})
	w.happens(66*time.Second, input.Event{Delete: "default/db-0", Grace: seconds(4)})
	w.happens(67*time.Second, input.Event{Delete: "default/web", Grace: seconds(3)})
	w.happens(90*time.Second, input.Event{Delete: "default/high", Grace: seconds(2)})
	w.happens(2*time.Minute, input.Event{Pods: once("db-0", "1", "StatefulSet/db", "node-0", 0)})
	w.happens(2*time.Minute, input.Event{Delete: "default/none"})
	w.happens(3*time.Minute, input.Event{Pods: once("db-0", "1", "StatefulSet/db", "node-0", 0)})
	for _, at := range []struct {
		seconds int
		label   string
	}{{10, "all run"}, {40, "job has ended"}, {65, "preempted"}, {80, "deleted"}, {91, "in its grace period"}, {95, "after it"}, {190, "a name that is free again"}} {
		w.advance(*seconds(at.seconds))
		w.show(at.label)
	}
	w.happens(200*time.Second, input.Event{Delete: "default/db-0", Grace: seconds(0)})
	w.advance(210 * time.Second)
	now := w.store.of(budget).get("default/all").(*policyv1.PodDisruptionBudget)
	w.printf("%d disruptions allowed\n", now.Status.DisruptionsAllowed)
}

// historyOfNode removes a node on which two pods really were, and a third one is only here.
func historyOfNode(w *world) {
	w.history = true
	a := st.MakePod().Namespace("default").Name("a").UID("default/a").Node("node-0").Req(map[v1.ResourceName]string{"cpu": "1"}).Obj()
	a.Status.Phase, a.OwnerReferences = v1.PodRunning, input.OwnerReferences("ReplicaSet/a")
	w.cluster.Pods, w.cluster.Running = []*v1.Pod{a}, map[types.UID]*input.Workload{"default/a": once("a", "1", "ReplicaSet/a", "node-0", 0)}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}
	set.Spec.Template.Spec.Containers = []v1.Container{{Name: "c"}}
	w.cluster.Objects = append(w.cluster.Objects, set)
	w.start(1)
	c := once("c", "1", "ReplicaSet/c", "node-1", 0)
	c.Pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.happens(0, input.Event{Pods: once("b", "1", "ReplicaSet/b", "node-0", 0)})
	w.happens(0, input.Event{Pods: c})
	w.advance(time.Second)
	w.show("before")
	for i, cores := range []string{"4", "8"} {
		node := st.MakeNode().Name("node-1").Capacity(map[v1.ResourceName]string{"cpu": cores, "pods": "110"}).Obj()
		w.happens(*seconds(60 + i), input.Event{Node: "node-1", Change: input.AddNode, NodeObject: node})
	}
	w.happens(70*time.Second, input.Event{Pods: once("static", "1", "Node/node-0", "node-0", 0)})
	w.happens(2*time.Minute, input.Event{Node: "node-0", Change: input.RemoveNode})
	w.happens(3*time.Minute, input.Event{Delete: "default/c", Grace: seconds(1)})
	w.advance(90 * time.Second)
	w.show("a new node")
	w.printf("%.0f of %.0f in all, default spreading sees the owner: %v\n", w.nodes["node-1"].capacity[0], w.measure.sums[0].capacity,
		w.current("default/b").OwnerReferences[0].APIVersion == "apps/v1")
	w.advance(150 * time.Second)
	w.show("it is gone")
	w.advance(200 * time.Second)
	w.show("deleted")
	w.printf("%v\n", w.Notes())
}

// checkHistory checks a pod whose real node another one had been better than, before and after others of the history.
func checkHistory(w *world) {
	w.history, w.question = true, true
	w.start(2)
	first := once("first", "2", "Job/first", "node-0", time.Second)
	first.Duration = 159 * time.Second
	got := w.CheckHistory([]input.Event{
		{Pods: once("agent", "1", "DaemonSet/agent", "node-1", 0)},
		{Pods: once("second", "1", "ReplicaSet/second", "node-0", time.Minute)},
		{At: 10 * time.Second, Pods: once("waits", "9", "ReplicaSet/waits", "", time.Hour)},
		{At: 20 * time.Second, Pods: first},
		{At: 30 * time.Second, Pods: once("nowhere", "1", "Job/nowhere", "node-9", 0)},
		// It is gone in the second in which it was bound.
		{At: 100 * time.Second, Pods: once("brief", "1", "Job/brief", "node-0", 0)},
		{At: 100 * time.Second, Delete: "default/brief", Grace: seconds(0)},
		// It fits only on one node, and only when the others have ended, in the same second.
		{At: 2 * time.Minute, Pods: once("third", "4", "ReplicaSet/third", "node-0", time.Minute)},
		{At: 3 * time.Minute, Delete: "default/second", Grace: seconds(0)},
		{At: 4 * time.Minute, Delete: "default/third", Grace: seconds(0)},
		// Both are bound in one second, the one that was created later first.
		{At: 250 * time.Second, Pods: once("old", "1", "ReplicaSet/old", "node-1", 50*time.Second)},
		{At: 5 * time.Minute, Pods: once("new", "2", "ReplicaSet/new", "node-0", 0)},
	})
	w.printf("%d of %d the same, %d stays, %v\n%v\n", got.Same, got.Pods, got.Kept, got.Others, w.Notes())
}
