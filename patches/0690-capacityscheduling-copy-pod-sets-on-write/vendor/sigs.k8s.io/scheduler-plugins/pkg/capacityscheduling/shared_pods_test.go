// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"context"
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestElasticQuotaSnapshot changes a quota, its snapshot, and the snapshot's clones.
func TestElasticQuotaSnapshot(t *testing.T) {
	cpu := map[v1.ResourceName]string{v1.ResourceCPU: "1"}
	old, pod, other := podOf("ns", "old", cpu), podOf("ns", "pod", cpu), podOf("ns", "other", cpu)
	c := &CapacityScheduling{elasticQuotaInfos: ElasticQuotaInfos{"ns": newElasticQuotaInfo("ns", nil, nil, nil)}}
	live := func() *ElasticQuotaInfo { return c.elasticQuotaInfos["ns"] }
	check := func(what string, info *ElasticQuotaInfo, names ...string) {
		t.Helper()
		got := info.pods.List()
		if fmt.Sprint(got) != fmt.Sprint(names) || info.Used.MilliCPU != int64(1000*len(names)) {
			t.Errorf("%s: pods %v use %dm CPU, want %v", what, got, info.Used.MilliCPU, names)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(live().addPodIfNotPresent(old))
	snapshot := c.snapshotElasticQuota()

	must(live().addPodIfNotPresent(pod))
	check("the snapshot, after the quota gained a pod", snapshot.elasticQuotaInfos["ns"], "old")

	var wait sync.WaitGroup
	for i := 0; i < 4; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			clone := snapshot.Clone().(*ElasticQuotaSnapshotState).elasticQuotaInfos["ns"]
			clone.deletePodIfPresent(old)
			again := clone.clone()
			clone.addPodIfNotPresent(other)
			check("a clone", clone, "other")
			check("a clone of the clone before", again)
		}()
	}
	wait.Wait()
	check("the snapshot, after its clones changed", snapshot.elasticQuotaInfos["ns"], "old")

	again := c.snapshotElasticQuota()
	c.updateElasticQuota(quotaOf("ns", nil, nil), quotaOf("ns", listOf("cpu", "1"), nil))
	must(live().deletePodIfPresent(old))
	check("the second snapshot, after the quota lost a pod", again.elasticQuotaInfos["ns"], "old", "pod")
	check("the quota", live(), "pod")
}

// BenchmarkPreFilter has 100 quotas with 300 pods each.
func BenchmarkPreFilter(b *testing.B) {
	c := &CapacityScheduling{fh: newOneNode(), elasticQuotaInfos: NewElasticQuotaInfos()}
	cpu := map[v1.ResourceName]string{v1.ResourceCPU: "1"}
	for i := 0; i < 100; i++ {
		namespace := fmt.Sprint("ns", i)
		info := newElasticQuotaInfo(namespace, listOf("cpu", "1000"), nil, nil)
		c.elasticQuotaInfos[namespace] = info
		for j := 0; j < 300; j++ {
			pod := podOf(namespace, fmt.Sprintf("7f2c9a1e-52e7-4ad1-9c0d-%06d%06d", i, j), cpu)
			if err := info.addPodIfNotPresent(pod); err != nil {
				b.Fatal(err)
			}
		}
	}
	pod := podOf("ns1", "pod", cpu)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		c.PreFilter(context.Background(), framework.NewCycleState(), pod)
	}
}
