// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// switched is DefaultPreemption in a cluster of nodes with 4 CPUs, which the pods name.
type switched struct {
	*DefaultPreemption
	waiting *v1.Pod
}

func newSwitched(t *testing.T, switches framework.Switches, waiting *v1.Pod, pods []*v1.Pod, budgets []*policy.PodDisruptionBudget) *switched {
	metrics.Register()
	client := clientsetfake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	_ = factory.Core().V1().Pods().Informer().GetStore().Add(waiting)
	for _, budget := range budgets {
		_ = factory.Policy().V1().PodDisruptionBudgets().Informer().GetStore().Add(budget)
	}
	nodes, named := []*v1.Node(nil), map[string]bool{}
	for _, pod := range pods {
		_ = client.Tracker().Add(pod)
		if !named[pod.Spec.NodeName] {
			named[pod.Spec.NodeName] = true
			nodes = append(nodes, st.MakeNode().Name(pod.Spec.NodeName).Capacity(map[v1.ResourceName]string{"cpu": "4", "pods": "9"}).Obj())
		}
	}
	fwk, err := st.NewFramework([]st.RegisterPluginFunc{
		st.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		st.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		st.RegisterPluginAsExtensions(noderesources.FitName, nodeResourcesFitFunc, "PreFilter", "Filter"),
	}, "", frameworkruntime.WithClientSet(client), frameworkruntime.WithEventRecorder(&events.FakeRecorder{}), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(nil)), frameworkruntime.WithSnapshotSharedLister(internalcache.NewSnapshot(pods, nodes)),
		frameworkruntime.WithSwitches(switches))
	if err != nil {
		t.Fatal(err)
	}
	return &switched{&DefaultPreemption{
		fh: fwk, args: *getDefaultDefaultPreemptionArgs(), podLister: factory.Core().V1().Pods().Lister(), pdbLister: getPDBLister(factory, true),
	}, waiting}
}

func (s *switched) cycle() *framework.CycleState {
	state := framework.NewCycleState()
	s.fh.(framework.Framework).RunPreFilterPlugins(context.Background(), state, s.waiting)
	return state
}

// outcome returns the node that a dry run would nominate with the victims, or why there is none.
func (s *switched) outcome(t *testing.T) string {
	record, err := s.WouldPreempt(context.Background(), s.cycle(), s.waiting, framework.NodeToStatusMap{})
	if err != nil {
		t.Fatal(err)
	}
	if record.Node == "" {
		return record.WhyNot
	}
	return record.Node + ": " + strings.ReplaceAll(strings.Join(record.Victims, " "), "shop/", "")
}

func sized(name, node, cpu string, priority int32) *st.PodWrapper {
	return st.MakePod().Namespace("shop").Name(name).UID(name).Node(node).Label("app", name[:1]).Priority(priority).Req(map[v1.ResourceName]string{"cpu": cpu})
}

func budgetOf(app string, allowed int32) *policy.PodDisruptionBudget {
	budget := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "budget-" + app + "-" + string('0'+rune(allowed))}}
	budget.Spec.Selector, budget.Status.DisruptionsAllowed = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, allowed
	return budget
}

func TestPreemptionRespectsBudgets(t *testing.T) {
	const over = "Evicting pods of lower priority would make room, but would violate a PodDisruptionBudget on each such node."
	unseen := budgetOf("a", 1)
	unseen.Generation = 1
	healthy, every := budgetOf("a", 0), budgetOf("a", 2)
	healthy.Status.CurrentHealthy, healthy.Status.DesiredHealthy, every.Spec.Selector = 1, 1, &metav1.LabelSelector{}
	ready := sized("a1", "n1", "4", 0).Obj()
	ready.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	pending := sized("a1", "n1", "4", 0).Obj()
	pending.Status.Phase = v1.PodPending
	ending := sized("a1", "n1", "4", 0).Terminating().Obj()
	for _, test := range []struct {
		name     string
		priority int32
		pods     []*v1.Pod
		budgets  []*policy.PodDisruptionBudget
		off, on  string // with and without the switch
	}{
		{"one node, whose pod is protected", 9, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 0)}, "n1: a1", over},
		{"a system-critical pod may", scheduling.SystemCriticalPriority, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 0)}, "n1: a1", "n1: a1"},
		{"two pods of a budget that allows one: both are needed", 9, []*v1.Pod{sized("a1", "n1", "2", 0).Obj(), sized("a2", "n1", "2", 0).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 1)}, "n1: a1 a2", over},
		{"two pods of a budget that allows one: the less important one is enough", 9, []*v1.Pod{sized("a1", "n1", "1", 2).Obj(), sized("a2", "n1", "3", 1).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 1)}, "n1: a2", "n1: a2"},
		{"the eviction API refuses a pod of two budgets", 9, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 1), budgetOf("a", 2)}, "n1: a1", over},
		{"the eviction API refuses while the controller has not seen the budget", 9, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()},
			[]*policy.PodDisruptionBudget{unseen}, "n1: a1", over},
		{"the eviction API asks no budget for a pod that is pending", 9, []*v1.Pod{pending},
			[]*policy.PodDisruptionBudget{budgetOf("a", 0)}, "n1: a1", "n1: a1"},
		{"a pod that is not ready, and the others are enough", 9, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()},
			[]*policy.PodDisruptionBudget{healthy}, "n1: a1", "n1: a1"},
		{"a ready pod, without which too few remain", 9, []*v1.Pod{ready}, []*policy.PodDisruptionBudget{healthy}, "n1: a1", over},
		{"a budget with an empty selector is no second one", 9, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 1), every}, "n1: a1", "n1: a1"},
		{"a pod that terminates uses no budget", 9, []*v1.Pod{ending}, []*policy.PodDisruptionBudget{budgetOf("a", 0)}, "n1: a1", "n1: a1"},
		{"a node with a more important pod that is not protected", 9, []*v1.Pod{sized("a1", "n1", "4", 0).Obj(), sized("b1", "n2", "4", 5).Obj()},
			[]*policy.PodDisruptionBudget{budgetOf("a", 0)}, "n2: b1", "n2: b1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			waiting := sized("waiting", "", "3", test.priority).Obj()
			for respects, want := range map[bool]string{false: test.off, true: test.on} {
				s := newSwitched(t, framework.Switches{RespectBudgets: respects}, waiting, test.pods, test.budgets)
				if got := s.outcome(t); got != want {
					t.Errorf("switch %v: got %q, want %q", respects, got, want)
				}
			}
		})
	}
}

