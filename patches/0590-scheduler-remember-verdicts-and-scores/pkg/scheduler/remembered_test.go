// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// comparer is a Framework that compares what is remembered.
type comparer interface {
	CompareCache(nodes map[string]*framework.NodeInfo) []string
}

// attempts are those of a scheduler with the default profile.
type attempts struct {
	*genericScheduler
	fwk framework.Framework
}

// newAttempts returns a scheduler that remembers nothing yet, whose profile may have other plugins.
func newAttempts(t *testing.T, cache internalcache.Cache, change func(*config.Plugins), more []framework.Plugin, options ...frameworkruntime.Option) *attempts {
	t.Helper()
	configuration, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	registry, snapshot := plugins.NewInTreeRegistry(), internalcache.NewEmptySnapshot()
	for _, pl := range more {
		pl := pl
		registry[pl.Name()] = func(runtime.Object, framework.Handle) (framework.Plugin, error) { return pl, nil }
	}
	if change != nil {
		change(configuration.Profiles[0].Plugins)
	}
	options = append([]frameworkruntime.Option{frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithParallelism(1),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)),
		frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(nil))}, options...)
	fwk, err := frameworkruntime.NewFramework(registry, &configuration.Profiles[0], options...)
	if err != nil {
		t.Fatal(err)
	}
	return &attempts{NewGenericScheduler(cache, snapshot, 0).(*genericScheduler), fwk}
}

// attempt is what an attempt left behind.
type attempt struct {
	host, text, victims string
	plugins             []string
	statuses            map[string]string
	next                int
}

func (a *attempts) try(t *testing.T, pod *v1.Pod, sampled bool, seed int64) (attempt, *framework.Search) {
	rand.Seed(seed)
	state := framework.NewCycleState()
	state.SetRecordPluginMetrics(sampled)
	result, err := a.Schedule(context.Background(), nil, a.fwk, state, pod)
	made := attempt{host: result.SuggestedHost, next: a.nextStartNodeIndex, statuses: map[string]string{}}
	fit, failed := err.(*framework.FitError)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if failed {
		made.text, made.plugins = fit.Error(), fit.Diagnosis.UnschedulablePlugins.List()
		statuses := fit.Diagnosis.NodeToStatusMap
		if statuses == nil {
			statuses = state.Search().NodeStatuses()
		}
		for node, status := range statuses {
			made.statuses[node] = fmt.Sprint(status.Code(), status.FailedPlugin(), status.Reasons())
		}
		result, status := a.fwk.RunPostFilterPlugins(context.Background(), state, pod, fit.Diagnosis.NodeToStatusMap)
		made.victims = fmt.Sprint(status.Code(), status.Reasons())
		if result != nil {
			made.victims += result.NominatedNodeName
		}
	}
	return made, state.Search()
}

// TestRecall changes a cluster at random. It compares the attempts of a scheduler with those of one that remembers
// nothing.
func TestRecall(t *testing.T) {
	recalled, without := 0, 0
	for seed := int64(1); seed <= 30; seed++ {
		// From 129 nodes on, no search makes a map.
		r, without0 := testRecall(t, seed, []int{1, 12, 130}[seed%3])
		recalled, without = recalled+r, without+without0
	}
	if recalled < 200 || without < 50 {
		t.Errorf("%d attempts were recalled, and %d found no victims without a look: too few", recalled, without)
	}
}

