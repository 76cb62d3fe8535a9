// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// notesOf returns the notes about a profile with the args of one plugin.
func notesOf(plugin string, args runtime.Object, enabled schedulerconfig.Plugins, extenders ...schedulerconfig.Extender) []string {
	scheme.Scheme.Default(args)
	p := &schedulerconfig.KubeSchedulerProfile{Plugins: &enabled, PluginConfig: []schedulerconfig.PluginConfig{{Name: plugin, Args: args}}}
	return checkedProfile{p, field.NewPath("profiles").Index(2), &enabled}.notes(extenders)
}

// enabled returns a list of plugins with weight 1.
func enabled(plugins ...string) schedulerconfig.PluginSet {
	var set schedulerconfig.PluginSet
	for _, plugin := range plugins {
		set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: plugin, Weight: 1})
	}
	return set
}

const restricted = "node-restriction.kubernetes.io/certified"

// rule returns a rule of NodeFilter for nodes with labels.
func rule(name string, action config.FilterAction, labels ...string) config.NodeFilterRule {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range labels {
		selector.MatchLabels[key] = "true"
	}
	return config.NodeFilterRule{Name: name, Action: action, NodeSelector: selector}
}

// restrictedAllow returns a rule that allows nodes by restricted labels.
func restrictedAllow(name string) config.NodeFilterRule {
	allow := rule(name, config.FilterAllow, restricted)
	allow.RestrictedLabels = true
	return allow
}

