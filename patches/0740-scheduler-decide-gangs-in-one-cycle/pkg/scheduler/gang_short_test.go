// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// gangSource is a plugin that knows gangs.
type gangSource struct{ gangs.Source }

func (gangSource) Name() string { return "source" }

// apart is a filter that reads other nodes: pods of the gang are not on nodes of the same zone.
type apart struct{ framework.Handle }

func (apart) Name() string { return "apart" }

func (pl apart) Filter(_ context.Context, _ *framework.CycleState, pod *v1.Pod, node *framework.NodeInfo) *framework.Status {
	nodes, _ := pl.SnapshotSharedLister().NodeInfos().List()
	for _, other := range nodes {
		for _, on := range other.Pods {
			if on.Pod.Labels[gangs.Label] != "" && other.Node().Labels["zone"] == node.Node().Labels["zone"] {
				return framework.NewStatus(framework.Unschedulable, "not apart")
			}
		}
	}
	return nil
}

// gangRun is the cluster of an attempt. Without reuse, it dry-runs preemption on each node for each pod, and places pods
// even if too few fit.
type gangRun struct {
	*gangAttempt
	seed  int64
	reuse bool
	short *gangs.Try
}

func (r *gangRun) Place(ctx context.Context, pod *v1.Pod, domain gangs.Domain, preempt bool) error {
	if !r.reuse {
		r.deferred.Shape("none")
	}
	return r.gangAttempt.Place(ctx, pod, domain, preempt)
}

func (r *gangRun) Short(ctx context.Context, pods []*v1.Pod, domain gangs.Domain, needed int, preempt bool) *gangs.Try {
	defer rand.Seed(r.seed)
	if r.reuse {
		r.short = r.gangAttempt.Short(ctx, pods, domain, needed, preempt)
	}
	return r.short
}

// TestGangReuses compares attempts for random gangs with those that reuse nothing.
func TestGangReuses(t *testing.T) {
	counts := map[string]int{}
	for seed := int64(1); seed <= 400; seed++ {
		g, gang := newGangCycles(t, seed)
		run := func(reuse bool) (found string) {
			a := g.newAttempt(gangSource{}, gang)
			for _, pod := range gang.Waiting {
				a.add(&framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(pod), Together: true}, g.Profiles[v1.DefaultSchedulerName])
			}
			if err := a.algorithm.snapshot(); err != nil {
				t.Fatal(err)
			}
			a.algorithm.gang.held, a.algorithm.nextStartNodeIndex = true, 0
			defer func() { a.algorithm.gang = gangSearch{} }()
			attempt := &gangs.Attempt{Gang: gang, Pods: gang.Waiting, Needed: gang.MinMember, Expired: func() bool { return false }}
			r := &gangRun{gangAttempt: a, seed: seed, reuse: reuse}
			decision := attempt.Run(context.Background(), r)
			for _, m := range a.placed {
				found += fmt.Sprintln(m.info.Pod.Name, m.result.SuggestedHost, namesOf(m.victims))
			}
			if counts[string(decision.Result)]++; r.short != nil {
				counts["short"]++
			}
			edits := a.algorithm.nodeInfoSnapshot.Edits()
			a.Undo(0)
			return found + fmt.Sprintln(decision.Result, decision.Text(gang.MinMember), a.rejected.List(), edits)
		}
		want, got := run(false), run(true)
		// A slow search is logged with a number that is drawn from the source which also decides between equal nodes.
		for n := 0; n < 3 && got != want; n++ {
			want, got = run(false), run(true)
		}
		if got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
	if t.Logf("%v", counts); counts["short"] < 50 || counts["placed"] < 50 || counts["preempting"] < 50 {
		t.Errorf("too few of a kind: %v", counts)
	}
}

func newGangCycles(t *testing.T, seed int64) (*gangCycles, *gangs.Gang) {
	random := rand.New(rand.NewSource(seed))
	one := func(n int) bool { return random.Intn(n) == 0 }
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	_ = factory.Core().V1().Namespaces().Informer().GetStore().Add(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	if one(6) {
		config.Profiles[0].Plugins.Filter.Enabled = []schedulerapi.Plugin{{Name: "apart"}}
	}
	registry := frameworkruntime.Registry{"apart": func(_ runtime.Object, h framework.Handle) (framework.Plugin, error) { return apart{h}, nil }}
	sched, err := New(fake.NewSimpleClientset(), factory, nil, func(string) events.EventRecorder { return &events.FakeRecorder{} }, stop,
		WithParallelism(1), WithProfiles(config.Profiles...), WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; one(2) && i < 2; i++ {
		budget := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i)}}
		budget.UID, budget.Status.DisruptionsAllowed = budget.UID+"b", int32(random.Intn(3))
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
		_ = factory.Policy().V1().PodDisruptionBudgets().Informer().GetStore().Add(budget)
	}
	for i := 0; i < 3+random.Intn(8); i++ {
		node := st.MakeNode().Name(fmt.Sprint("node-", i)).Label("zone", fmt.Sprint(random.Intn(2))).
			Capacity(map[v1.ResourceName]string{"cpu": fmt.Sprint(1 + random.Intn(8)), "pods": fmt.Sprint(3 + random.Intn(5))})
		sched.SchedulerCache.AddNode(node.Obj())
		for j := 0; j < random.Intn(4); j++ {
			name := fmt.Sprint("on-", i, "-", j)
			on := st.MakePod().Namespace("default").Name(name).UID(name).Node(fmt.Sprint("node-", i)).Priority(int32(random.Intn(3))).
				Label("app", fmt.Sprint(random.Intn(3))).Req(map[v1.ResourceName]string{"cpu": fmt.Sprint(1 + random.Intn(2))}).
				StartTime(metav1.Unix(int64(100*i+j), 0)).Obj() // Otherwise the choice of victims is one of a map's order.
			if err := sched.SchedulerCache.AddPod(on); err != nil {
				t.Fatal(err)
			}
		}
		if one(10) {
			other := st.MakePod().Name("nominated").UID(fmt.Sprint(i)).Priority(int32(1 + random.Intn(2))).Req(map[v1.ResourceName]string{"cpu": "1"}).Obj()
			sched.SchedulingQueue.AddNominatedPod(framework.NewPodInfo(other), &framework.NominatingInfo{
				NominatingMode: framework.ModeOverride, NominatedNodeName: fmt.Sprint("node-", i)})
		}
	}
	gang := &gangs.Gang{Name: "default/g", MinMember: 1 + random.Intn(9), Timeout: time.Hour}
	if one(4) {
		gang.Required = "zone"
	}
	ports, cpu := one(4), fmt.Sprint(1+random.Intn(3))
	for i := 0; i < gang.MinMember+random.Intn(2); i++ {
		pod := st.MakePod().Namespace("default").Name(fmt.Sprint("g-", i)).UID(fmt.Sprint("g-", i)).Label(gangs.Label, "g").
			SchedulerName(v1.DefaultSchedulerName).Priority(2).Req(map[v1.ResourceName]string{"cpu": cpu})
		if ports {
			pod.HostPort(80)
		}
		gang.Waiting = append(gang.Waiting, pod.Obj())
	}
	g := &gangCycles{Scheduler: sched, algorithm: sched.Algorithm.(*genericScheduler), sources: map[string]gangs.Source{}}
	return g, gang
}
