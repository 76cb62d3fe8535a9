// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// requeueing is a scheduler without the goroutines that move pods by the clock.
type requeueing struct {
	*Scheduler
	*testing.T
	queue     *internalqueue.PriorityQueue
	informers informers.SharedInformerFactory
	extender  httpExtender
	permit    *permitter
}

// permitter makes pods wait at Permit.
type permitter struct {
	status *framework.Status
	move   func(framework.ClusterEvent)
}

func (p *permitter) Name() string                                      { return "Permitter" }
func (p *permitter) MoveAfterCaches(move func(framework.ClusterEvent)) { p.move = move }
func (p *permitter) Permit(context.Context, *framework.CycleState, *v1.Pod, string) (*framework.Status, time.Duration) {
	return p.status, time.Hour
}

// httpExtender answers requests of extenders.
type httpExtender struct {
	filter  *extenderv1.ExtenderFilterResult
	preempt *extenderv1.ExtenderPreemptionResult
}

func (e *httpExtender) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/preempt" {
		json.NewEncoder(w).Encode(e.preempt)
		return
	}
	json.NewEncoder(w).Encode(e.filter)
}

func newRequeueing(t *testing.T, later, extender, preempts bool) *requeueing {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &requeueing{T: t, permit: &permitter{}}
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	s.informers = informers.NewSharedInformerFactory(client, 0)
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	config.Profiles[0].Plugins.Permit.Enabled = []schedulerapi.Plugin{{Name: "Permitter"}}
	options := []Option{WithProfiles(config.Profiles...), WithPodInitialBackoffSeconds(0), WithSwitches(framework.Switches{LaterRequeueing: later}),
		WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			"Permitter": func(runtime.Object, framework.Handle) (framework.Plugin, error) { return s.permit, nil },
		})}
	if extender {
		server := httptest.NewServer(&s.extender)
		t.Cleanup(server.Close)
		config := schedulerapi.Extender{URLPrefix: server.URL, FilterVerb: "filter", NodeCacheCapable: true}
		if preempts {
			config.PreemptVerb = "preempt"
		}
		options = append(options, WithExtenders(config))
	}
	s.Scheduler, err = New(client, s.informers, nil, func(string) events.EventRecorder { return &events.FakeRecorder{} }, ctx.Done(), options...)
	if err != nil {
		t.Fatal(err)
	}
	s.queue = s.SchedulingQueue.(*internalqueue.PriorityQueue)
	t.Cleanup(s.queue.Close)
	return s
}

func (s *requeueing) nodes(nodes ...*v1.Node) {
	for _, node := range nodes {
		s.addNodeToCache(node)
	}
}

func (s *requeueing) bound(pods ...*v1.Pod) {
	for _, pod := range pods {
		s.addPodToCache(pod)
	}
}

func (s *requeueing) store(pod *v1.Pod) {
	if err := s.informers.Core().V1().Pods().Informer().GetStore().Add(pod); err != nil {
		s.Fatal(err)
	}
}

// try makes an attempt for a new pod.
func (s *requeueing) try(pod *v1.Pod) {
	s.store(pod)
	s.addPodToSchedulingQueue(pod)
	s.scheduleOne(context.Background())
}

// where returns the part of the queue that has a pod.
func (s *requeueing) where(uid types.UID) (found records.Where) {
	s.queue.Visit(func(where records.Where, info *framework.QueuedPodInfo, _ time.Time) {
		if info.Pod.UID == uid {
			found = where
		}
	})
	return found
}

func testNode(name, zone string) *st.NodeWrapper {
	return st.MakeNode().Name(name).Label("zone", zone).Label("host", name).Capacity(map[v1.ResourceName]string{"cpu": "4", "pods": "10"})
}

func testPod(name string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName(v1.DefaultSchedulerName)
}

func cpu(n string) map[v1.ResourceName]string { return map[v1.ResourceName]string{"cpu": n} }

