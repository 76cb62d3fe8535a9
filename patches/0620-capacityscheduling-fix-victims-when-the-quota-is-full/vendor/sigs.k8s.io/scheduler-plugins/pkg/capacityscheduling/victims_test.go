// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// full is a node with room for this many pods.
type full struct {
	*oneNode
	plugin *CapacityScheduling
	room   int
}

func (f *full) RunFilterPluginsWithNominatedPods(_ context.Context, _ *framework.CycleState, _ *v1.Pod,
	node *framework.NodeInfo) *framework.Status {
	if len(node.Pods) < f.room {
		return nil
	}
	return framework.NewStatus(framework.Unschedulable, "no room")
}

func (f *full) RunPreFilterExtensionAddPod(ctx context.Context, state *framework.CycleState, pod *v1.Pod,
	other *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	return f.plugin.AddPod(ctx, state, pod, other, node)
}

func (f *full) RunPreFilterExtensionRemovePod(ctx context.Context, state *framework.CycleState, pod *v1.Pod,
	other *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	return f.plugin.RemovePod(ctx, state, pod, other, node)
}

// TestSelectVictimsOnNodeWithFullQuota schedules a pod of 1 CPU on a node with two pods of lower priority in the same
// namespace, which uses exactly its min.
func TestSelectVictimsOnNodeWithFullQuota(t *testing.T) {
	tests := []struct {
		name      string
		room      int    // number of pods that fit the node
		max       string // CPUs
		nominated string // CPUs of a nominated pod of the namespace
		// wantVictims is the number of victims, and wantViolations that of violations of the more important pod's
		// budget.
		wantVictims, wantViolations int
	}{
		{name: "the node is full", room: 2, max: "9", wantVictims: 1},
		{name: "the quota is full", room: 3, max: "2", wantVictims: 1},
		{name: "the quota would be full with either", room: 3, max: "1", wantVictims: 2, wantViolations: 1},
		{name: "both are full", room: 2, max: "2", wantVictims: 1},
		{name: "both are full without them", room: 1, max: "1", nominated: "1", wantVictims: 2, wantViolations: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			one := map[v1.ResourceName]string{v1.ResourceCPU: "1"}
			high, mid, low := int32(100), int32(50), int32(10)
			protected, other := podOf("ns", "protected", one), podOf("ns", "other", one)
			protected.Spec.Priority, other.Spec.Priority = &mid, &low
			protected.Labels = map[string]string{"app": "protected"}
			budget := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "budget"}}
			budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: protected.Labels}
			budgets := []*policy.PodDisruptionBudget{budget}

			info := newElasticQuotaInfo("ns", listOf("cpu", "2"), listOf("cpu", tt.max), nil)
			lender := newElasticQuotaInfo("lender", listOf("cpu", "9"), nil, nil)
			c := &CapacityScheduling{elasticQuotaInfos: ElasticQuotaInfos{"ns": info, "lender": lender}}
			f := &full{oneNode: newOneNode(protected, other), plugin: c, room: tt.room}
			c.fh = f
			for _, pod := range []*v1.Pod{protected, other} {
				if err := info.addPodIfNotPresent(pod); err != nil {
					t.Fatal(err)
				}
			}
			if tt.nominated != "" {
				nominated := podOf("ns", "nominated", map[v1.ResourceName]string{v1.ResourceCPU: tt.nominated})
				nominated.Spec.Priority = &high
				infos := []*framework.PodInfo{framework.NewPodInfo(nominated)}
				f.nominated = func() []*framework.PodInfo { return infos }
			}
			pod := podOf("ns", "preemptor", one)
			pod.Spec.Priority = &high
			state := framework.NewCycleState()
			c.PreFilter(context.Background(), state, pod)

			p := &preemptor{fh: f, state: state}
			victims, violations, status := p.SelectVictimsOnNode(
				context.Background(), state.Clone(), pod, f.node.Clone(), budgets)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			if len(victims) != tt.wantVictims || violations != tt.wantViolations {
				t.Errorf("%d victims, %d violations, want %d, %d",
					len(victims), violations, tt.wantVictims, tt.wantViolations)
			}
		})
	}
}
