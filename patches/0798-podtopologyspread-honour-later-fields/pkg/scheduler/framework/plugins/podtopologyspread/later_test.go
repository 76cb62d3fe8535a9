// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	plugintesting "k8s.io/kubernetes/pkg/scheduler/framework/plugins/testing"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestLaterFieldsOfConstraints has four nodes: a and d are in zone 1, b in 2, c in 3. a and b are in the pool x, c has a
// taint. A pod web is on a, b and d, so that zone 1 has 2, zone 2 has 1 and zone 3 none. Another pod web has maxSkew 1.
func TestLaterFieldsOfConstraints(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	type spread = laterfields.Spread
	for _, tt := range []struct {
		name      string
		spread    spread
		inPool    bool
		tolerates bool
		// added and removed are nodes on which preemption adds or removes a pod web.
		added, removed string
		// passed are the nodes that Filter accepts, and counted the pods in the zones 1 to 3 for a soft constraint.
		passed, counted string
	}{
		{name: "none: the least is 0, in zone 3", passed: "c", counted: "2 1 0"},
		{name: "none, in a pool: zone 3 does not count, and d counts for Filter", inPool: true, passed: "b c", counted: "1 1 0"},
		{name: "affinity ignored", spread: spread{NodeAffinityPolicy: "Ignore"}, inPool: true, passed: "c", counted: "2 1 0"},
		{name: "affinity honoured: d does not count", spread: spread{NodeAffinityPolicy: "Honor"}, inPool: true, passed: "a b c d", counted: "1 1 0"},
		{name: "taints ignored", spread: spread{NodeTaintsPolicy: "Ignore"}, passed: "c", counted: "2 1 0"},
		{name: "taints honoured: zone 3 does not count", spread: spread{NodeTaintsPolicy: "Honor"}, passed: "b c", counted: "2 1 0"},
		{name: "taints honoured, and tolerated", spread: spread{NodeTaintsPolicy: "Honor"}, tolerates: true, passed: "c", counted: "2 1 0"},
		{name: "as many domains", spread: spread{MinDomains: 2}, inPool: true, passed: "a b c d", counted: "1 1 0"},
		{name: "fewer domains: the least is 0", spread: spread{MinDomains: 3}, inPool: true, passed: "c", counted: "1 1 0"},

		{name: "add, affinity ignored", spread: spread{NodeAffinityPolicy: "Ignore"}, inPool: true, added: "c", passed: "b c", counted: "2 1 1"},
		{name: "add, affinity honoured", spread: spread{NodeAffinityPolicy: "Honor"}, inPool: true, added: "d", passed: "a b c d", counted: "1 1 0"},
		{name: "add, taints honoured", spread: spread{NodeTaintsPolicy: "Honor"}, added: "c", passed: "b c", counted: "2 1 0"},
		{name: "remove, taints honoured", spread: spread{NodeTaintsPolicy: "Honor"}, removed: "a", passed: "a b c d", counted: "1 1 0"},
		{name: "remove, fewer domains", spread: spread{MinDomains: 3}, inPool: true, removed: "a", passed: "a c d", counted: "0 1 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := []*v1.Node{
				st.MakeNode().Name("a").Label("zone", "1").Label("pool", "x").Obj(),
				st.MakeNode().Name("b").Label("zone", "2").Label("pool", "x").Obj(),
				st.MakeNode().Name("c").Label("zone", "3").Taints([]v1.Taint{{Key: "only", Effect: v1.TaintEffectNoSchedule}}).Obj(),
				st.MakeNode().Name("d").Label("zone", "1").Obj(),
			}
			four := nodes
			for i := 0; i < podindex.MinNodes; i++ {
				nodes = append(nodes, st.MakeNode().Name(fmt.Sprint("without-zone-", i)).Obj())
			}
			on := func(node string) *v1.Pod {
				return st.MakePod().Name(node).UID(node).Label("app", "web").Node(node).Obj()
			}
			make := func(action v1.UnsatisfiableConstraintAction) *v1.Pod {
				pod := st.MakePod().Name("next").UID("next").Label("app", "web").SpreadConstraint(2, "other", "Other", web).SpreadConstraint(1, "zone", action, web)
				if tt.inPool {
					pod = pod.NodeSelector(map[string]string{"pool": "x"})
				}
				if tt.tolerates {
					pod.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
				}
				return pod.Obj()
			}
			// The first constraint is neither hard nor soft: that of the zone has the index 1.
			laterfields.Pods.Set("next", &laterfields.Found{Spread: []spread{{}, tt.spread}})
			defer laterfields.Pods.Delete("next")
			ctx, args := context.Background(), &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}

			snapshot := cache.NewSnapshot([]*v1.Pod{on("a"), on("b"), on("d")}, nodes)
			pl := plugintesting.SetupPlugin(t, New, args, snapshot).(*PodTopologySpread)
			state, hard := framework.NewCycleState(), make(v1.DoNotSchedule)
			if status := pl.PreFilter(ctx, state, hard); !status.IsSuccess() {
				t.Fatal(status)
			}
			state = state.Clone()
			running := []*v1.Pod{}
			for _, name := range []string{"a", "b", "c", "d"} {
				node, _ := snapshot.Get(name)
				if name == tt.added {
					pl.AddPod(ctx, state, hard, framework.NewPodInfo(on(name)), node)
				}
				if name == tt.removed {
					pl.RemovePod(ctx, state, hard, framework.NewPodInfo(on(name)), node)
				}
				if name == tt.added || name != tt.removed && name != "c" {
					running = append(running, on(name))
				}
			}
			if tt.added == "d" {
				running = append(running, st.MakePod().Name("2").UID("2").Label("app", "web").Node("d").Obj())
			}
			var passed []string
			for _, node := range four {
				info, _ := snapshot.Get(node.Name)
				if pl.Filter(ctx, state, hard, info).IsSuccess() {
					passed = append(passed, node.Name)
				}
			}
			if got := strings.Join(passed, " "); got != tt.passed {
				t.Errorf("Filter accepts %q, want %q", got, tt.passed)
			}

			pl = plugintesting.SetupPlugin(t, New, args, cache.NewSnapshot(running, nodes)).(*PodTopologySpread)
			state = framework.NewCycleState()
			if status := pl.PreScore(ctx, state, make(v1.ScheduleAnyway), four); !status.IsSuccess() {
				t.Fatal(status)
			}
			s, err := getPreScoreState(state)
			if err != nil {
				t.Fatal(err)
			}
			var counted []string
			for _, zone := range []string{"1", "2", "3"} {
				counted = append(counted, fmt.Sprint(*s.TopologyPairToPodCounts[topologyPair{"zone", zone}]))
			}
			if got := strings.Join(counted, " "); got != tt.counted {
				t.Errorf("PreScore counts %q, want %q", got, tt.counted)
			}
		})
	}
}
