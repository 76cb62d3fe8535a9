// SPDX-License-Identifier: Apache-2.0

package myscoreplugin

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

func TestPlace(t *testing.T) {
	tests := []struct {
		name      string
		value     string
		preferred []string
		want      int64
	}{
		{name: "the only preferred value: 1 - 0", value: "ssd", preferred: []string{"ssd"}, want: 1},
		{name: "first of three: 3 - 0", value: "nvme", preferred: []string{"nvme", "ssd", "hdd"}, want: 3},
		{name: "second of three: 3 - 1", value: "ssd", preferred: []string{"nvme", "ssd", "hdd"}, want: 2},
		{name: "last of three: 3 - 2", value: "hdd", preferred: []string{"nvme", "ssd", "hdd"}, want: 1},
		{name: "a value that is not listed", value: "tape", preferred: []string{"nvme", "ssd", "hdd"}, want: 0},
		{name: "an empty value that is not listed", value: "", preferred: []string{"ssd"}, want: 0},
		{name: "an empty value that is listed: 2 - 1", value: "", preferred: []string{"ssd", ""}, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := place(tt.value, tt.preferred); got != tt.want {
				t.Errorf("place(%q, %q) = %d, want %d", tt.value, tt.preferred, got, tt.want)
			}
		})
	}
}

// newPlugin makes the plugin as the scheduler does, with a snapshot of the given nodes.
func newPlugin(t testing.TB, args *config.MyScorePluginArgs, nodes ...*v1.Node) *MyScorePlugin {
	t.Helper()
	return plugintest.New(t, New, "my-scheduler", args, cache.NewSnapshot(nil, nodes)).(*MyScorePlugin)
}

func TestFilterAndScore(t *testing.T) {
	nodes := []*v1.Node{
		st.MakeNode().Name("fast").Label("disktype", "ssd").Obj(),
		st.MakeNode().Name("slow").Label("disktype", "hdd").Obj(),
		st.MakeNode().Name("unlabelled").Obj(),
	}
	plugin := newPlugin(t, &config.MyScorePluginArgs{NodeLabel: pointer.String("disktype"), PreferredValues: []string{"ssd"}}, nodes...)
	pod := st.MakePod().Name("pod").Obj()

	wantCodes := map[string]framework.Code{
		"fast":       framework.Success,
		"slow":       framework.Success,
		"unlabelled": framework.UnschedulableAndUnresolvable,
	}
	for _, node := range nodes {
		status := plugin.Filter(context.Background(), framework.NewCycleState(), pod, plugintest.NodeInfo(node))
		if status.Code() != wantCodes[node.Name] {
			t.Errorf("Filter(%s) = %v %q, want %v", node.Name, status.Code(), status.Message(), wantCodes[node.Name])
		}
		if !status.IsSuccess() && !strings.Contains(status.Message(), `"disktype"`) {
			t.Errorf("Filter(%s) says %q, which does not name the label", node.Name, status.Message())
		}
	}

	// The place before normalisation: one value is preferred, so 1 - 0 for it and 0 for any other.
	for name, want := range map[string]int64{"fast": 1, "slow": 0} {
		got, status := plugin.Score(context.Background(), framework.NewCycleState(), pod, name)
		if !status.IsSuccess() || got != want {
			t.Errorf("Score(%s) = %d, %v, want %d", name, got, status, want)
		}
	}
	if _, status := plugin.Score(context.Background(), framework.NewCycleState(), pod, "gone"); status.Code() != framework.Error {
		t.Errorf("Score of a node that is not in the snapshot = %v, want an error", status)
	}
}

