// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

func TestValidateActionsOfNodeFilter(t *testing.T) {
	nodes := []string{"*"}
	const restricted = "node-restriction.kubernetes.io/certified"
	labelled := func(keys ...string) *metav1.LabelSelector {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, key := range keys {
			selector.MatchLabels[key] = "true"
		}
		return selector
	}
	with := func(expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: expressions}
	}
	tests := []struct {
		name string
		rule config.NodeFilterRule
		want []string
	}{
		{name: "the most weight", rule: config.NodeFilterRule{Action: config.FilterPrefer, NodeNames: nodes, Weight: 100}},
		{
			name: "no weight", rule: config.NodeFilterRule{Action: config.FilterPrefer, NodeNames: nodes},
			want: []string{"args.rules[0].weight: Required value: 1 to 100"},
		},
		{
			name: "too much weight", rule: config.NodeFilterRule{Action: config.FilterPrefer, NodeNames: nodes, Weight: 101},
			want: []string{"args.rules[0].weight: Invalid value: 101: must be between 1 and 100, inclusive"},
		},
		{
			name: "what others have", rule: config.NodeFilterRule{
				Action: config.FilterDeny, NodeNames: nodes, Weight: 1, MinPercent: pointer.Int32(0), MaxPercent: pointer.Int32(1),
				WhenUnsatisfiable: v1.DoNotSchedule,
			},
			want: []string{
				"args.rules[0].weight: Forbidden: only rules with the action Prefer", "args.rules[0].minPercent: Forbidden: only rules with the action Share",
				"args.rules[0].maxPercent: Forbidden", "args.rules[0].whenUnsatisfiable: Forbidden: only rules with the action Share",
			},
		},
		{name: "at most nothing", rule: config.NodeFilterRule{Action: config.FilterShare, NodeNames: nodes, MaxPercent: pointer.Int32(0)}},
		{
			name: "exactly half", rule: config.NodeFilterRule{
				Action: config.FilterShare, NodeNames: nodes, MinPercent: pointer.Int32(50), MaxPercent: pointer.Int32(50),
			},
		},
		{
			name: "a share that rejects nodes",
			rule: config.NodeFilterRule{Action: config.FilterShare, NodeNames: nodes, MaxPercent: pointer.Int32(1), WhenUnsatisfiable: v1.DoNotSchedule},
		},
		{
			name: "a share with another effect",
			rule: config.NodeFilterRule{Action: config.FilterShare, NodeNames: nodes, MaxPercent: pointer.Int32(1), WhenUnsatisfiable: "Never"},
			want: []string{`args.rules[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"`},
		},
		{
			name: "no bound, and a weight", rule: config.NodeFilterRule{Action: config.FilterShare, NodeNames: nodes, Weight: 5},
			want: []string{"args.rules[0].weight: Forbidden", "args.rules[0]: Required value: at least one of minPercent and maxPercent"},
		},
		{
			name: "no percentages", rule: config.NodeFilterRule{
				Action: config.FilterShare, NodeNames: nodes, MinPercent: pointer.Int32(-1), MaxPercent: pointer.Int32(101),
			},
			want: []string{
				"args.rules[0].minPercent: Invalid value: -1: must be between 0 and 100, inclusive",
				"args.rules[0].maxPercent: Invalid value: 101: must be between 0 and 100, inclusive",
			},
		},
		{
			name: "bounds the wrong way round", rule: config.NodeFilterRule{
				Action: config.FilterShare, NodeNames: nodes, MinPercent: pointer.Int32(70), MaxPercent: pointer.Int32(30),
			},
			want: []string{"args.rules[0].minPercent: Invalid value: 70: must be at most maxPercent, which is 30"},
		},
		{
			name: "restricted labels", rule: config.NodeFilterRule{
				Action: config.FilterAllow, RestrictedLabels: true,
				NodeSelector: labelled(restricted, "eu.node-restriction.kubernetes.io/certified"), Namespaces: []string{"personal-*"},
			},
		},
		{
			name: "a restricted label that must not be there", rule: config.NodeFilterRule{
				Action: config.FilterDeny, RestrictedLabels: true,
				NodeSelector: with(metav1.LabelSelectorRequirement{Key: restricted, Operator: metav1.LabelSelectorOpDoesNotExist}),
			},
		},
		{
			name: "an Allow for nodes without a restricted label, which all new nodes are", rule: config.NodeFilterRule{
				Action: config.FilterAllow, RestrictedLabels: true, NodeSelector: with(
					metav1.LabelSelectorRequirement{Key: restricted, Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
					metav1.LabelSelectorRequirement{Key: restricted, Operator: metav1.LabelSelectorOpDoesNotExist},
					metav1.LabelSelectorRequirement{Key: restricted, Operator: metav1.LabelSelectorOpExists},
					metav1.LabelSelectorRequirement{Key: restricted, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}},
				),
			},
			want: []string{
				`args.rules[0].nodeSelector.matchExpressions[1].operator: Invalid value: "DoesNotExist": must be In or Exists`,
				`args.rules[0].nodeSelector.matchExpressions[3].operator: Invalid value: "NotIn": must be In or Exists`,
			},
		},
		{
			name: "an Allow for nodes without a label, which need not be restricted", rule: config.NodeFilterRule{
				Action: config.FilterAllow, NodeSelector: with(metav1.LabelSelectorRequirement{Key: "spot", Operator: metav1.LabelSelectorOpDoesNotExist}),
			},
		},
		{
			name: "labels that kubelets set, and a name", rule: config.NodeFilterRule{
				Action: config.FilterAllow, RestrictedLabels: true, NodeNames: nodes,
				NodeSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"zone": "a", "certified": "true", restricted: "true"},
					MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: restricted, Operator: metav1.LabelSelectorOpExists},
						{Key: "topology.kubernetes.io/zone", Operator: metav1.LabelSelectorOpExists},
						{Key: "xnode-restriction.kubernetes.io/certified", Operator: metav1.LabelSelectorOpExists},
					},
				},
			},
			want: []string{
				"args.rules[0].nodeNames: Forbidden: not with restrictedLabels",
				`args.rules[0].nodeSelector.matchLabels: Invalid value: "certified": must begin with node-restriction.kubernetes.io/`,
				`args.rules[0].nodeSelector.matchLabels: Invalid value: "zone"`,
				`args.rules[0].nodeSelector.matchExpressions[1].key: Invalid value: "topology.kubernetes.io/zone"`,
				`args.rules[0].nodeSelector.matchExpressions[2].key: Invalid value: "xnode-restriction.kubernetes.io/certified"`,
			},
		},
		{
			name: "no labels, which are to be restricted", rule: config.NodeFilterRule{
				Action: config.FilterDeny, RestrictedLabels: true, NodeSelector: &metav1.LabelSelector{},
			},
			want: []string{"args.rules[0].nodeSelector: Required value: at least one label"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Name = "rule"
			args := &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{tt.rule}}
			expectErrors(t, validate(t, "NodeFilter", args), tt.want)
		})
	}
}

