// SPDX-License-Identifier: Apache-2.0

package defaultpreemption

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestSelectVictimsWithSharedState compares the victims with a shared CycleState and with a clone, which runs the
// filters once more.
func TestSelectVictimsWithSharedState(t *testing.T) {
	fit := func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		return noderesources.NewFit(&config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
			Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}},
		}}, handle, feature.Features{})
	}
	fwk, err := st.NewFramework([]st.RegisterPluginFunc{
		st.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		st.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		st.RegisterPluginAsExtensions(noderesources.FitName, fit, "PreFilter", "Filter"),
	}, "", frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(nil)))
	if err != nil {
		t.Fatal(err)
	}
	pl := &DefaultPreemption{fh: fwk}
	ctx, counts := context.Background(), map[int]int{}
	for seed := int64(0); seed < 2000; seed++ {
		random := rand.New(rand.NewSource(seed))
		nodeInfo := framework.NewNodeInfo()
		nodeInfo.SetNode(st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "9"}).Obj())
		for i := random.Intn(7); i > 0; i-- {
			nodeInfo.AddPod(st.MakePod().Name(fmt.Sprint(i)).UID(fmt.Sprint(i)).Label("app", fmt.Sprint(random.Intn(2))).
				Priority(int32(random.Intn(4))).
				Req(map[v1.ResourceName]string{"cpu": fmt.Sprint(1 + random.Intn(3))}).Obj())
		}
		pod := st.MakePod().Name("p").UID("p").Priority(int32(1 + random.Intn(4))).Req(map[v1.ResourceName]string{"cpu": fmt.Sprint(1 + random.Intn(8))}).Obj()
		budgets := []*policy.PodDisruptionBudget{{
			Spec:   policy.PodDisruptionBudgetSpec{Selector: st.MakeLabelSelector().In("app", []string{"1"}).Obj()},
			Status: policy.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(random.Intn(2))},
		}}
		state := framework.NewCycleState()
		fwk.RunPreFilterPlugins(ctx, state, pod)
		if fwk.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodeInfo).IsSuccess() {
			// Preemption does not evaluate nodes that fit.
			continue
		}
		want, wantViolations, wantStatus := pl.SelectVictimsOnNode(ctx, state.Clone(), pod, nodeInfo.Clone(), budgets)
		shared := fwk.(interface {
			NodeState(*framework.CycleState, *v1.Pod) *framework.CycleState
		}).NodeState(state, pod)
		if !shared.RejectionsHold() {
			t.Fatal("the filters run once more")
		}
		got, violations, status := pl.SelectVictimsOnNode(ctx, shared, pod, nodeInfo.Clone(), budgets)
		if !reflect.DeepEqual(got, want) || violations != wantViolations || !status.Equal(wantStatus) {
			t.Fatalf("seed %d: got %d victims, %d violations, %v; want %d, %d, %v", seed, len(got), violations, status, len(want), wantViolations, wantStatus)
		}
		counts[len(want)]++
	}
	if counts[0] == 0 || counts[1] == 0 || counts[2] == 0 || counts[3] == 0 {
		t.Errorf("too few kinds of results: %v", counts)
	}

	// A nominated pod may be gone when the filters run again.
	nodeInfo, pod := framework.NewNodeInfo(), st.MakePod().Name("p").UID("p").Obj()
	nodeInfo.SetNode(st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "1"}).Obj())
	fwk.AddNominatedPod(framework.NewPodInfo(st.MakePod().Name("n").UID("n").Obj()), &framework.NominatingInfo{NominatingMode: framework.ModeOverride, NominatedNodeName: "node"})
	state := framework.NewCycleState()
	fwk.RunPreFilterPlugins(ctx, state, pod)
	if fwk.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodeInfo).IsSuccess() {
		t.Fatal("the nominated pod is not counted")
	}
	shared := fwk.(interface {
		NodeState(*framework.CycleState, *v1.Pod) *framework.CycleState
	}).NodeState(state, pod)
	if shared == nil || shared.RejectionsHold() {
		t.Error("the filters do not run again")
	}
}
