// SPDX-License-Identifier: Apache-2.0

package podfilter

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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func mustNew(t testing.TB, profile string, args runtime.Object) *PodFilter {
	t.Helper()
	return plugintest.New(t, New, profile, args, nil).(*PodFilter)
}

// TestPreFilterUsesTheFirstMatchingRule is about the order of rules, and that a rule has all its conditions. What meets a
// condition is tested in filterrule.
func TestPreFilterUsesTheFirstMatchingRule(t *testing.T) {
	gpu := &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}
	const noGPU, byDefault = `pod(s) were denied by rule "no-gpu" of PodFilter`, "pod(s) were denied by PodFilter: no rule matched, and defaultAction is Deny"
	deny := config.PodFilterRule{Name: "no-gpu", Action: config.FilterDeny, PodNames: []string{"pod"}, Namespaces: []string{"team-?"}, PodSelector: gpu}
	allow := config.PodFilterRule{Name: "but-the-team", Action: config.FilterAllow, Namespaces: []string{"team-1"}}
	both, exceptionLast := []config.PodFilterRule{allow, deny}, []config.PodFilterRule{deny, allow}
	pod := func(namespace, name, gpu string) *v1.Pod {
		return st.MakePod().Namespace(namespace).Name(name).Label("gpu", gpu).Obj()
	}
	for _, tt := range []struct {
		name          string
		rules         []config.PodFilterRule
		defaultAction config.FilterAction
		pod           *v1.Pod
		// want is the message of the rejection; none means that the pod passes.
		want string
	}{
		{"all conditions of a rule hold", both, config.FilterAllow, pod("team-2", "pod", "true"), noGPU},
		{"all but the name", both, config.FilterAllow, pod("team-2", "pod-1", "true"), ""},
		{"all but the namespace", both, config.FilterAllow, pod("b", "pod", "true"), ""},
		{"all but the label", both, config.FilterAllow, pod("team-2", "pod", "false"), ""},
		{"an exception before the rule", both, config.FilterDeny, pod("team-1", "pod", "true"), ""},
		{"an exception after the rule comes too late", exceptionLast, config.FilterAllow, pod("team-1", "pod", "true"), noGPU},
		{"the default action denies what no rule matches", both, config.FilterDeny, pod("other", "pod", "true"), byDefault},
		{"the default action allows what no rule matches", both, config.FilterAllow, pod("other", "pod", "true"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := mustNew(t, "profile", &config.PodFilterArgs{Rules: tt.rules, DefaultAction: tt.defaultAction})
			status := plugin.PreFilter(context.Background(), framework.NewCycleState(), tt.pod)
			if status.Message() != tt.want || tt.want != "" && status.Code() != framework.UnschedulableAndUnresolvable {
				t.Errorf("got %v %q, want %q", status.Code(), status.Message(), tt.want)
			}
		})
	}
}

func TestEventsToRegister(t *testing.T) {
	if events := (&PodFilter{}).EventsToRegister(); len(events) != 0 {
		t.Errorf("got the events %v, want none", events)
	}
}

// denyByName denies the pods called "bad", and by default whatever is not called "good".
func denyByName() *config.PodFilterArgs {
	return &config.PodFilterArgs{
		Rules: []config.PodFilterRule{
			{Name: "bad", Action: config.FilterDeny, PodNames: []string{"bad"}},
			{Name: "good", Action: config.FilterAllow, PodNames: []string{"good"}},
		},
		DefaultAction: config.FilterDeny,
	}
}

func TestPreFilterCountsRejections(t *testing.T) {
	one, two := mustNew(t, "counted-1", denyByName()), mustNew(t, "counted-2", denyByName())
	for _, call := range []struct {
		plugin *PodFilter
		pods   []string
	}{
		{plugin: one, pods: []string{"bad", "bad", "good", "ugly"}},
		{plugin: two, pods: []string{"bad", "good"}},
	} {
		for _, name := range call.pods {
			call.plugin.PreFilter(context.Background(), nil, st.MakePod().Name(name).Obj())
		}
	}
	for _, want := range []struct {
		profile, rule string
		count         float64
	}{
		{"counted-1", "bad", 2}, {"counted-1", "good", 0}, {"counted-1", "defaultAction", 1},
		{"counted-2", "bad", 1}, {"counted-2", "defaultAction", 0},
	} {
		if got := plugintest.MetricValue(t, rejections.WithLabelValues(want.profile, want.rule)); got != want.count {
			t.Errorf("profile %s, rule %s: counted %g rejections, want %g", want.profile, want.rule, got, want.count)
		}
	}
}

func TestPreFilterDoesNotCountADryRun(t *testing.T) {
	plugin := mustNew(t, "what-if", denyByName())
	state := framework.NewCycleState()
	whatif.Mark(state)
	if status := plugin.PreFilter(context.Background(), state, st.MakePod().Name("bad").Obj()); status.IsSuccess() {
		t.Error("the pod is not rejected")
	}
	if got := plugintest.MetricValue(t, rejections.WithLabelValues("what-if", "bad")); got != 0 {
		t.Errorf("counted %g rejections, want none", got)
	}
}

// BenchmarkPreFilter is one call for one pod, whatever the number of nodes: its cost per node is for 5,000 of them.
// None of the 100 rules matches.
func BenchmarkPreFilter(b *testing.B) {
	const nodes = 5000
	args := &config.PodFilterArgs{DefaultAction: config.FilterAllow}
	for i := 0; i < 100; i++ {
		args.Rules = append(args.Rules, config.PodFilterRule{
			Name: fmt.Sprintf("rule-%d", i), Action: config.FilterDeny, PodNames: []string{fmt.Sprintf("*-%d", i)},
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		})
	}
	plugin := mustNew(b, "benchmark", args)
	pod := st.MakePod().Name("web-1").Namespace("default").Label("app", "db").Obj()
	plugintest.PerNode(b, nodes, func(int) {
		if status := plugin.PreFilter(context.Background(), nil, pod); !status.IsSuccess() {
			b.Fatal(status.Message())
		}
	})
}
