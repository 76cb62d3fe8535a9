// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestPreference(t *testing.T) {
	tests := []struct {
		name          string
		matching, all int64
		want          int64
	}{
		{"no rule concerns the pod", 0, 0, 0},
		{"no rule matches", 0, 7, 0},
		{"a third, rounded down: 33.3", 1, 3, 33},
		{"two thirds, rounded up: 66.7", 2, 3, 67},
		{"one of the least and one of the most weight: 0.99", 1, 101, 1},
		{"100 rules of the most weight, one of them: 1", 100, 10000, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := preference(tt.matching, tt.all); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestPull(t *testing.T) {
	tests := []struct {
		name                                            string
		admitted, shares, preference, preferences, want int64
	}{
		{"one share", 1, 1, 0, 0, 100},
		{"one share that does not admit the node", 0, 1, 0, 0, 0},
		{"a share and all preferences: 4 of 4", 1, 1, 100, 7, 100},
		{"a share against all preferences: 3 of 4", 1, 1, 0, 7, 75},
		{"all preferences against a share: 1 of 4", 0, 1, 100, 7, 25},
		{"all preferences against three shares: 1 of 10", 0, 3, 100, 7, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := pull(tt.admitted, tt.shares, tt.preference, tt.preferences); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestScoreByShare: 8 of 10 pods are on the spot node, where 60 to 80 % should be, and then 5 of 10, without any
// rejection.
func TestScoreByShare(t *testing.T) {
	share := spotShare(60, 80)
	share.WhenUnsatisfiable = ""
	nodes := []*v1.Node{spot("spot-1"), onDemand("on-demand")}
	tests := []struct {
		name         string
		onSpot       int
		pod          *v1.Pod
		rules        []config.NodeFilterRule
		spot, others int64
	}{
		{"9 of 11 would be too many: 8.8", 8, web("new"), nil, 0, 100},
		{"6 of 11 are too few: 6.6", 5, web("new"), nil, 100, 0},
		{"7 of 11 are within the bounds, and a preference decides", 7, web("new"), []config.NodeFilterRule{prefer("spot", 1, "spot")}, 100, 75},
		{"the share outweighs a preference", 8, web("new"), []config.NodeFilterRule{prefer("spot", 1, "spot")}, 25, 75},
		{"a pod that the share does not concern", 8, st.MakePod().Name("other").Obj(), nil, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pods := append(at("spot-1", webs("a", tt.onSpot)...), at("on-demand", webs("b", 10-tt.onSpot)...)...)
			f := newFramework(t, internalcache.NewSnapshot(pods, nodes), append([]config.NodeFilterRule{share}, tt.rules...)...)
			state := framework.NewCycleState()
			for name, said := range filter(t, f, state, tt.pod) {
				if said != "" {
					t.Errorf("%s is rejected: %s", name, said)
				}
			}
			scores := f.Score(t, state, tt.pod, nodes)
			explanation := fmt.Sprintf("Rule spot-share: %d of 10 pods are on its nodes, and 60 to 80 %% should be.", tt.onSpot)
			if got := f.Plugin.(*preferring).Explain(state, tt.pod, nil); got != explanation && tt.pod.Labels["app"] == "web" {
				t.Errorf("got %q, want %q", got, explanation)
			}
			if scores["spot-1"] != tt.spot || scores["on-demand"] != tt.others {
				t.Errorf("got %v, want %d and %d", scores, tt.spot, tt.others)
			}
		})
	}
}

func TestScoreByShareWithoutPreFilter(t *testing.T) {
	share := spotShare(60, 80)
	share.WhenUnsatisfiable = v1.ScheduleAnyway
	f := newFramework(t, internalcache.NewSnapshot(nil, []*v1.Node{spot("spot-1")}), share)
	plugin := f.Plugin.(*preferring)
	if _, status := plugin.Score(context.Background(), framework.NewCycleState(), web("pod"), "spot-1"); status.Code() != framework.Error {
		t.Errorf("got %v", status)
	}
	if status := plugin.ScoreNodes(framework.NewCycleState(), web("pod"), nil, nil); status.Code() != framework.Error {
		t.Errorf("many nodes: got %v", status)
	}
	if len(plugin.EventsToRegister()) != 1 || plugin.PreFilterExtensions() != nil {
		t.Error("a share that rejects nothing needs no events of pods, and preemption cannot help it")
	}
}

func prefer(name string, weight int32, nodes string, namespaces ...string) config.NodeFilterRule {
	return config.NodeFilterRule{Name: name, Action: config.FilterPrefer, Weight: weight, NodeSelector: labelled(nodes, "true"), Namespaces: namespaces}
}

func TestScore(t *testing.T) {
	nodes := []*v1.Node{
		st.MakeNode().Name("both").Label("ssd", "true").Label("new", "true").Obj(), st.MakeNode().Name("ssd").Label("ssd", "true").Obj(),
		st.MakeNode().Name("new").Label("new", "true").Obj(), st.MakeNode().Name("neither").Obj(),
	}
	rules := []config.NodeFilterRule{
		prefer("ssd", 30, "ssd"), {Name: "no-ssd-for-c", Action: config.FilterDeny, NodeSelector: labelled("ssd", "true"), Namespaces: []string{"c"}},
		prefer("new", 10, "new", "a"), prefer("gpu", 50, "gpu", "b"),
	}
	tests := []struct {
		name, namespace string
		rules           []config.NodeFilterRule
		want            map[string]int64
	}{
		{"two rules: 30 and 10 of 40", "a", rules, map[string]int64{"both": 100, "ssd": 75, "new": 25, "neither": 0}},
		{"two rules, one of which no node matches: 30 of 80", "b", rules, map[string]int64{"both": 38, "ssd": 38, "new": 0, "neither": 0}},
		{"one rule", "c", rules, map[string]int64{"both": 100, "ssd": 100, "new": 0, "neither": 0}},
		{"no rule for the pod", "d", rules[2:], map[string]int64{"both": 0, "ssd": 0, "new": 0, "neither": 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := internalcache.NewSnapshot(nil, nodes)
			for _, lister := range []framework.SharedLister{snapshot, telling{snapshot}} {
				f := newFramework(t, lister, tt.rules...)
				state, pod := framework.NewCycleState(), st.MakePod().Namespace(tt.namespace).Name("pod").Obj()
				if status := f.RunPreFilterPlugins(context.Background(), state, pod); !status.IsSuccess() {
					t.Fatal(status.AsError())
				}
				if scores := f.Score(t, state, pod, nodes); !reflect.DeepEqual(scores, tt.want) {
					t.Errorf("%T: got %v, want %v", lister, scores, tt.want)
				}
				infos, err := lister.NodeInfos().List()
				if err != nil {
					t.Fatal(err)
				}
				many := make(framework.NodeScoreList, len(infos))
				plugin := f.Plugin.(*preferring)
				if status := plugin.ScoreNodes(state, pod, infos, many); !status.IsSuccess() {
					t.Fatal(status.AsError())
				}
				for i, score := range many {
					if name := infos[i].Node().Name; score.Score != tt.want[name] {
						t.Errorf("%T: %s, with many: got %d, want %d", lister, name, score.Score, tt.want[name])
					}
				}
			}
		})
	}
}

// telling is a snapshot that can say what has changed, and does not know.
type telling struct{ framework.SharedLister }

func (telling) ChangedSince(int64) ([]*framework.NodeInfo, int64, bool) { return nil, 0, false }

// TestScoreAfterANodeChanges: what is kept of a node changes with it.
func TestScoreAfterANodeChanges(t *testing.T) {
	info := plugintest.NodeInfo(spot("node"))
	f := newFramework(t, telling{&settled{all: []*framework.NodeInfo{info}}}, prefer("spot", 1, "spot"))
	for _, node := range []*v1.Node{spot("node"), onDemand("node"), spot("node")} {
		info.SetNode(node)
		state, pod := framework.NewCycleState(), web("pod")
		f.RunPreFilterPlugins(context.Background(), state, pod)
		score, status := f.Plugin.(*preferring).Score(context.Background(), state, pod, "node")
		if want := map[string]int64{"true": 100, "false": 0}[node.Labels["spot"]]; score != want || !status.IsSuccess() {
			t.Errorf("spot=%s: got %d, %v, want %d", node.Labels["spot"], score, status, want)
		}
	}
}

// TestFilterIgnoresPrefer: the rules after it are tried, and the default action is for nodes that only it matches.
func TestFilterIgnoresPrefer(t *testing.T) {
	plugin := plugintest.New(t, New, "prefer", &config.NodeFilterArgs{
		Rules: []config.NodeFilterRule{
			prefer("ssd", 1, "ssd"), {Name: "old", Action: config.FilterDeny, NodeNames: []string{"old"}},
			{Name: "new", Action: config.FilterAllow, NodeNames: []string{"new"}},
		}, DefaultAction: config.FilterDeny,
	}, nil)
	for node, fits := range map[string]bool{"old": false, "new": true, "other": false} {
		status := plugin.(framework.FilterPlugin).Filter(context.Background(), nil, st.MakePod().Obj(), plugintest.NodeInfo(st.MakeNode().Name(node).Label("ssd", "true").Obj()))
		if status.IsSuccess() != fits {
			t.Errorf("%s: %v", node, status)
		}
	}
}

func TestNewWithoutPreferIsNotAScorePlugin(t *testing.T) {
	plugin := plugintest.New(t, New, "filter", &config.NodeFilterArgs{Rules: denyOthersNodes(), DefaultAction: config.FilterAllow}, nil)
	if _, scores := plugin.(framework.ScorePlugin); scores {
		t.Error("each node of each pod is scored, for nothing")
	}
}

func TestScoreWithoutANode(t *testing.T) {
	f := newFramework(t, internalcache.NewSnapshot(nil, nil), prefer("ssd", 1, "ssd"))
	if _, status := f.Plugin.(framework.ScorePlugin).Score(context.Background(), framework.NewCycleState(), web("pod"), "gone"); status.Code() != framework.Error {
		t.Errorf("got %v", status)
	}
}

// TestFilterByShareDoesNotAllocate for a node that passes.
func TestFilterByShareDoesNotAllocate(t *testing.T) {
	f := newFramework(t, internalcache.NewSnapshot(nil, []*v1.Node{spot("spot-1")}), spotShare(0, 100))
	state, pod, info := framework.NewCycleState(), web("pod"), plugintest.NodeInfo(spot("spot-1"))
	f.RunPreFilterPlugins(context.Background(), state, pod)
	plugin := f.Plugin.(*NodeFilter)
	plugintest.ExpectAllocations(t, "Filter", 0, func() { plugin.Filter(context.Background(), state, pod, info) })
}

func TestScoreDoesNotAllocate(t *testing.T) {
	snapshot := internalcache.NewSnapshot(nil, []*v1.Node{spot("spot-1")})
	for _, lister := range []framework.SharedLister{snapshot, telling{snapshot}} {
		for _, namespace := range []string{"default", "else"} {
			f := newFramework(t, lister, prefer("spot", 1, "spot", namespace))
			plugin, state, pod := f.Plugin.(*preferring), framework.NewCycleState(), web("pod")
			f.RunPreFilterPlugins(context.Background(), state, pod)
			plugintest.ExpectAllocations(t, fmt.Sprintf("%T, rule for %s", lister, namespace), 0, func() {
				_, _ = plugin.Score(context.Background(), state, pod, "spot-1")
			})
		}
	}
}

// BenchmarkPolicy is one pod against 5,000 nodes, half of them spot: a share at Filter, preferences at Score.
func BenchmarkPolicy(b *testing.B) {
	var nodes []*v1.Node
	for i := 0; i < 5000; i++ {
		nodes = append(nodes, st.MakeNode().Name(fmt.Sprintf("node-%04d", i)).Label("spot", fmt.Sprint(i%2 == 0)).Label("zone", "z").Obj())
	}
	preferences := func(count int) (rules []config.NodeFilterRule) {
		for i := 0; i < count; i++ {
			rules = append(rules, prefer(fmt.Sprintf("prefer-%d", i), 10, "spot"))
		}
		return rules
	}
	for _, bm := range []struct {
		name  string
		rules []config.NodeFilterRule
	}{
		{"share", []config.NodeFilterRule{spotShare(0, 30)}},
		{"share for other pods", []config.NodeFilterRule{{
			Name: "other", Action: config.FilterShare, WhenUnsatisfiable: v1.DoNotSchedule, MaxPercent: spotShare(0, 30).MaxPercent, NodeSelector: labelled("spot", "true"), Namespaces: []string{"else"},
		}}},
		{"prefer", preferences(1)},
		{"prefer for other pods", []config.NodeFilterRule{prefer("other", 1, "spot", "else")}},
		{"3 preferences", preferences(3)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			f := newFramework(b, telling{internalcache.NewSnapshot(nil, nodes)}, bm.rules...)
			infos, err := f.SnapshotSharedLister().NodeInfos().List()
			if err != nil {
				b.Fatal(err)
			}
			scores := make(framework.NodeScoreList, len(infos))
			plugintest.PerNode(b, len(nodes), func(int) {
				state, pod := framework.NewCycleState(), web("pod")
				f.RunPreFilterPlugins(context.Background(), state, pod)
				if plugin, ok := f.Plugin.(*preferring); ok {
					plugin.ScoreNodes(state, pod, infos, scores)
					return
				}
				for _, node := range infos {
					f.Plugin.(*NodeFilter).Filter(context.Background(), state, pod, node)
				}
			})
		})
	}
}

// TestPreFilterInADryRun has a snapshot that cannot be listed: a dry run does not update the population.
func TestPreFilterInADryRun(t *testing.T) {
	args := &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{prefer("spot", 1, "spot")}}
	plugin := plugintest.New(t, New, "dry-run", args, telling{&settled{err: errors.New("no list")}}).(*preferring)
	state := framework.NewCycleState()
	whatif.Mark(state)
	if status := plugin.PreFilter(context.Background(), state, web("pod")); !status.IsSuccess() {
		t.Error(status.AsError())
	}
}
