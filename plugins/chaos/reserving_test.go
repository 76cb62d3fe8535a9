// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func redirectArgs() config.ChaosArgs {
	return config.ChaosArgs{Namespaces: []string{"test"}, Seed: 7, RandomBindPercent: 100}
}

// redirectedPod is a pod that goes to another node than the first of the world's nodes, which is the best when all
// score 0.
func redirectedPod(t *testing.T, nodes []*v1.Node) (pod *v1.Pod, node string) {
	t.Helper()
	for number := 1; number < 100; number++ {
		k := keysOf(number)
		if drawn := k.drawNode(nodes); drawn != nodes[0].Name {
			return makePod(number), drawn
		}
	}
	t.Fatal("all pods go to the first node")
	return nil, ""
}

// bound returns the node of each binding that the API server was asked for.
func (w *world) bound() []string {
	var nodes []string
	for _, action := range w.client.Actions() {
		if action.GetSubresource() == "binding" {
			nodes = append(nodes, action.(clienttesting.CreateAction).GetObject().(*v1.Binding).Target.Name)
		}
	}
	return nodes
}

func TestRedirect(t *testing.T) {
	nodes := makeNodes(5)
	pod, node := redirectedPod(t, nodes)
	w := newWorld(t, redirectArgs(), nodes, pod)
	before := count(t, w.plugin.counters.redirected)
	r := w.cycle(t, pod)
	if got := count(t, w.plugin.counters.redirected) - before; got != 0 {
		t.Errorf("%d redirections are counted before the binding", got)
	}
	if got, want := w.nominated(node), []string{string(pod.UID) + "/chaos/1"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("nominated to %s: %v, want %v", node, got, want)
	}
	if status := w.RunBindPlugins(context.Background(), r.state, pod, r.best); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	w.RunPostBindPlugins(context.Background(), r.state, pod, r.best)
	if got := count(t, w.plugin.counters.redirected) - before; got != 1 {
		t.Errorf("%d redirections are counted, want 1", got)
	}
	if got, want := w.bound(), []string{node}; !reflect.DeepEqual(got, want) {
		t.Errorf("bound to %v, want %v", got, want)
	}
	want := []string{pod.Name + ": Normal Chaos Redirect: Bound to " + node +
		", drawn from the nodes that fit; the best was node-1 (randomBindPercent 100)"}
	if got := w.events.with(""); !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if len(w.nominated(node)) != 1 {
		t.Error("the place is not held until the scheduler knows of the pod")
	}

	// A snapshot with another pod on the node does not end it; one with the pod does, whatever pod the cycle is about.
	other := makePod(1000)
	settle := func(pods ...*v1.Pod) {
		w.plugin.reservations.settle(cache.NewSnapshot(pods, nodes).NodeInfos())
	}
	settle(withNode(other, node))
	settle(withNode(pod, nodes[0].Name))
	if len(w.nominated(node)) != 1 {
		t.Error("the place was given up for a snapshot without the pod")
	}
	settle(withNode(pod, node), withNode(other, node))
	if got := w.nominated(node); len(got) != 0 {
		t.Errorf("%v is still nominated after a snapshot with the pod", got)
	}
	waitForNoGoroutines(t)
	if w.clock.HasWaiters() {
		t.Error("a timer is left running")
	}
}

func withNode(pod *v1.Pod, node string) *v1.Pod {
	there := pod.DeepCopy()
	there.Spec.NodeName = node
	return there
}

func TestPlaceIsGivenUpInPreFilter(t *testing.T) {
	nodes := makeNodes(5)
	pod, node := redirectedPod(t, nodes)
	w := newWorld(t, redirectArgs(), nodes, pod)
	w.cycle(t, pod)
	// The snapshot that the framework reads is the one of newWorld; here it learns of the pod.
	info, err := w.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		t.Fatal(err)
	}
	other := st.MakePod().Namespace("other").Name("other").UID("other").Obj()
	w.RunPreFilterPlugins(context.Background(), framework.NewCycleState(), other)
	if len(w.nominated(node)) != 1 {
		t.Fatal("the place was given up too early")
	}
	info.AddPod(withNode(pod, node))
	w.RunPreFilterPlugins(context.Background(), framework.NewCycleState(), other)
	if got := w.nominated(node); len(got) != 0 {
		t.Errorf("%v is still nominated", got)
	}
	waitForNoGoroutines(t)
}

