// SPDX-License-Identifier: Apache-2.0

package noderesourcetopology

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	topologyv1alpha1 "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha1"
)

// TestScoreNonConsecutiveZones has zones whose numbers do not count up from zero: an agent need not report all zones.
func TestScoreNonConsecutiveZones(t *testing.T) {
	zone := func(name string) topologyv1alpha1.Zone {
		return topologyv1alpha1.Zone{Name: name, Type: "Node", Resources: topologyv1alpha1.ResourceInfoList{
			{Name: "cpu", Capacity: resource.MustParse("4"), Available: resource.MustParse("4")},
		}}
	}
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	pod := makePodByResourceList(&cpu)
	for _, zones := range []topologyv1alpha1.ZoneList{
		{zone("node-0"), zone("node-1")},
		{zone("node-1")},
		{zone("node-0"), zone("node-2")},
		{zone("other"), zone("node-1")},
	} {
		score, status := podScopeScore(pod, zones, leastAllocatedScoreStrategy, nil)
		if score != 75 || !status.IsSuccess() { // 3 of 4 CPUs stay free
			t.Errorf("%d zones from %s on: score %d, want 75; %v", len(zones), zones[0].Name, score, status)
		}
	}
}
