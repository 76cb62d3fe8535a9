// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// listOf returns a list from pairs of a resource and a quantity.
func listOf(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// TestPreFilterWithUnnamedResources tests pods of namespace a; namespace b has a quota too.
func TestPreFilterWithUnnamedResources(t *testing.T) {
	const gpu = "example.com/gpu"
	tests := []struct {
		name     string
		min, max v1.ResourceList // of a
		minOfB   v1.ResourceList
		used     v1.ResourceList // in a
		request  v1.ResourceList
		// want is true if PreFilter accepts the pod, borrows if the namespace uses more than its min without it.
		want, borrows bool
	}{
		{
			name: "all named, within max",
			min:  listOf("cpu", "4"), max: listOf("cpu", "6"), request: listOf("cpu", "4"), want: true,
		},
		{
			name: "all named, over max",
			min:  listOf("cpu", "8"), max: listOf("cpu", "6"), request: listOf("cpu", "7"),
		},
		{
			name: "memory named nowhere",
			min:  listOf("cpu", "4"), max: listOf("cpu", "6"), used: listOf("cpu", "2", "memory", "1Gi"),
			request: listOf("cpu", "1", "memory", "1Gi"), want: true,
		},
		{
			name: "CPU named nowhere",
			min:  listOf("memory", "4Gi"), max: listOf("memory", "6Gi"), used: listOf("cpu", "2", "memory", "1Gi"),
			request: listOf("cpu", "1", "memory", "1Gi"), want: true,
		},
		{
			name: "GPUs named nowhere",
			min:  listOf("cpu", "4"), max: listOf("cpu", "6"), used: listOf("cpu", "2", gpu, "1"),
			request: listOf("cpu", "1", gpu, "1"), want: true,
		},
		{
			name: "memory not named by max",
			min:  listOf("cpu", "4", "memory", "4Gi"), max: listOf("cpu", "6"),
			request: listOf("cpu", "1", "memory", "4Gi"), want: true,
		},
		{
			name: "GPUs not named by max",
			min:  listOf("cpu", "4", gpu, "2"), max: listOf("cpu", "6"),
			request: listOf("cpu", "1", gpu, "2"), want: true,
		},
		{
			name: "no max",
			min:  listOf("cpu", "4"), request: listOf("cpu", "4"), want: true,
		},
		{
			name: "no min",
			max:  listOf("cpu", "6"), used: listOf("cpu", "2"), request: listOf("cpu", "4"), want: true,
		},
		{
			name: "no min, over max",
			max:  listOf("cpu", "6"), used: listOf("cpu", "2"), request: listOf("cpu", "5"),
		},
		{
			name: "a max of zero",
			min:  listOf("cpu", "4"), max: listOf("cpu", "6", "memory", "0", gpu, "0"),
			request: listOf("cpu", "1", gpu, "1"),
		},
		{
			name: "GPUs borrowed from b",
			min:  listOf("cpu", "4"), minOfB: listOf(gpu, "2"), used: listOf("cpu", "1", gpu, "1"),
			request: listOf("cpu", "1", gpu, "1"), want: true, borrows: true,
		},
		{
			name: "more GPUs than b has",
			min:  listOf("cpu", "4"), minOfB: listOf(gpu, "2"), used: listOf("cpu", "1", gpu, "1"),
			request: listOf("cpu", "1", gpu, "2"), borrows: true,
		},
		{
			name: "CPU borrowed from b",
			min:  listOf("cpu", "0"), minOfB: listOf("cpu", "4"), used: listOf("cpu", "1"),
			request: listOf("cpu", "3"), want: true, borrows: true,
		},
		{
			name: "memory borrowed from b",
			min:  listOf("cpu", "4"), minOfB: listOf("memory", "4Gi"), used: listOf("memory", "1Gi"),
			request: listOf("memory", "3Gi"), want: true, borrows: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &CapacityScheduling{fh: newOneNode(), elasticQuotaInfos: ElasticQuotaInfos{
				"a": newElasticQuotaInfo("a", tt.min, tt.max, tt.used),
				"b": newElasticQuotaInfo("b", tt.minOfB, nil, nil),
			}}
			requests := map[v1.ResourceName]string{}
			for name, quantity := range tt.request {
				requests[name] = quantity.String()
			}
			state := framework.NewCycleState()
			status := c.PreFilter(context.Background(), state, podOf("a", "pod", requests))
			if status.IsSuccess() != tt.want {
				t.Errorf("PreFilter: %v", status)
			}
			snapshot, err := getElasticQuotaSnapshotState(state.Clone())
			if err != nil {
				t.Fatal(err)
			}
			if got := snapshot.elasticQuotaInfos["a"].usedOverMin(); got != tt.borrows {
				t.Errorf("uses more than its min: %v", got)
			}
		})
	}
}