// TestStandIn: the place takes what the pod takes, and counts for all pods but for system-critical ones.
func TestStandIn(t *testing.T) {
	pod := st.MakePod().Namespace("test").Name("pod").UID("uid").Label("app", "web").HostPort(80).Priority(-5).
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "1"}).Node("node-1").Obj()
	got := standIn(pod, 3, "node-2")
	want := pod.DeepCopy()
	want.UID, want.Spec.NodeName, want.Status.NominatedNodeName = "uid/chaos/3", "", "node-2"
	priority := int32(1999999999)
	want.Spec.Priority = &priority
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if *pod.Spec.Priority != -5 || pod.UID != "uid" {
		t.Error("the pod itself was changed")
	}
}

func TestPlaceCountsInFilters(t *testing.T) {
	nodes := makeNodes(5)
	pod, node := redirectedPod(t, nodes)
	w := newWorld(t, redirectArgs(), nodes, pod)
	w.cycle(t, pod)
	seen := func(priority int32) int {
		nodeInfo := framework.NewNodeInfo()
		for _, candidate := range nodes {
			if candidate.Name == node {
				nodeInfo.SetNode(candidate)
			}
		}
		other := st.MakePod().Namespace("other").Name("other").UID("other").Priority(priority).Obj()
		counter := &podCounter{}
		counting := newCountingFramework(t, counter, w)
		counting.RunFilterPluginsWithNominatedPods(context.Background(), framework.NewCycleState(), other, nodeInfo)
		return counter.most
	}
	if got := seen(0); got != 1 {
		t.Errorf("another pod's filters see %d pods on the node, want 1", got)
	}
	if got := seen(1000000000); got != 1 {
		t.Errorf("the filters of a pod with the highest priority that users can give see %d pods, want 1", got)
	}
	if got := seen(2000000000); got != 0 {
		t.Errorf("a system-critical pod's filters see %d pods, want 0", got)
	}
	w.plugin.reservations.giveUp(w.plugin.reservations.list()[0])
	if got := seen(0); got != 0 {
		t.Errorf("after the place was given up the filters see %d pods, want 0", got)
	}
	waitForNoGoroutines(t)
}

func TestPlaceIsGivenUpWithTheAttempt(t *testing.T) {
	nodes := makeNodes(5)
	pod, node := redirectedPod(t, nodes)
	tests := []struct {
		name string
		end  func(t *testing.T, w *world, r *result)
	}{
		{name: "a later plugin rejects the pod, or it is deleted", end: func(t *testing.T, w *world, r *result) {
			w.RunReservePluginsUnreserve(context.Background(), r.state, pod, r.best)
		}},
		{name: "the API server refuses the binding", end: func(t *testing.T, w *world, r *result) {
			w.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
				return true, nil, context.DeadlineExceeded
			})
			status := w.RunBindPlugins(context.Background(), r.state, pod, r.best)
			if status.Code() != framework.Error || !strings.Contains(status.Message(), "deadline") {
				t.Errorf("Bind = %v, want the API server's error", status)
			}
			w.RunReservePluginsUnreserve(context.Background(), r.state, pod, r.best)
		}},
		{name: "another plugin binds it first", end: func(t *testing.T, w *world, r *result) {
			w.RunPostBindPlugins(context.Background(), r.state, pod, r.best)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, redirectArgs(), nodes, pod)
			r := w.cycle(t, pod)
			if len(w.nominated(node)) != 1 {
				t.Fatalf("no place is held on %s", node)
			}
			tt.end(t, w, r)
			if got := w.nominated(node); len(got) != 0 {
				t.Errorf("%v is still nominated to %s", got, node)
			}
			if events := w.events.with(""); len(events) != 0 {
				t.Errorf("events %q of what did not happen", events)
			}
			waitForNoGoroutines(t)
			if w.clock.HasWaiters() {
				t.Error("a timer is left running")
			}
		})
	}
}

