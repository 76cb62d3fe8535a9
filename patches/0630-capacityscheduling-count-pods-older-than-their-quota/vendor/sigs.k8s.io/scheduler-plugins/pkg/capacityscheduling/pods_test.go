// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	externalv1alpha1 "sigs.k8s.io/scheduler-plugins/pkg/generated/listers/scheduling/v1alpha1"
)

// TestAddElasticQuotaCountsExistingPods has two running pods of 1 CPU, one that has terminated, one without a node,
// and one in another namespace.
func TestAddElasticQuotaCountsExistingPods(t *testing.T) {
	quota := quotaOf("ns", listOf("cpu", "4"), nil)
	cpu := map[v1.ResourceName]string{v1.ResourceCPU: "1"}
	first, second, ended := podOf("ns", "first", cpu), podOf("ns", "second", cpu), podOf("ns", "ended", cpu)
	pending, other := podOf("ns", "pending", cpu), podOf("other", "other", cpu)
	ended.Status.Phase = v1.PodSucceeded
	for _, pod := range []*v1.Pod{first, second, ended, other} {
		pod.Spec.NodeName = "node"
	}
	tests := []struct {
		name string
		come func(c *CapacityScheduling)
	}{
		{"the quota comes", func(c *CapacityScheduling) { c.addElasticQuota(quota) }},
		{"the quota comes, then the events of the pods", func(c *CapacityScheduling) {
			c.addElasticQuota(quota)
			c.addPod(first)
			c.addPod(second)
		}},
		{"the event of a pod comes before that of the quota", func(c *CapacityScheduling) {
			c.addPod(second)
			c.addElasticQuota(quota)
		}},
		{"the quota comes again", func(c *CapacityScheduling) {
			c.addElasticQuota(quota)
			c.deleteElasticQuota(quota)
			c.addElasticQuota(quota)
		}},
		{"the quota changes after another of the namespace was deleted", func(c *CapacityScheduling) {
			c.addElasticQuota(quota)
			c.deleteElasticQuota(quota)
			c.updateElasticQuota(quota, quota)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
			pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
			for _, pod := range []*v1.Pod{first, second, ended, pending, other} {
				pods.Add(pod)
			}
			quotas := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
			quotas.Add(quota)
			c := &CapacityScheduling{
				elasticQuotaInfos:  NewElasticQuotaInfos(),
				podLister:          corelisters.NewPodLister(pods),
				elasticQuotaLister: externalv1alpha1.NewElasticQuotaLister(quotas),
			}
			tt.come(c)
			if used := c.elasticQuotaInfos["ns"].Used.MilliCPU; used != 2000 {
				t.Errorf("%dm CPU are used, want 2000m", used)
			}
			c.deletePod(first)
			if used := c.elasticQuotaInfos["ns"].Used.MilliCPU; used != 1000 {
				t.Errorf("%dm CPU are used after one pod of two is deleted, want 1000m", used)
			}
		})
	}
}
