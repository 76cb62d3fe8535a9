// SPDX-License-Identifier: Apache-2.0

package noderesources

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestHugeQuantitiesAreRejectedAndScored(t *testing.T) {
	const huge = "18446743073709551616"
	node := st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{
		"cpu": "4", "memory": "8Gi", "pods": "10", "example.com/x": "9E",
	}).Obj()
	on := st.MakePod().Name("on").UID("on").Node("node").Req(map[v1.ResourceName]string{"cpu": huge, "memory": huge}).Obj()
	for name, tt := range map[string]struct {
		pod, on *v1.Pod
		fits    bool
	}{
		"memory":               {pod: st.MakePod().Req(map[v1.ResourceName]string{"memory": huge}).Obj()},
		"cpu":                  {pod: st.MakePod().Req(map[v1.ResourceName]string{"cpu": "10P"}).Obj()},
		"a sum":                {pod: st.MakePod().Req(map[v1.ResourceName]string{"memory": "5E"}).Req(map[v1.ResourceName]string{"memory": "5E"}).Obj()},
		"beside":               {pod: st.MakePod().Req(map[v1.ResourceName]string{"memory": "1"}).Obj(), on: on},
		"no request beside it": {pod: st.MakePod().Container("image").Obj(), on: on, fits: true},
		"of a resource of which the node has as much": {
			pod: st.MakePod().Req(map[v1.ResourceName]string{"example.com/x": "8E"}).Obj(), fits: true,
		},
	} {
		for _, strategy := range []config.ScoringStrategyType{config.LeastAllocated, config.MostAllocated, config.RequestedToCapacityRatio} {
			t.Run(name+", "+string(strategy), func(t *testing.T) {
				var pods []*v1.Pod
				if tt.on != nil {
					pods = append(pods, tt.on)
				}
				snapshot := cache.NewSnapshot(pods, []*v1.Node{node})
				handle, err := runtime.NewFramework(nil, nil, runtime.WithSnapshotSharedLister(snapshot))
				if err != nil {
					t.Fatal(err)
				}
				plugin, err := NewFit(&config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
					Type:      strategy,
					Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}, {Name: "example.com/x", Weight: 1}},
					RequestedToCapacityRatio: &config.RequestedToCapacityRatioParam{
						Shape: []config.UtilizationShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}},
					},
				}}, handle, feature.Features{})
				if err != nil {
					t.Fatal(err)
				}
				fit, state := plugin.(*Fit), framework.NewCycleState()
				fit.PreFilter(context.Background(), state, tt.pod)
				nodeInfo, err := snapshot.Get("node")
				if err != nil {
					t.Fatal(err)
				}
				if status := fit.Filter(context.Background(), state, tt.pod, nodeInfo); status.IsSuccess() != tt.fits {
					t.Errorf("Filter returns %v, want success %v", status, tt.fits)
				}
				score, status := fit.Score(context.Background(), state, tt.pod, "node")
				scores := make(framework.NodeScoreList, 1)
				fit.ScoreNodes(state, tt.pod, []*framework.NodeInfo{nodeInfo}, scores)
				if !status.IsSuccess() || score < 0 || score > framework.MaxNodeScore || scores[0].Score != score {
					t.Errorf("the scores are %d (%v) and %d, want the same from 0 to 100", score, status, scores[0].Score)
				}
			})
		}
	}
}