// TestPlaceIsGivenUpWithoutCycles: no cycle of the profile follows, so it is the informer's cache that ends it.
func TestPlaceIsGivenUpWithoutCycles(t *testing.T) {
	nodes := makeNodes(5)
	pod, node := redirectedPod(t, nodes)
	tests := []struct {
		name   string
		change func(tracker clienttesting.ObjectTracker) error
	}{
		{name: "the pod is bound", change: func(tracker clienttesting.ObjectTracker) error {
			return tracker.Update(podsResource, withNode(pod, node), "test")
		}},
		{name: "the pod is gone", change: func(tracker clienttesting.ObjectTracker) error {
			return tracker.Delete(podsResource, "test", pod.Name)
		}},
		{name: "another pod has its name", change: func(tracker clienttesting.ObjectTracker) error {
			other := pod.DeepCopy()
			other.UID = "other"
			return tracker.Update(podsResource, other, "test")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, redirectArgs(), nodes, pod)
			w.cycle(t, pod)
			place := w.plugin.reservations.list()[0]
			step := func() {
				w.clock.Step(lookInterval)
				waitFor(t, "the next look", w.clock.HasWaiters)
			}
			for i := 0; i < 3*looks; i++ {
				step()
			}
			if len(w.nominated(node)) != 1 {
				t.Fatal("the place was given up while the pod was waiting for its binding")
			}
			if err := tt.change(w.client.Tracker()); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the informer knows", func() bool { return w.plugin.reservations.boundOrGone(place) })
			step()
			if len(w.nominated(node)) != 1 {
				t.Error("the place was given up at the first look")
			}
			waitFor(t, "the place is given up", func() bool {
				w.clock.Step(lookInterval)
				return len(w.nominated(node)) == 0
			})
			waitForNoGoroutines(t)
			if w.clock.HasWaiters() {
				t.Error("a timer is left running")
			}
		})
	}
}

var podsResource = v1.SchemeGroupVersion.WithResource("pods")

func TestNotRedirected(t *testing.T) {
	nodes := makeNodes(5)
	_, drawn := redirectedPod(t, nodes)
	claim := v1.Volume{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
	ephemeral := v1.Volume{VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}
	empty := v1.Volume{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
	tests := []struct {
		name    string
		volumes []v1.Volume
		nodes   []*v1.Node
		percent int32
		want    bool
	}{
		{name: "volumes that come with the node", volumes: []v1.Volume{empty}, nodes: nodes, percent: 100, want: true},
		{name: "a claim", volumes: []v1.Volume{empty, claim}, nodes: nodes, percent: 100},
		{name: "an ephemeral claim", volumes: []v1.Volume{ephemeral}, nodes: nodes, percent: 100},
		{name: "a single node", nodes: nodes[:1], percent: 100},
		{name: "a chance of 0", nodes: nodes, percent: 0},
		{name: "the drawn node is the best", nodes: []*v1.Node{nodeNamed(nodes, drawn), nodes[0]}, percent: 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod, _ := redirectedPod(t, nodes)
			pod.Spec.Volumes = tt.volumes
			args := redirectArgs()
			args.RandomBindPercent = tt.percent
			w := newWorld(t, args, tt.nodes, pod)
			r := w.cycle(t, pod)
			if status := w.RunBindPlugins(context.Background(), r.state, pod, r.best); !status.IsSuccess() {
				t.Fatal(status.AsError())
			}
			w.RunPostBindPlugins(context.Background(), r.state, pod, r.best)
			if got := w.bound(); len(got) != 1 || (got[0] != r.best) != tt.want {
				t.Errorf("bound to %v, the best is %s; want another: %v", got, r.best, tt.want)
			}
			if got := len(w.events.with("")) == 1; got != tt.want {
				t.Errorf("events %q", w.events.with(""))
			}
			w.RunReservePluginsUnreserve(context.Background(), r.state, pod, r.best)
			waitForNoGoroutines(t)
		})
	}
}

func nodeNamed(nodes []*v1.Node, name string) *v1.Node {
	for _, node := range nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// TestBinderInTheWrongPlace: DefaultBinder comes first, so the pod goes to the best node; no place stays behind.
func TestBinderInTheWrongPlace(t *testing.T) {
	nodes := makeNodes(5)
	pod, node := redirectedPod(t, nodes)
	w := newWorldWith(t, redirectArgs(), nodes, []*v1.Pod{pod}, []string{defaultbinder.Name, Name}, nil)
	r := w.cycle(t, pod)
	if status := w.RunBindPlugins(context.Background(), r.state, pod, r.best); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	w.RunPostBindPlugins(context.Background(), r.state, pod, r.best)
	if got := w.bound(); !reflect.DeepEqual(got, []string{r.best}) {
		t.Errorf("bound to %v, want %s", got, r.best)
	}
	if got := w.nominated(node); len(got) != 0 {
		t.Errorf("%v is still nominated", got)
	}
	waitForNoGoroutines(t)
}
