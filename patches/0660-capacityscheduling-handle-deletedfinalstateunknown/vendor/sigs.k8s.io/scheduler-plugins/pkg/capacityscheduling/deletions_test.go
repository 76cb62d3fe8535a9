// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

// TestDeleteFinalStateUnknown passes the event that an informer sends when an object is gone after a relist.
func TestDeleteFinalStateUnknown(t *testing.T) {
	c := &CapacityScheduling{elasticQuotaInfos: ElasticQuotaInfos{"ns": newElasticQuotaInfo("ns", nil, nil, nil)}}
	pod := st.MakePod().Namespace("ns").Name("pod").UID("pod").Node("node").Obj()
	if err := c.elasticQuotaInfos["ns"].addPodIfNotPresent(pod); err != nil {
		t.Fatal(err)
	}
	c.deletePod(cache.DeletedFinalStateUnknown{Key: "ns/pod", Obj: pod})
	if n := len(c.elasticQuotaInfos["ns"].pods); n != 0 {
		t.Errorf("%d pods are counted after the only one was deleted", n)
	}
	quota := &v1alpha1.ElasticQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "quota"}}
	c.deleteElasticQuota(cache.DeletedFinalStateUnknown{Key: "ns/quota", Obj: quota})
	if n := len(c.elasticQuotaInfos); n != 0 {
		t.Errorf("%d quotas are known after the only one was deleted", n)
	}
}
