// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func mustNew(t testing.TB, profile string, args runtime.Object) *NodeFilter {
	t.Helper()
	return plugintest.New(t, New, profile, args, nil).(*NodeFilter)
}

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// TestFilterUsesTheFirstMatchingRule is about the order of rules, and that a rule has all its conditions. What meets a
// condition is tested in filterrule.
func TestFilterUsesTheFirstMatchingRule(t *testing.T) {
	const noGPU, byDefault = `node(s) were denied by rule "no-gpu" of NodeFilter`, "node(s) were denied by NodeFilter: no rule matched, and defaultAction is Deny"
	train := config.NodeFilterRule{Name: "gpu-for-training", Action: config.FilterAllow, NodeSelector: labelled("gpu", "true"),
		Namespaces: []string{"training-*"}, PodSelector: labelled("app", "train")}
	deny := config.NodeFilterRule{Name: "no-gpu", Action: config.FilterDeny, NodeNames: []string{"gpu-?"}, NodeSelector: labelled("gpu", "true")}
	both, exceptionLast, alone := []config.NodeFilterRule{train, deny}, []config.NodeFilterRule{deny, train}, []config.NodeFilterRule{train}
	pod := func(namespace, app string) *v1.Pod { return st.MakePod().Namespace(namespace).Label("app", app).Obj() }
	node := func(name, gpu string) *v1.Node { return st.MakeNode().Name(name).Label("gpu", gpu).Obj() }
	training := pod("training-1", "train")
	for _, tt := range []struct {
		name          string
		rules         []config.NodeFilterRule
		defaultAction config.FilterAction
		pod           *v1.Pod
		node          *v1.Node
		// want is the message of the rejection; none means that the node passes.
		want string
	}{
		{"a rule by name and label", both, config.FilterAllow, pod("web", "web"), node("gpu-1", "true"), noGPU},
		{"another name", both, config.FilterAllow, pod("web", "web"), node("gpu-10", "true"), ""},
		{"a rule that is for this pod", both, config.FilterAllow, training, node("gpu-1", "true"), ""},
		{"a rule that is for other namespaces", both, config.FilterAllow, pod("web", "train"), node("gpu-1", "true"), noGPU},
		{"a rule that is for other pods of the namespace", both, config.FilterAllow, pod("training-1", "web"), node("gpu-1", "true"), noGPU},
		{"an exception after the rule comes too late", exceptionLast, config.FilterAllow, training, node("gpu-1", "true"), noGPU},
		{"the default action denies what no rule matches", alone, config.FilterDeny, pod("web", "train"), node("gpu-1", "true"), byDefault},
		{"the default action does not count where a rule allows", alone, config.FilterDeny, training, node("gpu-1", "true"), ""},
		{"the default action allows what no rule matches", alone, config.FilterAllow, pod("web", "train"), node("gpu-1", "true"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := mustNew(t, "profile", &config.NodeFilterArgs{Rules: tt.rules, DefaultAction: tt.defaultAction})
			status := plugin.Filter(context.Background(), framework.NewCycleState(), tt.pod, plugintest.NodeInfo(tt.node))
			if status.Message() != tt.want || tt.want != "" && status.Code() != framework.UnschedulableAndUnresolvable {
				t.Errorf("got %v %q, want %q", status.Code(), status.Message(), tt.want)
			}
		})
	}
}

func TestFilterWithoutANode(t *testing.T) {
	plugin := mustNew(t, "profile", &config.NodeFilterArgs{Rules: denyOthersNodes(), DefaultAction: config.FilterAllow})
	if status := plugin.Filter(context.Background(), nil, st.MakePod().Obj(), framework.NewNodeInfo()); status.Code() != framework.Error {
		t.Errorf("got %v, want an error", status)
	}
}

func TestEventsToRegister(t *testing.T) {
	events := (&NodeFilter{}).EventsToRegister()
	want := framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable
	if len(events) != 1 || events[0].Resource != framework.Node || events[0].ActionType != want {
		t.Errorf("got the events %v, want new nodes, and labels, taints and resources of nodes alone", events)
	}
}

// denyOthersNodes gives each of the namespaces a and b the nodes that begin with its name.
func denyOthersNodes() []config.NodeFilterRule {
	return []config.NodeFilterRule{
		{Name: "not-of-a", Action: config.FilterDeny, NodeNames: []string{"a-*"}, Namespaces: []string{"b"}},
		{Name: "not-of-b", Action: config.FilterDeny, NodeNames: []string{"b-*"}, Namespaces: []string{"a"}},
	}
}

func TestFilterCountsRejections(t *testing.T) {
	args := &config.NodeFilterArgs{Rules: denyOthersNodes(), DefaultAction: config.FilterDeny}
	one, two := mustNew(t, "counted-1", args), mustNew(t, "counted-2", args)
	pod := st.MakePod().Namespace("a").Obj()
	for _, name := range []string{"b-1", "b-2", "c-1"} {
		one.Filter(context.Background(), nil, pod, plugintest.NodeInfo(st.MakeNode().Name(name).Obj()))
	}
	two.Filter(context.Background(), nil, pod, plugintest.NodeInfo(st.MakeNode().Name("b-1").Obj()))
	for _, want := range []struct {
		profile, rule string
		count         float64
	}{
		{"counted-1", "not-of-b", 2}, {"counted-1", "not-of-a", 0}, {"counted-1", "defaultAction", 1},
		{"counted-2", "not-of-b", 1}, {"counted-2", "defaultAction", 0},
	} {
		if got := plugintest.MetricValue(t, rejections.WithLabelValues(want.profile, want.rule)); got != want.count {
			t.Errorf("profile %s, rule %s: counted %g rejections, want %g", want.profile, want.rule, got, want.count)
		}
	}
}

