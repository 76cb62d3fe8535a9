// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// freeing is a scheduler whose informers do not run.
type freeing struct {
	*Scheduler
	pods           cache.Store
	bound, victims chan string
}

func newFreeing(t *testing.T, ctx context.Context, enabled, otherPostFilter bool) *freeing {
	f := &freeing{bound: make(chan string, 1), victims: make(chan string, 1000)}
	client := clientsetfake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		if create, ok := action.(clienttesting.CreateAction); ok && action.GetSubresource() == "binding" {
			f.bound <- create.GetObject().(*v1.Binding).Target.Name
		}
		if del, ok := action.(clienttesting.DeleteAction); ok {
			f.victims <- del.GetName()
		}
		return true, nil, nil
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	f.pods = factory.Core().V1().Pods().Informer().GetStore()
	if err := factory.Core().V1().Namespaces().Informer().GetStore().Add(&v1.Namespace{}); err != nil {
		t.Fatal(err)
	}
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	if otherPostFilter {
		plugins := config.Profiles[0].Plugins
		plugins.PostFilter.Enabled = append(plugins.PostFilter.Enabled, schedulerapi.Plugin{Name: "Other"})
	}
	registry := frameworkruntime.Registry{"Other": func(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return other{}, nil }}
	f.Scheduler, err = New(client, factory, nil, profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})),
		ctx.Done(), WithProfiles(config.Profiles...), WithFrameworkOutOfTreeRegistry(registry), WithPodInitialBackoffSeconds(0),
		WithRequeueByFreedNode(enabled))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

type other struct{ framework.PostFilterPlugin }

func (other) Name() string { return "Other" }
func (other) PostFilter(context.Context, *framework.CycleState, *v1.Pod, framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	return nil, framework.NewStatus(framework.Unschedulable)
}

func (f *freeing) wait(t *testing.T, pod *v1.Pod) {
	if err := f.pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	if err := f.SchedulingQueue.Add(pod); err != nil {
		t.Fatal(err)
	}
}

// tryAll tries all pods of the active queue, and returns them with their nodes, which are empty for pods that wait.
func (f *freeing) tryAll(t *testing.T, ctx context.Context) map[string]string {
	last := st.MakePod().Name("last").UID("last").Priority(-1000).Obj()
	if err := f.SchedulingQueue.Add(last); err != nil {
		t.Fatal(err)
	}
	tried := map[string]string{}
	for {
		next, err := f.SchedulingQueue.Pop()
		if err != nil {
			t.Fatal(err)
		}
		if next.Pod.Name == last.Name {
			return tried
		}
		f.NextPod = func() *framework.QueuedPodInfo { return next }
		f.scheduleOne(ctx)
		tried[next.Pod.Name] = ""
		if assumed, _ := f.SchedulerCache.IsAssumedPod(next.Pod); assumed {
			pod := next.Pod.DeepCopy()
			pod.Spec.NodeName = <-f.bound
			f.addPodToCache(pod)
			tried[pod.Name] = pod.Spec.NodeName
		}
	}
}

// claims returns how often each claim is in use.
func (f *freeing) claims() map[string]int {
	claims := map[string]int{}
	for _, node := range f.SchedulerCache.Dump().Nodes {
		for claim, n := range node.PVCRefCounts {
			claims[claim] += n
		}
	}
	return claims
}