func TestNormalizeScore(t *testing.T) {
	tests := []struct {
		name   string
		scores []int64
		want   []int64
	}{
		{name: "the first of three values is there: 100 × 3/3, 100 × 2/3 = 66.67, 100 × 1/3 = 33.33, 0", scores: []int64{3, 2, 1, 0}, want: []int64{100, 66, 33, 0}},
		{name: "the best value that is there counts as the best: 100 × 1/2, 100 × 2/2, 0", scores: []int64{1, 2, 0}, want: []int64{50, 100, 0}},
		{name: "all alike", scores: []int64{2, 2}, want: []int64{100, 100}},
		{name: "no preferred value on any node", scores: []int64{0, 0}, want: []int64{0, 0}},
		{name: "no nodes", scores: nil, want: nil},
	}
	plugin := newPlugin(t, &config.MyScorePluginArgs{NodeLabel: pointer.String("disktype"), PreferredValues: []string{"nvme", "ssd", "hdd"}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var scores, want framework.NodeScoreList
			for i := range tt.scores {
				name := fmt.Sprintf("node-%d", i)
				scores = append(scores, framework.NodeScore{Name: name, Score: tt.scores[i]})
				want = append(want, framework.NodeScore{Name: name, Score: tt.want[i]})
			}
			status := plugin.ScoreExtensions().NormalizeScore(context.Background(), framework.NewCycleState(), st.MakePod().Obj(), scores)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			if !reflect.DeepEqual(scores, want) {
				t.Errorf("got %v, want %v", scores, want)
			}
		})
	}
}

func TestEventsToRegister(t *testing.T) {
	events := (&MyScorePlugin{}).EventsToRegister()
	want := framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable
	if len(events) != 1 || events[0].Resource != framework.Node || events[0].ActionType != want {
		t.Errorf("got the events %v, want new nodes, and labels, taints and resources of nodes alone", events)
	}
}

// TestFilterAllocates at most the status of a rejected node: the status itself, and the slice for its reason.
func TestFilterAllocates(t *testing.T) {
	plugin := newPlugin(t, &config.MyScorePluginArgs{NodeLabel: pointer.String("disktype"), PreferredValues: []string{"ssd"}})
	for node, want := range map[*v1.Node]float64{
		st.MakeNode().Name("fast").Label("disktype", "ssd").Obj(): 0,
		st.MakeNode().Name("unlabelled").Obj():                    2,
	} {
		info, pod := plugintest.NodeInfo(node), st.MakePod().Obj()
		plugintest.ExpectAllocations(t, node.Name, want, func() { plugin.Filter(context.Background(), nil, pod, info) })
	}
}

// nodesByDisk makes n nodes, whose disks take turns: ssd, hdd, tape.
func nodesByDisk(n int) ([]*v1.Node, []*framework.NodeInfo) {
	var nodes []*v1.Node
	var infos []*framework.NodeInfo
	for i := 0; i < n; i++ {
		node := st.MakeNode().Name(fmt.Sprintf("node-%d", i)).Label("disktype", []string{"ssd", "hdd", "tape"}[i%3]).Obj()
		nodes = append(nodes, node)
		infos = append(infos, plugintest.NodeInfo(node))
	}
	return nodes, infos
}

const benchmarkNodes = 5000

func BenchmarkFilter(b *testing.B) {
	pl, nodes, infos := benchmarkPlugin(b)
	state, pod := framework.NewCycleState(), st.MakePod().Obj()
	plugintest.PerNode(b, benchmarkNodes, func(int) {
		for i := range nodes {
			if status := pl.Filter(context.Background(), state, pod, infos[i]); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
	})
}

func BenchmarkScore(b *testing.B) {
	pl, nodes, _ := benchmarkPlugin(b)
	state, pod := framework.NewCycleState(), st.MakePod().Obj()
	plugintest.PerNode(b, benchmarkNodes, func(int) {
		for i := range nodes {
			if _, status := pl.Score(context.Background(), state, pod, nodes[i].Name); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
	})
}

func benchmarkPlugin(b *testing.B) (*MyScorePlugin, []*v1.Node, []*framework.NodeInfo) {
	nodes, infos := nodesByDisk(benchmarkNodes)
	plugin := newPlugin(b, &config.MyScorePluginArgs{NodeLabel: pointer.String("disktype"), PreferredValues: []string{"ssd", "hdd"}}, nodes...)
	return plugin, nodes, infos
}
