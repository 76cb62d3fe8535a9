// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	plugintesting "k8s.io/kubernetes/pkg/scheduler/framework/plugins/testing"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestStateIsImmutable checks that later cycles do not change the state of an earlier one. The oracle compares the states
// themselves with stock's, by placements.
func TestStateIsImmutable(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	known, snapshot := cache.New(time.Hour, ctx.Done()), cache.NewEmptySnapshot()
	made := 0
	addPod := func(node string) *v1.Pod {
		made++
		pod := st.MakePod().Name(fmt.Sprint("pod-", made)).UID(fmt.Sprint("pod-", made)).Label("app", "web").Node(node).Obj()
		if err := known.AddPod(pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	update := func() []*framework.NodeInfo {
		if err := known.UpdateSnapshot(snapshot); err != nil {
			t.Fatal(err)
		}
		nodes, err := snapshot.List()
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	var pods []*v1.Pod
	for i := 0; i < 2*podindex.MinNodes; i++ {
		name := fmt.Sprint("node-", i)
		known.AddNode(st.MakeNode().Name(name).Label(v1.LabelHostname, name).Label("rack", fmt.Sprint(i%3)).Obj())
		if i%2 == 0 {
			pods = append(pods, addPod(name))
		}
	}
	update()
	args := &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}
	pl := plugintesting.SetupPlugin(t, New, args, snapshot).(*PodTopologySpread)
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	pod := st.MakePod().Name("next").Label("app", "web").
		SpreadConstraint(1, v1.LabelHostname, v1.DoNotSchedule, web).SpreadConstraint(1, "rack", v1.DoNotSchedule, web).Obj()
	for i := 0; i < 50; i++ {
		state, verdicts := framework.NewCycleState(), map[string]framework.Code{}
		if status := pl.PreFilter(ctx, state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		if getHardSpread(state) == nil {
			t.Fatal("PreFilter did not use the index")
		}
		nodes := update()
		for _, node := range nodes {
			verdicts[node.Node().Name] = pl.Filter(ctx, state, pod, node).Code()
		}
		if err := known.RemovePod(pods[0]); err != nil {
			t.Fatal(err)
		}
		pods = append(pods[1:], addPod(nodes[i%len(nodes)].Node().Name), addPod(nodes[i*7%len(nodes)].Node().Name))
		nodes = update()
		if status := pl.PreFilter(ctx, framework.NewCycleState(), pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		for _, node := range nodes {
			if got, want := pl.Filter(ctx, state, pod, node).Code(), verdicts[node.Node().Name]; got != want {
				t.Errorf("Filter(%s) = %v after another cycle, want %v", node.Node().Name, got, want)
			}
		}
	}
}