func TestRequeueByFreedNode(t *testing.T) {
	pod := func(name, cpu string) *st.PodWrapper {
		return st.MakePod().SchedulerName("default-scheduler").Namespace("default").Name(name).UID(name).Priority(10).Req(map[v1.ResourceName]string{"cpu": cpu})
	}
	on := func(node, name, cpu string) *st.PodWrapper { return pod(name, cpu).Node(node) }
	for _, tt := range []struct {
		name               string
		waiting            *st.PodWrapper
		running            []*st.PodWrapper // the first one ends
		assumed, nominated *st.PodWrapper
		off, otherPlugin   bool
		want               bool
	}{
		{name: "the node is too small", waiting: pod("w", "4"), running: []*st.PodWrapper{on("small", "a", "2"), on("large", "b", "4")}},
		{name: "off", off: true, waiting: pod("w", "4"), running: []*st.PodWrapper{on("small", "a", "2"), on("large", "b", "4")}, want: true},
		{name: "the node is empty", waiting: pod("w", "4"), running: []*st.PodWrapper{on("large", "b", "4"), on("small", "a", "2")}, want: true},
		{name: "another pod stays", waiting: pod("w", "4"), running: []*st.PodWrapper{on("large", "a", "2"), on("large", "b", "2")}},
		{name: "a pod that can be preempted stays", waiting: pod("w", "4"),
			running: []*st.PodWrapper{on("large", "a", "2"), on("large", "b", "2").Priority(0)}, want: true},
		{name: "the node has another label", waiting: pod("w", "2").NodeSelector(map[string]string{"disk": "fast"}),
			running: []*st.PodWrapper{on("small", "a", "2"), on("large", "b", "4")}},
		{name: "the port stays in use", waiting: pod("w", "1").HostPort(80),
			running: []*st.PodWrapper{on("small", "a", "1"), on("small", "b", "1").HostPort(80), on("large", "c", "1").HostPort(80)}},
		{name: "the port is free", waiting: pod("w", "1").HostPort(80),
			running: []*st.PodWrapper{on("small", "b", "1").HostPort(80), on("large", "c", "1").HostPort(80)}, want: true},
		// InterPodAffinity comes after NodeResourcesFit, which alone is named as the rejecting plugin.
		{name: "the ended pod excludes the pod from the zone", waiting: pod("w", "4").Label("app", ""), want: true, running: []*st.PodWrapper{
			on("small", "a", "2").PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq), on("large", "b", "4").Priority(0)}},
		{name: "a nominated pod is in the way", waiting: pod("w", "4"), nominated: pod("n", "4").NominatedNodeName("large"),
			running: []*st.PodWrapper{on("small", "a", "2")}, want: true},
		{name: "victims are found", waiting: pod("w", "4"), running: []*st.PodWrapper{on("small", "a", "2"), on("large", "b", "4").Priority(0)}, want: true},
		{name: "the pod never preempts", waiting: pod("w", "4").PreemptionPolicy(v1.PreemptNever),
			running: []*st.PodWrapper{on("small", "a", "2"), on("large", "b", "4").Priority(0)}},
		{name: "another plugin may have victims", otherPlugin: true, waiting: pod("w", "4"),
			running: []*st.PodWrapper{on("small", "a", "2"), on("large", "b", "4")}, want: true},
		{name: "the binding of the pod that took the room may fail", waiting: pod("w", "4"), assumed: on("large", "c", "4"),
			running: []*st.PodWrapper{on("large", "a", "4")}, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			f := newFreeing(t, ctx, !tt.off, tt.otherPlugin)
			f.SchedulerCache.AddNode(st.MakeNode().Name("small").Label("zone", "a").Capacity(map[v1.ResourceName]string{"cpu": "2"}).Obj())
			f.SchedulerCache.AddNode(st.MakeNode().Name("large").Label("zone", "a").Label("disk", "fast").Capacity(map[v1.ResourceName]string{"cpu": "4"}).Obj())
			for _, pod := range append(tt.running, tt.assumed) {
				if pod != nil {
					pod.PVC(pod.Obj().Name)
				}
			}
			for _, pod := range tt.running {
				f.addPodToCache(pod.Obj())
			}
			if tt.nominated != nil {
				if err := f.pods.Add(tt.nominated.Obj()); err != nil {
					t.Fatal(err)
				}
				f.SchedulingQueue.AddNominatedPod(framework.NewPodInfo(tt.nominated.Obj()), nil)
			}
			f.wait(t, tt.waiting.Obj())
			if tried := f.tryAll(t, ctx); tried["w"] != "" {
				t.Fatalf("placed: %v", tried)
			}
			if tt.assumed != nil {
				if err := f.SchedulerCache.AssumePod(tt.assumed.Obj()); err != nil {
					t.Fatal(err)
				}
			}
			claims := f.claims()
			delete(claims, "default/"+tt.running[0].Obj().Name)
			f.deletePodFromCache(tt.running[0].Obj())
			if now := f.claims(); !reflect.DeepEqual(now, claims) {
				t.Errorf("claims in use: %v, want %v", now, claims)
			}
			if _, requeued := f.tryAll(t, ctx)["w"]; requeued != tt.want {
				t.Errorf("requeued: %v, want %v", requeued, tt.want)
			}
		})
	}
}

