// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

func TestNotesOfChaos(t *testing.T) {
	enabled := func(plugins ...string) schedulerconfig.PluginSet {
		var set schedulerconfig.PluginSet
		for _, plugin := range plugins {
			set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: plugin})
		}
		return set
	}
	weighted := func(chaos int32) schedulerconfig.PluginSet {
		return schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "A", Weight: 2}, {Name: "Chaos", Weight: chaos}, {Name: "B", Weight: 3}}}
	}
	everywhere := func(weight int32) schedulerconfig.Plugins {
		return schedulerconfig.Plugins{
			PreFilter: enabled("Chaos"), Filter: enabled("Chaos"), Score: weighted(weight), Reserve: enabled("Chaos"), Permit: enabled("Chaos"),
		}
	}
	all := config.ChaosArgs{RejectPercent: 1, RandomScore: true, MaxPermitDelay: metav1.Duration{Duration: time.Second}, RandomBindPercent: 1}
	tests := []struct {
		name    string
		args    config.ChaosArgs
		plugins schedulerconfig.Plugins
		// extenders have their own weights.
		extenders []schedulerconfig.Extender
		want      []string
	}{
		{name: "enabled everywhere", args: all, plugins: everywhere(6)},
		{name: "is not enabled in this profile", args: all},
		{name: "asked for nothing", plugins: schedulerconfig.Plugins{Score: weighted(1)}},
		{
			name: "with too little weight", args: all, plugins: everywhere(5),
			want: []string{"note: profiles[2]: Chaos has randomBindPercent, and with weight 5 at score other plugins and extenders may outweigh its random node: give it more than 5"},
		},
		{
			name: "with too little weight beside an extender", args: all, plugins: everywhere(14),
			extenders: []schedulerconfig.Extender{{PrioritizeVerb: "prioritize", Weight: 9}, {FilterVerb: "filter", Weight: 100}},
			want:      []string{"note: profiles[2]: Chaos has randomBindPercent, and with weight 14 at score other plugins and extenders may outweigh its random node: give it more than 14"},
		},
		{
			name: "at filter alone", args: config.ChaosArgs{RejectPercent: 1}, plugins: schedulerconfig.Plugins{Filter: enabled("Chaos")},
			want: []string{"note: profiles[2]: Chaos has rejectPercent and is not enabled at preFilter: it rejects nothing"},
		},
		{
			name: "another plugin at bind, and too late", plugins: schedulerconfig.Plugins{Bind: enabled("DefaultBinder", "Another")},
			want: []string{
				"note: profiles[2]: Another is enabled at bind after DefaultBinder, which binds every pod: list Another and then DefaultBinder under bind.enabled, and \"*\" under bind.disabled",
			},
		},
		{
			name: "at preFilter alone", args: all, plugins: schedulerconfig.Plugins{PreFilter: enabled("Chaos")},
			want: []string{
				"note: profiles[2]: Chaos has rejectPercent and is not enabled at filter: it rejects nothing",
				"note: profiles[2]: Chaos has randomScore and is not enabled at score: it scores nothing",
				"note: profiles[2]: Chaos has maxPermitDelay and is not enabled at permit: it delays nothing",
				"note: profiles[2]: Chaos has randomBindPercent and is not enabled at score: it redirects nothing",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &schedulerconfig.KubeSchedulerProfile{PluginConfig: []schedulerconfig.PluginConfig{{Name: "Chaos", Args: &tt.args}}}
			if diff := cmp.Diff(tt.want, pointNotes(field.NewPath("profiles").Index(2), p, &tt.plugins, tt.extenders)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesOfNodeFilter(t *testing.T) {
	everywhere := schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "NodeFilter", Weight: 1}}}
	all := schedulerconfig.Plugins{PreFilter: everywhere, Filter: everywhere, Score: everywhere}
	labelled := func(keys ...string) *metav1.LabelSelector {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, key := range keys {
			selector.MatchLabels[key] = "true"
		}
		return selector
	}
	const restricted = "node-restriction.kubernetes.io/certified"
	rules := []config.NodeFilterRule{
		{Name: "certified", Action: config.FilterAllow, NodeSelector: labelled(restricted)}, {Name: "deny", Action: config.FilterDeny, NodeNames: []string{"*"}},
		{Name: "share", Action: config.FilterShare, NodeSelector: labelled(restricted)}, {Name: "prefer", Action: config.FilterPrefer, NodeSelector: labelled("ssd")},
	}
	const noted = "note: profiles[2]: NodeFilter has rules with the action "
	type test struct {
		name          string
		rules         []config.NodeFilterRule
		defaultAction config.FilterAction
		plugins       schedulerconfig.Plugins
		want          []string
	}
	tests := []test{
		{name: "enabled everywhere", rules: rules, plugins: all},
		{name: "is not enabled in this profile", rules: append(rules, config.NodeFilterRule{Name: "spot", Action: config.FilterDeny, NodeSelector: labelled("spot")})},
		{
			name: "at filter alone", rules: rules, plugins: schedulerconfig.Plugins{Filter: everywhere},
			want: []string{
				noted + "Share and is not enabled at preFilter: their pods are not scheduled, because nothing is counted",
				noted + "Prefer and is not enabled at score: they prefer nothing",
			},
		},
		{
			name: "at score alone", rules: rules, plugins: schedulerconfig.Plugins{Score: everywhere},
			want: []string{
				noted + "Deny and is not enabled at filter: they deny nothing", noted + "Share and is not enabled at filter: they limit nothing",
				noted + "Share and is not enabled at preFilter: their pods are not scheduled, because nothing is counted",
			},
		},
		{
			name: "labels that kubelets set", plugins: all, rules: append([]config.NodeFilterRule{
				{Name: "spot", Action: config.FilterShare, NodeSelector: labelled("node.kubernetes.io/instance-type", "spot", restricted)},
				{Name: "new", Action: config.FilterAllow, NodeSelector: labelled("new")}, {Name: "masters", Action: config.FilterDeny, NodeSelector: labelled("node-role.kubernetes.io/master")},
			}, rules...),
			want: []string{
				"note: profiles[2]: rules of NodeFilter keep pods off nodes by labels that a kubelet can set on its own node: spot (node.kubernetes.io/instance-type, spot), new (new); " +
					"where a node must not be able to, use labels of node-restriction.kubernetes.io/ and restrictedLabels",
			},
		},
	}
	allow := func(name string) config.NodeFilterRule {
		return config.NodeFilterRule{Name: name, Action: config.FilterAllow, NodeSelector: labelled(restricted), RestrictedLabels: true}
	}
	deny, share := rules[1], rules[2]
	tests = append(tests, []test{
		{name: "an Allow by restricted labels that a Deny closes", rules: []config.NodeFilterRule{allow("a"), share, deny, share}, plugins: all},
		{name: "that the default action closes", rules: []config.NodeFilterRule{deny, allow("a")}, defaultAction: config.FilterDeny, plugins: all},
		{
			name: "that nothing closes", rules: []config.NodeFilterRule{allow("a"), deny, allow("b"), share, allow("c")}, defaultAction: config.FilterAllow, plugins: all,
			want: []string{
				"note: profiles[2]: rules of NodeFilter allow nodes by restrictedLabels, but nothing after them denies the others: b, c; " +
					"add a rule with the action Deny, or defaultAction: Deny",
			},
		},
	}...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := &config.NodeFilterArgs{Rules: tt.rules, DefaultAction: tt.defaultAction}
			p := &schedulerconfig.KubeSchedulerProfile{PluginConfig: []schedulerconfig.PluginConfig{{Name: "NodeFilter", Args: args}}}
			if diff := cmp.Diff(tt.want, pointNotes(field.NewPath("profiles").Index(2), p, &tt.plugins, nil)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesOfRestrictedLabels(t *testing.T) {
	enabled := schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "NodeFilter", Weight: 1}}}
	plugins := map[string]*schedulerconfig.Plugins{
		"closed": {PreFilter: enabled, Filter: enabled, Score: enabled}, "other": {Filter: enabled}, "scores": {Score: enabled}, "open": {},
	}
	profile := func(name string, restricted ...bool) schedulerconfig.KubeSchedulerProfile {
		args := &config.NodeFilterArgs{}
		for _, restricted := range restricted {
			args.Rules = append(args.Rules, config.NodeFilterRule{RestrictedLabels: restricted})
		}
		p := schedulerconfig.KubeSchedulerProfile{SchedulerName: name}
		if len(restricted) > 0 {
			p.PluginConfig = []schedulerconfig.PluginConfig{{Name: "NodeFilter", Args: args}}
		}
		return p
	}
	for _, tt := range []struct {
		name     string
		profiles []schedulerconfig.KubeSchedulerProfile
		want     []string
	}{
		{name: "every profile filters, if by other rules", profiles: []schedulerconfig.KubeSchedulerProfile{profile("closed", false, true), profile("other", false)}},
		{name: "no rule is restricted", profiles: []schedulerconfig.KubeSchedulerProfile{profile("other", false), profile("open")}},
		{name: "what is restricted is not enabled", profiles: []schedulerconfig.KubeSchedulerProfile{profile("scores", true), profile("open")}},
		{
			name:     "two profiles that do not filter",
			profiles: []schedulerconfig.KubeSchedulerProfile{profile("open"), profile("closed", false, true), profile("scores", true), profile("other", true)},
			want: []string{"note: rules of NodeFilter with restrictedLabels are in the profiles closed, other, and it is not enabled at filter in open, scores: " +
				"pods choose their profile, and can avoid the rules"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := restrictedNotes(tt.profiles, func(name string) *schedulerconfig.Plugins { return plugins[name] })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesOfWorkloadTopology(t *testing.T) {
	enabled := func(names ...string) schedulerconfig.PluginSet {
		var set schedulerconfig.PluginSet
		for _, name := range names {
			set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: name, Weight: 1})
		}
		return set
	}
	most := int32(1)
	all := &config.WorkloadTopologyArgs{AvoidAbove: &most, MaxPerNode: &most, Edges: []config.WorkloadTopologyEdge{{Within: "zone"}}}
	for _, test := range []struct {
		name    string
		args    *config.WorkloadTopologyArgs
		plugins schedulerconfig.Plugins
		want    []string
	}{
		{name: "is not enabled in this profile", args: all},
		{name: "asked for nothing", args: &config.WorkloadTopologyArgs{}, plugins: schedulerconfig.Plugins{Score: enabled("WorkloadTopology")}},
		{
			name: "all that it needs", args: all,
			plugins: schedulerconfig.Plugins{
				PreFilter: enabled("WorkloadTopology"), Filter: enabled("WorkloadTopology"), PreScore: enabled("NodeLoad"), Score: enabled("WorkloadTopology"),
			},
		},
		{
			name: "too late", args: all,
			plugins: schedulerconfig.Plugins{Filter: enabled("WorkloadTopology"), Score: enabled("WorkloadTopology", "NodeLoad")},
			want: []string{
				"note: profiles[2]: WorkloadTopology has avoidAbove and NodeLoad is not enabled before score: the load of nodes is not known in time",
				"note: profiles[2]: WorkloadTopology has maxPerNode and is not enabled at preFilter: preemption makes no room for it",
				"note: profiles[2]: WorkloadTopology has edges with within and is not enabled at preFilter: preemption makes no room for it",
			},
		},
		{
			name: "at score alone", args: all, plugins: schedulerconfig.Plugins{Score: enabled("WorkloadTopology")},
			want: []string{
				"note: profiles[2]: WorkloadTopology has avoidAbove and NodeLoad is not enabled before score: the load of nodes is not known in time",
				"note: profiles[2]: WorkloadTopology has maxPerNode and is not enabled at filter: nothing is rejected",
				"note: profiles[2]: WorkloadTopology has edges with within and is not enabled at filter: nothing is rejected",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			profile := &schedulerconfig.KubeSchedulerProfile{PluginConfig: []schedulerconfig.PluginConfig{{Name: "WorkloadTopology", Args: test.args}}}
			got := pointNotes(field.NewPath("profiles").Index(2), profile, &test.plugins, nil)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