// TestLaterRequeueing has events after which a waiting pod fits on node a. With --later-requeueing it is retried, and the
// attempt finds the node.
func TestLaterRequeueing(t *testing.T) {
	app := func(name, node string) *v1.Pod { return testPod(name).Label("app", "").Node(node).Obj() }
	spreads := testPod("waiting").Label("app", "").Req(cpu("1")).SpreadConstraint(1, "zone", v1.DoNotSchedule, st.MakeLabelSelector().Exists("app").Obj()).Obj()
	repels := testPod("waiting").PodAntiAffinityExists("app", "host", st.PodAntiAffinityWithRequiredReq).Obj()
	repelsZone := testPod("waiting").PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq).Obj()
	small := testPod("waiting").Req(cpu("1")).Obj()
	// A zone that has no room has too few pods.
	uneven := func(s *requeueing) {
		s.nodes(testNode("a", "a").Obj(), testNode("b", "b").Obj())
		s.bound(app("1", "a"), testPod("2").Req(cpu("4")).Node("b").Obj())
	}
	repelled := func(s *requeueing) {
		s.nodes(testNode("a", "a").Obj())
		s.bound(app("1", "a"))
	}
	answers := func(answer extenderv1.ExtenderFilterResult) func(s *requeueing) {
		return func(s *requeueing) { s.extender.filter = &answer }
	}
	accepts := answers(extenderv1.ExtenderFilterResult{NodeNames: &[]string{"a"}})
	nominated := testPod("nominated").Priority(10).Req(cpu("4")).NominatedNodeName("a").Obj()
	nominate := func(s *requeueing) {
		s.nodes(testNode("a", "a").Obj())
		s.store(nominated)
		s.queue.AddNominatedPod(framework.NewPodInfo(nominated), nil)
	}
	for name, tt := range map[string]struct {
		before func(s *requeueing)
		pod    *v1.Pod
		event  func(s *requeueing)
	}{
		"a node is deleted": {uneven, spreads, func(s *requeueing) { s.deleteNodeFromCache(testNode("b", "b").Obj()) }},
		"the node of a pod that repels is deleted": {func(s *requeueing) {
			s.nodes(testNode("a", "a").Obj(), testNode("b", "a").Obj())
			s.bound(app("1", "b"))
		}, repelsZone, func(s *requeueing) { s.deleteNodeFromCache(testNode("b", "a").Obj()) }},
		"a node has other labels and resources": {func(s *requeueing) { s.nodes(st.MakeNode().Name("a").Capacity(cpu("1")).Obj()) }, spreads, func(s *requeueing) {
			s.updateNodeInCache(st.MakeNode().Name("a").Capacity(cpu("1")).Obj(), testNode("a", "a").Obj())
		}},
		"a new node loses its taint": {func(s *requeueing) {
			s.nodes(testNode("b", "b").Obj())
			s.bound(app("1", "b"))
		}, repels, func(s *requeueing) {
			tainted := testNode("a", "a").Taints([]v1.Taint{{Key: "new", Effect: v1.TaintEffectNoSchedule}}).Obj()
			s.nodes(tainted)
			s.updateNodeInCache(tainted, testNode("a", "a").Obj())
		}},
		"a full node leaves its zone": {uneven, spreads, func(s *requeueing) { s.updateNodeInCache(testNode("b", "b").Obj(), testNode("b", "a").Obj()) }},
		"another zone gets a pod":     {uneven, spreads, func(s *requeueing) { s.bound(app("3", "b")) }},
		"a pod has other labels":      {repelled, repels, func(s *requeueing) { s.updatePodInCache(app("1", "a"), testPod("1").Node("a").Obj()) }},
		"a pod begins to end": {uneven, spreads, func(s *requeueing) {
			s.updatePodInCache(app("1", "a"), testPod("1").Label("app", "").Node("a").Terminating().Obj())
		}},
		"an extender changes its answer": {func(s *requeueing) {
			uneven(s)
			answers(extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{"a": "no"}})(s)
		}, testPod("waiting").NodeSelector(map[string]string{"zone": "a"}).Obj(), func(s *requeueing) {
			accepts(s)
			s.deletePodFromCache(app("1", "a"))
		}},
		"an extender has had an error": {func(s *requeueing) {
			s.nodes(testNode("a", "a").Obj())
			answers(extenderv1.ExtenderFilterResult{Error: "later"})(s)
		}, small, accepts},
		"a nominated pod is deleted": {nominate, small, func(s *requeueing) { s.deletePodFromSchedulingQueue(nominated) }},
		"a pod is nominated no more": {nominate, small, func(s *requeueing) {
			updated := nominated.DeepCopy()
			updated.ResourceVersion, updated.Status.NominatedNodeName = "2", ""
			s.updatePodInSchedulingQueue(nominated, updated)
			s.deletePodFromSchedulingQueue(updated) // It would take the room.
		}},
		"a nominated pod is bound elsewhere": {nominate, small, func(s *requeueing) {
			s.queue.DeleteNominatedPodIfExists(nominated) // As when it is assumed.
			s.bound(testPod("nominated").Priority(10).NominatedNodeName("a").Node("b").Obj())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, later := range []bool{false, true} {
				s := newRequeueing(t, later, strings.Contains(name, "extender"), false)
				tt.before(s)
				s.try(tt.pod)
				tt.event(s)
				if got := s.where("waiting") != records.InUnschedulable; got != later {
					t.Errorf("the pod is %q with --later-requeueing=%v", s.where("waiting"), later)
				}
				s.queue.Activate(map[string]*v1.Pod{"": tt.pod})
				s.scheduleOne(context.Background())
				if pod, err := s.SchedulerCache.GetPod(tt.pod); err != nil || pod.Spec.NodeName != "a" {
					t.Errorf("the next attempt does not place the pod on a, but %v, %v", pod, err)
				}
			}
		})
	}
}