func TestOnlyRulesOfNodeFilterPreferAndShare(t *testing.T) {
	for _, action := range []config.FilterAction{config.FilterPrefer, config.FilterShare} {
		want := `: Unsupported value: "` + string(action) + `": supported values: "Allow", "Deny"`
		expectErrors(t, validate(t, "NodeFilter", &config.NodeFilterArgs{Rules: []config.NodeFilterRule{nodeRule("a")}, DefaultAction: action}),
			[]string{"args.defaultAction" + want})
		expectErrors(t, validate(t, "PodFilter", &config.PodFilterArgs{
			Rules: []config.PodFilterRule{{Name: "a", Action: action, PodNames: []string{"a"}}}, DefaultAction: action,
		}), []string{"args.rules[0].action" + want, "args.defaultAction" + want})
	}
}

// TestKubeletLabels goes by what the admission plugin NodeRestriction of v1.23 forbids a kubelet.
func TestKubeletLabels(t *testing.T) {
	settable := []string{
		"beta.kubernetes.io/arch", "disktype", "example.com/spot", "failure-domain.beta.kubernetes.io/zone", "kubelet.kubernetes.io/x", "kubernetes.io/hostname",
		"mykubernetes.io/x", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "x.node.kubernetes.io/y",
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range append([]string{
		"node-restriction.kubernetes.io/a", "a.node-restriction.kubernetes.io/b", "node-role.kubernetes.io/worker", "kubernetes.io/x", "k8s.io/x",
		"kops.k8s.io/instancegroup", "xnode.kubernetes.io/y",
	}, settable[:5]...) {
		selector.MatchLabels[key] = "true"
	}
	for _, key := range settable[4:] {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
	}
	if got := KubeletLabels(selector); !reflect.DeepEqual(got, settable) {
		t.Errorf("got %q, want %q", got, settable)
	}
	if got := KubeletLabels(nil); got != nil {
		t.Errorf("no selector has %q", got)
	}
}