func testRecall(t *testing.T, seed int64, nodes int) (recalled, withoutLook int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	random := rand.New(rand.NewSource(seed))
	one := func(n int) bool { return random.Intn(n) == 0 }
	var pending []*v1.Pod
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := factory.Core().V1().Namespaces().Informer().GetStore().Add(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 8; i++ {
		pod := st.MakePod().Namespace("default").Name(fmt.Sprint("pending-", i)).UID(fmt.Sprint(i)).Priority(int32(random.Intn(3))).
			Req(map[v1.ResourceName]string{"cpu": []string{"2", "4", "9"}[random.Intn(3)]})
		if one(3) {
			pod = pod.NodeAffinityIn("zone", []string{"a"})
		}
		if one(3) {
			pod = pod.Toleration("x")
		}
		if one(3) {
			pod = pod.HostPort(80)
		}
		if one(6) {
			pod = pod.NodeSelector(map[string]string{"zone": "a"})
		}
		if one(8) {
			pod = pod.PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq)
		}
		if err := factory.Core().V1().Pods().Informer().GetStore().Add(pod.Obj()); err != nil {
			t.Fatal(err)
		}
		pending = append(pending, pod.Obj())
	}
	cache, nominator := internalcache.New(time.Hour, ctx.Done()), internalqueue.NewPodNominator(nil)
	another := func() *attempts {
		return newAttempts(t, cache, nil, nil, frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
			frameworkruntime.WithPodNominator(nominator), frameworkruntime.WithEventRecorder(&events.FakeRecorder{}))
	}
	node := func(i int) *v1.Node {
		node := st.MakeNode().Name(fmt.Sprint("node-", i)).Label("zone", []string{"a", "b"}[random.Intn(2)]).
			Capacity(map[v1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": []string{"1", "10"}[random.Intn(2)]}).Obj()
		if one(4) {
			node.Spec.Taints = []v1.Taint{{Key: "x", Effect: v1.TaintEffectNoSchedule}}
		}
		node.Spec.Unschedulable = one(8)
		return node
	}
	var known []*v1.Node
	var placed []*v1.Pod
	for i := 0; i < nodes; i++ {
		known = append(known, node(i))
		cache.AddNode(known[i])
		// Otherwise the choice of victims is one of a map's order.
		pod := st.MakePod().Namespace("default").StartTime(metav1.Unix(int64(i), 0)).Name(fmt.Sprint("on-", i)).UID(fmt.Sprint("on-", i)).Node(known[i].Name).Label("app", "a").Priority(int32(random.Intn(3))).
			Req(map[v1.ResourceName]string{"cpu": "3"}).Obj()
		if one(2) {
			pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, Protocol: v1.ProtocolTCP}}
		}
		if err := cache.AddPod(pod); err != nil {
			t.Fatal(err)
		}
		placed = append(placed, pod)
	}
	remembering := another()
	next := 0
	for step := 0; step < 60; step++ {
		i := random.Intn(nodes)
		switch random.Intn(12) {
		case 0:
			old := known[i]
			known[i] = node(i)
			cache.UpdateNode(old, known[i])
		case 1:
			if err := cache.RemovePod(placed[i]); err != nil {
				t.Fatal(err)
			}
			placed[i] = placed[i].DeepCopy()
			placed[i].Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse([]string{"1", "4"}[random.Intn(2)])
			*placed[i].Spec.Priority = int32(random.Intn(3))
			if err := cache.AddPod(placed[i]); err != nil {
				t.Fatal(err)
			}
		case 2:
			other := st.MakePod().Name("nominated").UID(fmt.Sprint("nominated-", random.Intn(2))).Priority(int32(random.Intn(3))).
				Req(map[v1.ResourceName]string{"cpu": "1", "memory": "9Gi"}).Obj()
			nominator.AddNominatedPod(framework.NewPodInfo(other), &framework.NominatingInfo{NominatingMode: framework.ModeOverride, NominatedNodeName: known[i].Name})
		case 3:
			nominator.DeleteNominatedPodIfExists(&v1.Pod{ObjectMeta: st.MakePod().UID(fmt.Sprint("nominated-", random.Intn(2))).Obj().ObjectMeta})
		case 4:
			if !one(4) {
				break
			}
			if err := cache.RemoveNode(known[i]); err != nil {
				t.Fatal(err)
			}
			known[i] = node(i)
			cache.AddNode(known[i])
		}
		pod, sampled := pending[random.Intn(len(pending))], one(5)
		forgetful := another()
		forgetful.nextStartNodeIndex = next
		want, _ := forgetful.try(t, pod, sampled, int64(step))
		got, search := remembering.try(t, pod, sampled, int64(step))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, step %d, %s: got\n%+v, want\n%+v", seed, step, pod.Name, got, want)
		}
		next = want.next
		if search != nil && search.Evaluated != nil {
			recalled++
			if search.LacksVictims(pod, func(*framework.NodeInfo) bool { return false }) {
				withoutLook++
			}
		}
		if differs := remembering.fwk.(comparer).CompareCache(cache.Dump().Nodes); len(differs) > 0 {
			t.Fatalf("seed %d, step %d: %q", seed, step, differs)
		}
	}
	return recalled, withoutLook
}

// TestCompareRemembered checks that a rejection which no longer holds, for the same Generation, is found.
func TestCompareRemembered(t *testing.T) {
	cache := internalcache.New(time.Hour, nil)
	a, state := newAttempts(t, cache, nil, nil), framework.NewCycleState()
	cache.AddNode(st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{"cpu": "1", "pods": "10"}).Obj())
	pod := st.MakePod().Name("p").UID("p").Req(map[v1.ResourceName]string{"cpu": "2"}).Obj()
	// The second attempt on a list of nodes is remembered.
	_, _ = a.Schedule(context.Background(), nil, a.fwk, framework.NewCycleState(), pod)
	if _, err := a.Schedule(context.Background(), nil, a.fwk, state, pod); err == nil {
		t.Fatal("the pod fits")
	}
	state.Search().FoundNoVictims(pod)
	nodes := cache.Dump().Nodes
	if differs := a.fwk.(comparer).CompareCache(nodes); len(differs) != 0 {
		t.Errorf("got %q", differs)
	}
	nodes["node"].Pods = append(nodes["node"].Pods, framework.NewPodInfo(st.MakePod().Priority(-1).Obj()))
	if differs := a.fwk.(comparer).CompareCache(nodes); len(differs) != 1 {
		t.Errorf("got %q, want one difference", differs)
	}
	nodes["node"].Pods, nodes["node"].Allocatable.MilliCPU = nil, 2000
	if differs := a.fwk.(comparer).CompareCache(nodes); len(differs) != 1 {
		t.Errorf("got %q, want one difference", differs)
	}
}