// TestLaterRequeueingWithoutUse has events that help no pod.
func TestLaterRequeueingWithoutUse(t *testing.T) {
	app, nominated := testPod("1").Label("app", "").Node("a"), testPod("waiting").Req(cpu("5")).NominatedNodeName("a").Obj()
	for name, tt := range map[string]struct {
		pod   *v1.Pod
		event func(s *requeueing)
	}{
		"a pod that repels begins to end": {testPod("waiting").PodAntiAffinityExists("app", "host", st.PodAntiAffinityWithRequiredReq).Obj(), func(s *requeueing) {
			old := app.Obj().DeepCopy()
			s.updatePodInCache(old, app.Terminating().Obj())
		}},
		"the pod itself is nominated no more": {nominated, func(s *requeueing) {
			updated := nominated.DeepCopy()
			updated.ResourceVersion, updated.Status.NominatedNodeName = "2", ""
			s.updatePodInSchedulingQueue(nominated, updated)
		}},
	} {
		s := newRequeueing(t, true, false, false)
		s.nodes(testNode("a", "a").Obj())
		s.bound(app.Obj().DeepCopy())
		s.try(tt.pod)
		tt.event(s)
		if where := s.where("waiting"); where != records.InUnschedulable {
			t.Errorf("%s: the pod is %q", name, where)
		}
	}
}

// TestLaterRequeueingAfterPermit rejects a pod that waits at Permit.
func TestLaterRequeueingAfterPermit(t *testing.T) {
	for _, tt := range []struct {
		reason        string
		later, leaves bool
	}{
		{preemption.Preempted, false, false},
		{preemption.Preempted, true, true},
		{"no", true, false},
	} {
		s := newRequeueing(t, tt.later, false, false)
		if (s.permit.move != nil) != tt.later {
			t.Errorf("with --later-requeueing=%v, plugins have the function that moves pods after their caches: %v", tt.later, s.permit.move != nil)
		}
		s.nodes(testNode("a", "a").Obj())
		s.permit.status = framework.NewStatus(framework.Wait)
		s.try(testPod("waiting").Obj())
		waiting := s.Profiles[v1.DefaultSchedulerName].GetWaitingPod("waiting")
		if waiting == nil {
			t.Fatal("the pod does not wait at Permit")
		}
		waiting.Reject("DefaultPreemption", tt.reason)
		if err := wait.PollImmediate(time.Millisecond, time.Minute, func() (bool, error) { return s.where("waiting") != "", nil }); err != nil {
			t.Fatal(err)
		}
		if leaves := s.where("waiting") != records.InUnschedulable; leaves != tt.leaves {
			t.Errorf("%+v: the pod is %q", tt, s.where("waiting"))
		}
	}
}

// TestPreemptionWithoutVictims has nodes that only an extender rejects. The pod is nominated for a node on which
// preemption does not help.
func TestPreemptionWithoutVictims(t *testing.T) {
	for name, preempt := range map[string]*extenderv1.ExtenderPreemptionResult{
		"an extender that only filters":        nil,
		"an extender that names no victims":    {NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"b": {}}},
		"an extender that leaves no candidate": {},
	} {
		t.Run(name, func(t *testing.T) {
			for _, later := range []bool{false, true} {
				s := newRequeueing(t, later, true, preempt != nil)
				s.extender.preempt = preempt
				s.extender.filter = &extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{"a": "no"}}
				s.nodes(testNode("a", "a").Obj())
				s.bound(testPod("1").Req(cpu("1")).Node("a").Obj())
				if preempt != nil {
					s.nodes(testNode("b", "b").Obj())
					s.bound(testPod("2").Req(cpu("4")).Node("b").Obj())
				}
				pod := testPod("waiting").Priority(1).Req(cpu("1")).NominatedNodeName("a").Obj()
				s.try(pod)
				if node := s.queue.NominatedNode(pod); (node == "") != later {
					t.Errorf("with --later-requeueing=%v the pod is nominated for %q", later, node)
				}
			}
		})
	}
}