// TestFilterInParallel calls Filter for two pods at once, whose verdicts differ, as an extender may and a scheduling
// cycle does not: the rules that are kept for the one must not decide over the other. That holds for two objects of one
// pod, too, whose labels have changed. For the race detector it also writes to each status as the framework does.
func TestFilterInParallel(t *testing.T) {
	byLabel := []config.NodeFilterRule{
		{Name: "not-of-a", Action: config.FilterDeny, NodeNames: []string{"a-*"}, PodSelector: labelled("team", "b")},
		{Name: "not-of-b", Action: config.FilterDeny, NodeNames: []string{"b-*"}, PodSelector: labelled("team", "a")},
	}
	ofTeam := func(team string) *v1.Pod {
		return st.MakePod().Namespace("n").Name("pod").UID("uid").Label("team", team).Obj()
	}
	for _, tt := range []struct {
		name  string
		rules []config.NodeFilterRule
		pods  [2]*v1.Pod
	}{
		{"two pods", denyOthersNodes(), [2]*v1.Pod{st.MakePod().Namespace("a").Obj(), st.MakePod().Namespace("b").Obj()}},
		{"two objects of one pod", byLabel, [2]*v1.Pod{ofTeam("a"), ofTeam("b")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := mustNew(t, "parallel", &config.NodeFilterArgs{Rules: tt.rules, DefaultAction: config.FilterAllow})
			filterInParallel(t, plugin, tt.pods)
		})
	}
}

// filterInParallel has the first pod pass on a-1 alone, and the second on b-1.
func filterInParallel(t *testing.T, plugin *NodeFilter, pods [2]*v1.Pod) {
	nodes := []*framework.NodeInfo{plugintest.NodeInfo(st.MakeNode().Name("a-1").Obj()), plugintest.NodeInfo(st.MakeNode().Name("b-1").Obj())}
	plugintest.InParallel(16, func(worker int) {
		pod, name := worker%2, fmt.Sprintf("worker-%d", worker)
		for i := 0; i < 1000; i++ {
			node := i % 2
			status := plugin.Filter(context.Background(), nil, pods[pod], nodes[node])
			if status.IsSuccess() != (pod == node) {
				t.Errorf("pod %d, node %s: %v", pod, nodes[node].Node().Name, status.Code())
				return
			}
			if !status.IsSuccess() {
				status.SetFailedPlugin(name)
				status.AppendReason(name)
				if want := fmt.Sprintf("node(s) were denied by rule \"not-of-%s\" of NodeFilter, %s", nodes[node].Node().Name[:1], name); status.Message() != want {
					t.Errorf("got the message %q, want %q", status.Message(), want)
				}
			}
		}
	})
}

func TestFilterDoesNotAllocate(t *testing.T) {
	plugin := mustNew(t, "allocations", &config.NodeFilterArgs{Rules: denyOthersNodes(), DefaultAction: config.FilterAllow})
	pod, node := st.MakePod().Namespace("a").Obj(), plugintest.NodeInfo(st.MakeNode().Name("a-1").Obj())
	plugintest.ExpectAllocations(t, "Filter", 0, func() { plugin.Filter(context.Background(), nil, pod, node) })
}

// BenchmarkFilter is one pod against 5,000 nodes, one in ten with a GPU.
func BenchmarkFilter(b *testing.B) {
	nodes := make([]*framework.NodeInfo, 5000)
	for i := range nodes {
		node := st.MakeNode().Name(fmt.Sprintf("node-%04d", i)).Label("kubernetes.io/hostname", "h").Label("zone", "z").Obj()
		if i%10 == 0 {
			node.Labels["gpu"] = "true"
		}
		nodes[i] = plugintest.NodeInfo(node)
	}
	noGPU := config.NodeFilterRule{Name: "no-gpu", Action: config.FilterDeny, NodeSelector: labelled("gpu", "true")}
	many := func(rule config.NodeFilterRule) []config.NodeFilterRule {
		var rules []config.NodeFilterRule
		for i := 0; i < 100; i++ {
			rule.Name = fmt.Sprintf("rule-%d", i)
			rules = append(rules, rule)
		}
		return rules
	}
	for _, bm := range []struct {
		name  string
		rules []config.NodeFilterRule
	}{
		{name: "by label", rules: []config.NodeFilterRule{noGPU}},
		{name: "by name", rules: []config.NodeFilterRule{{Name: "edge", Action: config.FilterDeny, NodeNames: []string{"edge-*"}}}},
		{name: "with an exception for a namespace", rules: []config.NodeFilterRule{
			{Name: "training", Action: config.FilterAllow, NodeSelector: labelled("gpu", "true"), Namespaces: []string{"training-*"}}, noGPU,
		}},
		{name: "100 rules for other namespaces", rules: many(config.NodeFilterRule{
			Action: config.FilterDeny, NodeSelector: labelled("gpu", "true"), Namespaces: []string{"training-*"},
		})},
		{name: "100 rules by label", rules: many(config.NodeFilterRule{Action: config.FilterDeny, NodeSelector: labelled("gpu", "no")})},
	} {
		plugin := mustNew(b, "benchmark", &config.NodeFilterArgs{Rules: bm.rules, DefaultAction: config.FilterAllow})
		b.Run(bm.name, func(b *testing.B) {
			plugintest.PerNode(b, len(nodes), func(int) {
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default"}}
				for _, node := range nodes {
					plugin.Filter(context.Background(), nil, pod, node)
				}
			})
		})
	}
}
