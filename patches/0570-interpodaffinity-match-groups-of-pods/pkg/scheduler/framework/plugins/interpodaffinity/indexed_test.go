// SPDX-License-Identifier: Apache-2.0

package interpodaffinity

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	plugintesting "k8s.io/kubernetes/pkg/scheduler/framework/plugins/testing"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
)

// TestPrepareFilterSkipsPods checks that pods which no node can reject are not filtered, and others as by Filter.
func TestPrepareFilterSkipsPods(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"host": "node"}}}
	running := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "running", UID: "running", Namespace: "red"}}
	running.Spec.NodeName = node.Name
	running.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: "host", LabelSelector: &metav1.LabelSelector{}},
		},
	}}
	other := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	snapshot := cache.NewSnapshot([]*v1.Pod{running}, []*v1.Node{node, other})
	factory := frameworkruntime.FactoryAdapter(feature.Features{}, New)
	pl := plugintesting.SetupPlugin(t, factory, &config.InterPodAffinityArgs{}, snapshot).(*InterPodAffinity)
	ctx := context.Background()
	for namespace, rejects := range map[string]bool{"red": true, "blue": false} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: namespace}}
		state := framework.NewCycleState()
		if filter := pl.PrepareFilter(state, pod); filter == nil {
			t.Error("without PreFilter, PrepareFilter passes all nodes")
		} else if info, err := snapshot.Get("node"); err != nil || filter(info).Code() != framework.Error {
			t.Errorf("without PreFilter: %v, %v", filter(info), err)
		}
		if status := pl.PreFilter(ctx, state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		filter := pl.PrepareFilter(state, pod)
		if got := filter != nil; got != rejects {
			t.Errorf("in the namespace %s: a node may be rejected: %v", namespace, got)
		}
		nodes, err := snapshot.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes {
			want, got := pl.Filter(ctx, state, pod, node), (*framework.Status)(nil)
			if filter != nil {
				got = filter(node)
			}
			if !got.Equal(want) || got != nil && got.FailedPlugin() != Name {
				t.Errorf("in the namespace %s, the filter of %s: %v, want %v", namespace, node.Node().Name, got, want)
			}
		}
	}
}