func TestNotesOfPlugins(t *testing.T) {
	chaosEverywhere := func(weight int32) schedulerconfig.Plugins {
		at := enabled("Chaos")
		score := schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "A", Weight: 2}, {Name: "Chaos", Weight: weight}, {Name: "B", Weight: 3}}}
		return schedulerconfig.Plugins{PreFilter: at, Filter: at, Score: score, Reserve: at}
	}
	chaos := &config.ChaosArgs{RejectPercent: 1, RandomScore: true, RandomBindPercent: 1}
	filterEverywhere := schedulerconfig.Plugins{PreFilter: enabled("NodeFilter"), Filter: enabled("NodeFilter"), Score: enabled("NodeFilter")}
	deny, share := config.NodeFilterRule{Name: "deny", Action: config.FilterDeny, NodeNames: []string{"*"}}, rule("share", config.FilterShare, restricted)
	share.WhenUnsatisfiable = v1.DoNotSchedule
	pull, unsaid := rule("pull", config.FilterShare, "spot"), rule("unsaid", config.FilterShare, "spot")
	pull.WhenUnsatisfiable = v1.ScheduleAnyway
	onSpot := rule("spot", config.FilterShare, "node.kubernetes.io/instance-type", "spot", restricted)
	onSpot.WhenUnsatisfiable = v1.DoNotSchedule
	rules := []config.NodeFilterRule{rule("certified", config.FilterAllow, restricted), deny, share, rule("prefer", config.FilterPrefer, "ssd")}
	most := int32(1)
	topology := &config.WorkloadTopologyArgs{AvoidAbove: &most, MaxPerNode: &most, PodSelector: &metav1.LabelSelector{}}
	topologyEverywhere := schedulerconfig.Plugins{
		PreFilter: enabled("WorkloadTopology"), Filter: enabled("WorkloadTopology"), PreScore: enabled("NodeLoad"), Score: enabled("WorkloadTopology"),
	}
	for _, tt := range []struct {
		name      string
		plugin    string
		args      runtime.Object
		enabled   schedulerconfig.Plugins
		extenders []schedulerconfig.Extender
		// want are notes after "note: profiles[2]: ".
		want []string
	}{
		{name: "enabled everywhere", plugin: "Chaos", args: chaos, enabled: chaosEverywhere(6)},
		{name: "enabled nowhere", plugin: "Chaos", args: chaos},
		{name: "asked for nothing", plugin: "Chaos", args: &config.ChaosArgs{}, enabled: schedulerconfig.Plugins{Score: enabled("Chaos", "A")}},
		{
			name: "too little weight", plugin: "Chaos", args: chaos, enabled: chaosEverywhere(5),
			want: []string{"Chaos has randomBindPercent, and with weight 5 at score other plugins and extenders may outweigh its random node: give it more than 5"},
		},
		{
			name: "too little weight for an extender", plugin: "Chaos", args: chaos, enabled: chaosEverywhere(14),
			extenders: []schedulerconfig.Extender{{PrioritizeVerb: "prioritize", Weight: 9}, {FilterVerb: "filter", Weight: 100}},
			want:      []string{"Chaos has randomBindPercent, and with weight 14 at score other plugins and extenders may outweigh its random node: give it more than 14"},
		},
		{
			name: "at filter alone", plugin: "Chaos", args: &config.ChaosArgs{RejectPercent: 1}, enabled: schedulerconfig.Plugins{Filter: enabled("Chaos")},
			want: []string{"Chaos has rejectPercent and is not enabled at preFilter: it rejects nothing"},
		},
		{name: "enabled everywhere", plugin: "NodeFilter", args: &config.NodeFilterArgs{Rules: rules}, enabled: filterEverywhere},
		{
			name: "enabled nowhere", plugin: "NodeFilter",
			args: &config.NodeFilterArgs{Rules: append([]config.NodeFilterRule{restrictedAllow("a"), rule("spot", config.FilterDeny, "spot")}, rules...)},
		},
		{
			name: "shares that rejected nodes in earlier versions", plugin: "NodeFilter", enabled: filterEverywhere,
			args: &config.NodeFilterArgs{Rules: []config.NodeFilterRule{pull, unsaid, share}},
			want: []string{"rules of NodeFilter with the action Share have no whenUnsatisfiable: unsaid; this has changed: they rejected nodes before, " +
				"and only prefer nodes now; set whenUnsatisfiable to ScheduleAnyway, or to DoNotSchedule to reject nodes again"},
		},
		{
			name: "labels that kubelets set", plugin: "NodeFilter", enabled: filterEverywhere,
			args: &config.NodeFilterArgs{Rules: append([]config.NodeFilterRule{
				onSpot, pull, rule("new", config.FilterAllow, "new"), rule("masters", config.FilterDeny, "node-role.kubernetes.io/master"),
			}, rules...)},
			want: []string{"rules of NodeFilter keep pods off nodes by labels that a kubelet can set on its own node: " +
				"spot (node.kubernetes.io/instance-type, spot), new (new); where a node must not be able to, use labels of node-restriction.kubernetes.io/ and restrictedLabels"},
		},
		{
			name: "a Deny after an Allow by restricted labels", plugin: "NodeFilter", enabled: filterEverywhere,
			args: &config.NodeFilterArgs{Rules: []config.NodeFilterRule{restrictedAllow("a"), share, deny, share}},
		},
		{
			name: "the default action Deny after an Allow by restricted labels", plugin: "NodeFilter", enabled: filterEverywhere,
			args: &config.NodeFilterArgs{Rules: []config.NodeFilterRule{deny, restrictedAllow("a")}, DefaultAction: config.FilterDeny},
		},
		{
			name: "no Deny after an Allow by restricted labels", plugin: "NodeFilter", enabled: filterEverywhere,
			args: &config.NodeFilterArgs{
				Rules:         []config.NodeFilterRule{restrictedAllow("a"), deny, restrictedAllow("b"), share, restrictedAllow("c")},
				DefaultAction: config.FilterAllow,
			},
			want: []string{"rules of NodeFilter allow nodes by restrictedLabels, but nothing after them denies the others: b, c; " +
				"add a rule with the action Deny, or defaultAction: Deny"},
		},
		{name: "enabled nowhere", plugin: "WorkloadTopology", args: topology},
		{
			name: "asked for nothing", plugin: "WorkloadTopology", args: &config.WorkloadTopologyArgs{},
			enabled: schedulerconfig.Plugins{Score: enabled("WorkloadTopology")},
			want:    []string{"WorkloadTopology has no podSelector and no namespaces: it concerns only pods with the annotation workload-topology.scheduler/job"},
		},
		{name: "enabled everywhere", plugin: "WorkloadTopology", args: topology, enabled: topologyEverywhere},
		{
			name: "too late", plugin: "WorkloadTopology", args: topology,
			enabled: schedulerconfig.Plugins{Filter: enabled("WorkloadTopology"), Score: enabled("WorkloadTopology", "NodeLoad")},
			want: []string{
				"WorkloadTopology has maxPerNode and is not enabled at preFilter: preemption makes no room for it",
				"WorkloadTopology has avoidAbove and NodeLoad is not enabled before score: the load of nodes is not known in time",
			},
		},
		{
			name: "at score alone", plugin: "WorkloadTopology", args: topology, enabled: schedulerconfig.Plugins{Score: enabled("WorkloadTopology")},
			want: []string{"WorkloadTopology has avoidAbove and NodeLoad is not enabled before score: the load of nodes is not known in time"},
		},
	} {
		t.Run(tt.plugin+" "+tt.name, func(t *testing.T) {
			var got []string
			for _, note := range notesOf(tt.plugin, tt.args, tt.enabled, tt.extenders...) {
				got = append(got, strings.TrimPrefix(note, "note: profiles[2]: "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesOfRestrictedLabels(t *testing.T) {
	profile := func(name string, at schedulerconfig.Plugins, rules ...config.NodeFilterRule) checkedProfile {
		args := []schedulerconfig.PluginConfig{{Name: "NodeFilter", Args: &config.NodeFilterArgs{Rules: rules}}}
		return checkedProfile{KubeSchedulerProfile: &schedulerconfig.KubeSchedulerProfile{SchedulerName: name, PluginConfig: args}, enabled: &at}
	}
	filter, score := schedulerconfig.Plugins{Filter: enabled("NodeFilter")}, schedulerconfig.Plugins{Score: enabled("NodeFilter")}
	other, allow := rule("a", config.FilterDeny), restrictedAllow("b")
	for _, tt := range []struct {
		name     string
		profiles []checkedProfile
		want     []string
	}{
		{name: "every profile filters, if by other rules", profiles: []checkedProfile{profile("a", filter, other, allow), profile("b", filter, other)}},
		{name: "no rule is restricted", profiles: []checkedProfile{profile("a", filter, other), profile("b", schedulerconfig.Plugins{})}},
		{name: "restricted rules are not enabled", profiles: []checkedProfile{profile("a", score, allow), profile("b", schedulerconfig.Plugins{})}},
		{
			name: "two profiles that do not filter",
			profiles: []checkedProfile{
				profile("a", schedulerconfig.Plugins{}), profile("b", filter, allow, other), profile("c", score, allow), profile("d", filter, allow),
			},
			want: []string{"note: rules of NodeFilter with restrictedLabels are in the profiles b, d, and it is not enabled at filter in a, c: " +
				"pods choose their profile, and can avoid the rules"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, restrictedNotes(tt.profiles)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatcherNotes(t *testing.T) {
	args := &config.NodeLoadArgs{Resources: []config.NodeLoadResource{{Name: "a", Query: "x"}, {Name: "cpu"}, {Name: "b", Query: "y"}, {Name: "memory", PodQuery: "z"}}}
	if notes := notesOf("NodeLoad", args, schedulerconfig.Plugins{}); len(notes) > 0 {
		t.Errorf("without matchers: %q", notes)
	}
	args.Prometheus.Matchers = []config.NodeLoadMatcher{{Label: "cluster", Operator: config.NodeLoadEqual, Value: "a"}}
	want := []string{"note: profiles[2].pluginConfig[0].args.prometheus.matchers: " +
		"they do not change the queries in resources, of a, b, memory: write the matchers there, too"}
	if diff := cmp.Diff(want, notesOf("NodeLoad", args, schedulerconfig.Plugins{})); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	args.Resources = args.Resources[1:2]
	if notes := notesOf("NodeLoad", args, schedulerconfig.Plugins{}); len(notes) > 0 {
		t.Errorf("with built-in queries: %q", notes)
	}
}