// TestNoPodIsLeftWaiting ends pods at random. No pod that is not requeued could be placed, or could preempt others.
func TestNoPodIsLeftWaiting(t *testing.T) {
	left, requeued := 0, 0
	for seed := int64(1); seed <= 40; seed++ {
		random := rand.New(rand.NewSource(seed))
		one := func(n int) bool { return random.Intn(n) == 0 }
		ctx, cancel := context.WithCancel(context.Background())
		f := newFreeing(t, ctx, true, false)
		for i := 0; i < 5; i++ {
			f.SchedulerCache.AddNode(st.MakeNode().Name(fmt.Sprint("node-", i)).Label("zone", fmt.Sprint(i%2)).
				Capacity(map[v1.ResourceName]string{"cpu": []string{"4", "8"}[i%2]}).Obj())
		}
		running, waiting := map[string]*v1.Pod{}, map[string]*v1.Pod{}
		for i := 0; i < 120; i++ {
			pod := st.MakePod().SchedulerName("default-scheduler").Namespace("default").Name(fmt.Sprint("pod-", i)).UID(fmt.Sprint(i)).Priority(int32(random.Intn(3))).
				Label("app", fmt.Sprint(random.Intn(3))).Req(map[v1.ResourceName]string{"cpu": []string{"1", "2", "4", "6"}[random.Intn(4)]})
			if one(5) {
				pod = pod.HostPort(80)
			}
			if one(5) {
				pod = pod.NodeSelector(map[string]string{"zone": "1"})
			}
			if one(6) {
				pod = pod.PreemptionPolicy(v1.PreemptNever)
			}
			if seed%2 == 0 && one(20) {
				pod = pod.PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq)
			}
			waiting[pod.Obj().Name] = pod.Obj()
			f.wait(t, pod.Obj())
			if ends := fmt.Sprint("pod-", random.Intn(i+1)); running[ends] != nil {
				f.victims <- ends
			}
			for more, ended := true, false; more; {
				tried := f.tryAll(t, ctx)
				for name, node := range tried {
					if node != "" {
						running[name] = waiting[name].DeepCopy()
						running[name].Spec.NodeName = node
						delete(waiting, name)
					}
				}
				requeued += len(tried)
				for name, pod := range waiting {
					// Other events requeue only some pods, as upstream's.
					if _, was := tried[name]; !was && ended {
						left++
						f.cannotBePlaced(t, ctx, seed, pod)
					}
				}
				ended = false
				select {
				case name := <-f.victims:
					if running[name] != nil {
						f.deletePodFromCache(running[name])
						delete(running, name)
						ended = true
					}
				default:
					more = false
				}
			}
		}
		cancel()
	}
	if left < 1000 || requeued < 1000 {
		t.Errorf("%d pods were left waiting, and %d requeued: too few", left, requeued)
	}
}

func (f *freeing) cannotBePlaced(t *testing.T, ctx context.Context, seed int64, pod *v1.Pod) {
	fwk, state := f.Profiles[pod.Spec.SchedulerName], framework.NewCycleState()
	result, err := f.Algorithm.Schedule(ctx, nil, fwk, state, pod)
	fit, failed := err.(*framework.FitError)
	if !failed {
		t.Fatalf("seed %d: %s waits, and %s may take it (%v)", seed, pod.Name, result.SuggestedHost, err)
	}
	if _, status := fwk.RunPostFilterPlugins(ctx, state, pod, fit.Diagnosis.NodeToStatusMap); status.IsSuccess() {
		t.Fatalf("seed %d: %s waits, and may preempt %s", seed, pod.Name, <-f.victims)
	}
}
