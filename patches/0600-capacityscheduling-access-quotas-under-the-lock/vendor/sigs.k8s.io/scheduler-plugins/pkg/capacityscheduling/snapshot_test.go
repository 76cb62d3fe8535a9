// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"context"
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

// oneNode is the plugin's handle for a cluster of one node.
type oneNode struct {
	framework.Handle
	framework.NodeInfoLister
	node      *framework.NodeInfo
	nominated func() []*framework.PodInfo
}

func newOneNode(pods ...*v1.Pod) *oneNode {
	h := &oneNode{node: framework.NewNodeInfo(pods...), nominated: func() []*framework.PodInfo { return nil }}
	h.node.SetNode(st.MakeNode().Name("node").Obj())
	return h
}

func (h *oneNode) SnapshotSharedLister() framework.SharedLister { return h }

func (h *oneNode) NodeInfos() framework.NodeInfoLister { return h }

func (h *oneNode) List() ([]*framework.NodeInfo, error) { return []*framework.NodeInfo{h.node}, nil }

func (h *oneNode) NominatedPodsForNode(string) []*framework.PodInfo { return h.nominated() }

func podOf(namespace, name string, requests map[v1.ResourceName]string) *v1.Pod {
	return st.MakePod().Namespace(namespace).Name(name).UID(name).Req(requests).Obj()
}

func quotaOf(namespace string, min, max v1.ResourceList) *v1alpha1.ElasticQuota {
	return &v1alpha1.ElasticQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quota"},
		Spec:       v1alpha1.ElasticQuotaSpec{Min: min, Max: max},
	}
}

// TestPreFilterReadsItsSnapshot deletes a quota while PreFilter reads the nominated pods.
func TestPreFilterReadsItsSnapshot(t *testing.T) {
	cpu := map[v1.ResourceName]string{v1.ResourceCPU: "4"}
	h := newOneNode()
	c := &CapacityScheduling{fh: h, elasticQuotaInfos: NewElasticQuotaInfos()}
	lender := podOf("lender", "nominated", cpu)
	for _, namespace := range []string{"lender", "borrower"} {
		c.elasticQuotaInfos[namespace] = newElasticQuotaInfo(namespace, nil, nil, nil)
		c.elasticQuotaInfos[namespace].Min.MilliCPU = 2000
		c.elasticQuotaInfos[namespace].Max.MilliCPU = 8000
	}
	h.nominated = func() []*framework.PodInfo {
		c.deleteElasticQuota(quotaOf("lender", nil, nil))
		return []*framework.PodInfo{framework.NewPodInfo(lender)}
	}
	status := c.PreFilter(context.Background(), framework.NewCycleState(), podOf("borrower", "pod", cpu))
	if status.Code() != framework.Unschedulable {
		t.Errorf("a pod that borrows the quota of a nominated pod: %v", status)
	}
}

// TestAddElasticQuotaConcurrently fails in the race detector, or in the runtime's check of concurrent map access.
func TestAddElasticQuotaConcurrently(t *testing.T) {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	pods := corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace))
	c := &CapacityScheduling{elasticQuotaInfos: NewElasticQuotaInfos(), podLister: pods}
	var wait sync.WaitGroup
	for i := 0; i < 4; i++ {
		i := i
		wait.Add(1)
		go func() {
			defer wait.Done()
			for j := 0; j < 250; j++ {
				c.addElasticQuota(quotaOf(fmt.Sprint(i, "-", j), nil, nil))
			}
		}()
	}
	wait.Wait()
	if n := len(c.elasticQuotaInfos); n != 1000 {
		t.Errorf("%d quotas are known, want 1000", n)
	}
}
