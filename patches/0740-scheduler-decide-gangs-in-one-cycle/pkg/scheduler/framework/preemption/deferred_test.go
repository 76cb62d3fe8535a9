// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func indexer(objects ...interface{}) cache.Indexer {
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := all.Add(object); err != nil {
			panic(err)
		}
	}
	return all
}

func TestBudgetsAfterDeferredEvictions(t *testing.T) {
	for _, test := range []struct {
		name     string
		selector *metav1.LabelSelector
		counted  map[string]metav1.Time
		want     int32
	}{
		{"an empty selector selects the victim, which has no labels: 2 - 1", &metav1.LabelSelector{}, nil, 1},
		{"a nil selector does not", nil, nil, 2},
		{"the API server has evicted the victim, and subtracted it", &metav1.LabelSelector{}, map[string]metav1.Time{"victim": {}}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			budget := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "budget"}}
			budget.Spec.Selector, budget.Status.DisruptedPods, budget.Status.DisruptionsAllowed = test.selector, test.counted, 2
			victim := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "victim"}}
			ev := &Evaluator{State: framework.NewCycleState(), PdbLister: policylisters.NewPodDisruptionBudgetLister(indexer(budget))}
			(&Deferred{evictions: []eviction{{victims: []*v1.Pod{victim}}}}).Defer(ev.State)
			left, err := ev.budgets()
			if err != nil || left[0].Status.DisruptionsAllowed != test.want {
				t.Errorf("got %+v, %v, want %d disruptions allowed", left, err, test.want)
			}
		})
	}
}

func TestPreemptorWhoseNameAnotherPodHas(t *testing.T) {
	pod := func(uid string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: types.UID(uid)}}
	}
	ev := &Evaluator{State: framework.NewCycleState(), PodLister: corelisters.NewPodLister(indexer(pod("new")))}
	if _, status := ev.Preempt(context.Background(), pod("old"), nil); status.Code() != framework.Error {
		t.Errorf("a pod that is gone preempts for its successor: %v", status)
	}
}

// counter is an Interface that counts its calls.
type counter struct {
	Interface
	calls int
	hold  bool
}

func (c *counter) SelectVictimsOnNode(context.Context, *framework.CycleState, *v1.Pod, *framework.NodeInfo, []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *framework.Status) {
	c.calls++
	return nil, 0, nil
}
func (c *counter) nodeState(state *framework.CycleState) *framework.CycleState {
	shared := state.Share()
	shared.SetRejectionsHold(c.hold)
	return shared
}

func TestDryRunsOfUnchangedNodesAreReused(t *testing.T) {
	budget := &policy.PodDisruptionBudget{}
	for name, change := range map[string]func(d *Deferred, c *counter, node *framework.NodeInfo){
		"":                       func(*Deferred, *counter, *framework.NodeInfo) {},
		"another shape":          func(d *Deferred, _ *counter, _ *framework.NodeInfo) { d.Shape("b") },
		"a changed node":         func(_ *Deferred, _ *counter, node *framework.NodeInfo) { node.AddPod(&v1.Pod{}) },
		"a changed budget":       func(*Deferred, *counter, *framework.NodeInfo) { budget.Status.DisruptionsAllowed++ },
		"filters that read more": func(_ *Deferred, c *counter, _ *framework.NodeInfo) { c.hold = false },
		"a pod that terminates":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			d, c, node, want := &Deferred{}, &counter{hold: true}, framework.NewNodeInfo(), 2
			state := framework.NewCycleState()
			d.Defer(state)
			d.Shape("a")
			run := func() {
				ev := &Evaluator{State: state, Interface: c}
				ev.reuseDryRuns()
				ev.SelectVictimsOnNode(context.Background(), c.nodeState(state), &v1.Pod{}, node.Clone(), []*policy.PodDisruptionBudget{budget})
			}
			if change == nil {
				node.AddPod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}})
			}
			if run(); change != nil {
				change(d, c, node)
			}
			if name == "" {
				want = 1
			}
			if run(); c.calls != want {
				t.Errorf("%d dry runs, want %d", c.calls, want)
			}
		})
	}
}
