// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestPodIsResizedBeforeItIsAdded has a pod that was resized, or read with other requests, after it was assumed.
func TestPodIsResizedBeforeItIsAdded(t *testing.T) {
	cache := newSchedulerCache(0, 0, nil)
	cache.AddNode(st.MakeNode().Name("node").Obj())
	pod := func(cpu string) *v1.Pod {
		return st.MakePod().Name("a").UID("a").Node("node").Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj()
	}
	requested := func(step string, want int64, err error) {
		t.Helper()
		if got := cache.nodes["node"].info.Requested.MilliCPU; err != nil || got != want {
			t.Errorf("%s: %dm, error %v, want %dm", step, got, err, want)
		}
	}
	requested("assumed", 100, cache.AssumePod(pod("100m")))
	requested("added with more", 300, cache.AddPod(pod("300m")))
	requested("updated", 200, cache.UpdatePod(pod("300m"), pod("200m")))
	requested("removed", 0, cache.RemovePod(pod("200m")))
}
