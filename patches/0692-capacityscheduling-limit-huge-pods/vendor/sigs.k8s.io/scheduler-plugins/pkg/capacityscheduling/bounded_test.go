// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestHugePodsDoNotEmptyTheirQuota(t *testing.T) {
	max := v1.ResourceList{v1.ResourceCPU: resource.MustParse("10"), v1.ResourceMemory: resource.MustParse("10Gi")}
	quota := &ElasticQuotaInfo{Namespace: "a", pods: sets.NewString(), Min: framework.NewResource(nil), Max: maxLimit(max), Used: framework.NewResource(nil)}
	// Each fits an int64, and two of them do not.
	huge := v1.ResourceList{v1.ResourceCPU: resource.MustParse("7P"), v1.ResourceMemory: resource.MustParse("7E")}
	var pods []*v1.Pod
	for _, name := range []string{"first", "second"} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: huge}}}}}
		pod.Name, pod.UID = name, types.UID(name)
		if err := quota.addPodIfNotPresent(pod); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
	}
	one := &framework.Resource{MilliCPU: 1, Memory: 1}
	if !quota.usedOverMaxWith(one) {
		t.Errorf("%+v is used, and another pod is below the max", quota.Used)
	}
	if err := quota.deletePodIfPresent(pods[0]); err != nil {
		t.Fatal(err)
	}
	if !quota.usedOverMaxWith(one) {
		t.Errorf("%+v is used with one huge pod, and another pod is below the max", quota.Used)
	}
	if err := quota.deletePodIfPresent(pods[1]); err != nil {
		t.Fatal(err)
	}
	if quota.Used.MilliCPU != 0 || quota.Used.Memory != 0 {
		t.Errorf("%+v is used without pods", quota.Used)
	}
}
