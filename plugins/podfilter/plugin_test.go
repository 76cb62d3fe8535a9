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

func TestPreFilterUsesTheFirstMatchingRule(t *testing.T) {
	gpu := &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}
	notTesting := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "stage", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"testing"}},
	}}
	const byDefault = "pod(s) were denied by PodFilter: no rule matched, and defaultAction is Deny"
	tests := []struct {
		name          string
		rules         []config.PodFilterRule
		defaultAction config.FilterAction
		pod           *v1.Pod
		// want is the message of the rejection; none means that the pod passes.
		want string
	}{
		{
			name:  "a rule that denies by name",
			rules: []config.PodFilterRule{{Name: "no-canary", Action: config.FilterDeny, PodNames: []string{"web-*", "*-canary-?"}}},
			pod:   st.MakePod().Name("db-canary-1").Obj(),
			want:  `pod(s) were denied by rule "no-canary" of PodFilter`,
		},
		{
			name:  "a rule that denies other names",
			rules: []config.PodFilterRule{{Name: "no-canary", Action: config.FilterDeny, PodNames: []string{"*-canary-?"}}},
			pod:   st.MakePod().Name("db-canary-10").Obj(),
		},
		{
			name:  "a rule that denies by namespace",
			rules: []config.PodFilterRule{{Name: "no-tests", Action: config.FilterDeny, Namespaces: []string{"test-?"}}},
			pod:   st.MakePod().Name("pod").Namespace("test-1").Obj(),
			want:  `pod(s) were denied by rule "no-tests" of PodFilter`,
		},
		{
			name:  "a rule that denies by label",
			rules: []config.PodFilterRule{{Name: "no-gpu", Action: config.FilterDeny, PodSelector: gpu}},
			pod:   st.MakePod().Name("pod").Label("gpu", "true").Obj(),
			want:  `pod(s) were denied by rule "no-gpu" of PodFilter`,
		},
		{
			name:  "a pod without labels, and a rule for a label",
			rules: []config.PodFilterRule{{Name: "no-gpu", Action: config.FilterDeny, PodSelector: gpu}},
			pod:   st.MakePod().Name("pod").Obj(),
		},
		{
			name:  "a pod without labels, and a rule for the absence of a label's value",
			rules: []config.PodFilterRule{{Name: "only-tests", Action: config.FilterDeny, PodSelector: notTesting}},
			pod:   st.MakePod().Name("pod").Obj(),
			want:  `pod(s) were denied by rule "only-tests" of PodFilter`,
		},
		{
			name:  "an empty selector matches every pod",
			rules: []config.PodFilterRule{{Name: "closed", Action: config.FilterDeny, PodSelector: &metav1.LabelSelector{}}},
			pod:   st.MakePod().Name("pod").Obj(),
			want:  `pod(s) were denied by rule "closed" of PodFilter`,
		},
		{
			name: "all conditions of a rule must hold: name and label do, the namespace does not",
			rules: []config.PodFilterRule{
				{Name: "x", Action: config.FilterDeny, PodNames: []string{"pod"}, Namespaces: []string{"a"}, PodSelector: gpu},
			},
			pod: st.MakePod().Name("pod").Namespace("b").Label("gpu", "true").Obj(),
		},
		{
			name: "all conditions of a rule must hold: namespace and label do, the name does not",
			rules: []config.PodFilterRule{
				{Name: "x", Action: config.FilterDeny, PodNames: []string{"pod"}, Namespaces: []string{"a"}, PodSelector: gpu},
			},
			pod: st.MakePod().Name("pod-1").Namespace("a").Label("gpu", "true").Obj(),
		},
		{
			name: "an exception before the rule",
			rules: []config.PodFilterRule{
				{Name: "but-the-team", Action: config.FilterAllow, Namespaces: []string{"team"}},
				{Name: "no-gpu", Action: config.FilterDeny, PodSelector: gpu},
			},
			defaultAction: config.FilterDeny,
			pod:           st.MakePod().Name("pod").Namespace("team").Label("gpu", "true").Obj(),
		},
		{
			name: "an exception after the rule comes too late",
			rules: []config.PodFilterRule{
				{Name: "no-gpu", Action: config.FilterDeny, PodSelector: gpu},
				{Name: "but-the-team", Action: config.FilterAllow, Namespaces: []string{"team"}},
			},
			pod:  st.MakePod().Name("pod").Namespace("team").Label("gpu", "true").Obj(),
			want: `pod(s) were denied by rule "no-gpu" of PodFilter`,
		},
		{
			name:          "the default action denies what no rule matches",
			rules:         []config.PodFilterRule{{Name: "team", Action: config.FilterAllow, Namespaces: []string{"team"}}},
			defaultAction: config.FilterDeny,
			pod:           st.MakePod().Name("pod").Namespace("other").Obj(),
			want:          byDefault,
		},
		{
			name:  "the default action allows what no rule matches",
			rules: []config.PodFilterRule{{Name: "team", Action: config.FilterDeny, Namespaces: []string{"team"}}},
			pod:   st.MakePod().Name("pod").Namespace("other").Obj(),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.defaultAction == "" {
				tt.defaultAction = config.FilterAllow
			}
			plugin := mustNew(t, "profile", &config.PodFilterArgs{Rules: tt.rules, DefaultAction: tt.defaultAction})
			status := plugin.PreFilter(context.Background(), framework.NewCycleState(), tt.pod)
			if tt.want == "" && !status.IsSuccess() {
				t.Errorf("the pod is rejected: %v %q", status.Code(), status.Message())
			}
			if tt.want != "" && (status.Code() != framework.UnschedulableAndUnresolvable || status.Message() != tt.want) {
				t.Errorf("got %v %q, want %v %q", status.Code(), status.Message(), framework.UnschedulableAndUnresolvable, tt.want)
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