// TestEvictionOfAPodThatIsGone has a client without an eviction API: a request would panic.
func TestEvictionOfAPodThatIsGone(t *testing.T) {
	for name, current := range map[string]*v1.Pod{"no pod": nil, "another pod": st.MakePod().Namespace("shop").Name("a1").UID("new").Obj()} {
		t.Run(name, func(t *testing.T) {
			waiting := sized("waiting", "", "3", 9).Obj()
			s := newSwitched(t, framework.Switches{RespectBudgets: true}, waiting, []*v1.Pod{sized("a1", "n1", "4", 0).Obj()}, nil)
			if current != nil {
				_ = s.fh.SharedInformerFactory().Core().V1().Pods().Informer().GetStore().Add(current)
			}
			if result, status := s.PostFilter(context.Background(), s.cycle(), waiting, nil); !status.IsSuccess() || result.NominatedNodeName != "n1" {
				t.Errorf("got %v, %v", result, status)
			}
		})
	}
}

func TestNominationTimeout(t *testing.T) {
	const waits = "The pod cannot preempt others now: its preemptionPolicy is Never, or pods that were evicted for it are still terminating."
	const nowhere = "Evicting pods of lower priority would not make room on any node."
	ends := func(pod *st.PodWrapper, ago time.Duration) *v1.Pod {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-ago)}
		return pod.Obj()
	}
	elsewhere := sized("b1", "n2", "4", 5).Obj()
	for _, test := range []struct {
		name    string
		pods    []*v1.Pod
		off, on string // without the switch, and with 5 minutes
		kept    bool   // whether PostFilter nominates n1
	}{
		{"the grace period has just ended", []*v1.Pod{ends(sized("a1", "n1", "4", 0), time.Minute), elsewhere}, waits, waits, false},
		{"the victim is stuck: another node", []*v1.Pod{ends(sized("a1", "n1", "4", 0), time.Hour), elsewhere}, waits, "n2: b1", false},
		{"one victim is stuck, and another one ends", []*v1.Pod{ends(sized("a1", "n1", "2", 0), time.Hour), ends(sized("a2", "n1", "2", 0), 0), elsewhere}, waits, waits, false},
		{"one victim is stuck, and another pod of the node is enough", []*v1.Pod{ends(sized("a1", "n1", "1", 1), time.Hour), sized("a2", "n1", "3", 2).Obj()}, waits, "n1: a2", true},
		{"no other node", []*v1.Pod{ends(sized("a1", "n1", "4", 0), time.Hour)}, waits, nowhere, true},
		{"another node has a pod that is stuck", []*v1.Pod{ends(sized("a1", "n1", "4", 0), time.Hour), ends(sized("b1", "n2", "4", 0), time.Hour)}, waits, nowhere, true},
		{"no candidate, and nobody is stuck", []*v1.Pod{sized("a1", "n1", "4", 10).Obj()}, nowhere, nowhere, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			waiting := sized("waiting", "", "3", 9).Obj()
			waiting.Status.NominatedNodeName = "n1"
			for timeout, want := range map[time.Duration]string{0: test.off, 5 * time.Minute: test.on} {
				s := newSwitched(t, framework.Switches{NominationTimeout: timeout}, waiting, test.pods, nil)
				if got := s.outcome(t); got != want {
					t.Errorf("timeout %v: got %q, want %q", timeout, got, want)
				}
				result, _ := s.PostFilter(context.Background(), s.cycle(), waiting, nil)
				if kept := result != nil && result.NominatedNodeName == "n1"; timeout > 0 && kept != test.kept {
					t.Errorf("the nomination is kept: %v, want %v", kept, test.kept)
				}
			}
		})
	}
}
