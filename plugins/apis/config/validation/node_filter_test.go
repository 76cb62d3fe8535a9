// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var nodeFilterTests = []argsTest{
	{"the most weight", `rules: [{name: rule, action: Prefer, nodeNames: ["*"], weight: 100}]`, nil},
	{"no weight", `rules: [{name: rule, action: Prefer, nodeNames: ["*"]}]`,
		[]string{"args.rules[0].weight: Required value: 1 to 100"}},
	{"too much weight", `rules: [{name: rule, action: Prefer, nodeNames: ["*"], weight: 101}]`,
		[]string{"args.rules[0].weight: Invalid value: 101: must be between 1 and 100, inclusive"}},
	{"what others have",
		`rules: [{name: rule, action: Deny, maxPercent: 1, minPercent: 0, nodeNames: ["*"], weight: 1,
			whenUnsatisfiable: DoNotSchedule}]`, []string{
			"args.rules[0].weight: Forbidden: only rules with the action Prefer",
			"args.rules[0].minPercent: Forbidden: only rules with the action Share", "args.rules[0].maxPercent: Forbidden",
			"args.rules[0].whenUnsatisfiable: Forbidden: only rules with the action Share",
		}},
	{"at most nothing", `rules: [{name: rule, action: Share, maxPercent: 0, nodeNames: ["*"]}]`, nil},
	{"exactly half", `rules: [{name: rule, action: Share, maxPercent: 50, minPercent: 50, nodeNames: ["*"]}]`, nil},
	{"a share that rejects nodes",
		`rules: [{name: rule, action: Share, maxPercent: 1, nodeNames: ["*"], whenUnsatisfiable: DoNotSchedule}]`, nil},
	{"a share with another effect",
		`rules: [{name: rule, action: Share, maxPercent: 1, nodeNames: ["*"], whenUnsatisfiable: Never}]`, []string{
			`args.rules[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"`,
		}},
	{"no bound, and a weight", `rules: [{name: rule, action: Share, nodeNames: ["*"], weight: 5}]`,
		[]string{"args.rules[0].weight: Forbidden", "args.rules[0]: Required value: at least one of minPercent and maxPercent"}},
	{"no percentages", `rules: [{name: rule, action: Share, maxPercent: 101, minPercent: -1, nodeNames: ["*"]}]`, []string{
		"args.rules[0].minPercent: Invalid value: -1: must be between 0 and 100, inclusive",
		"args.rules[0].maxPercent: Invalid value: 101: must be between 0 and 100, inclusive",
	}},
	{"bounds the wrong way round", `rules: [{name: rule, action: Share, maxPercent: 30, minPercent: 70, nodeNames: ["*"]}]`,
		[]string{"args.rules[0].minPercent: Invalid value: 70: must be at most maxPercent, which is 30"}},
	{"restricted labels",
		`rules: [{name: rule, action: Allow, namespaces: [personal-*],
			nodeSelector: {matchLabels: {eu.node-restriction.kubernetes.io/certified: "true",
			node-restriction.kubernetes.io/certified: "true"}}, restrictedLabels: true}]`, nil},
	{"a restricted label that must not be there",
		`rules: [{name: rule, action: Deny,
			nodeSelector: {matchExpressions: [{key: node-restriction.kubernetes.io/certified,
			operator: DoesNotExist}]}, restrictedLabels: true}]`, nil},
	{"an Allow for nodes without a restricted label, which all new nodes are",
		`rules: [{name: rule, action: Allow,
			nodeSelector: {matchExpressions: [{key: node-restriction.kubernetes.io/certified, operator: In,
			values: ["true"]}, {key: node-restriction.kubernetes.io/certified, operator: DoesNotExist},
			{key: node-restriction.kubernetes.io/certified, operator: Exists},
			{key: node-restriction.kubernetes.io/certified, operator: NotIn, values: ["false"]}]},
			restrictedLabels: true}]`, []string{
			`args.rules[0].nodeSelector.matchExpressions[1].operator: Invalid value: "DoesNotExist": must be In or Exists`,
			`args.rules[0].nodeSelector.matchExpressions[3].operator: Invalid value: "NotIn": must be In or Exists`,
		}},
	{"an Allow for nodes without a label, which need not be restricted",
		`rules: [{name: rule, action: Allow, nodeSelector: {matchExpressions: [{key: spot, operator: DoesNotExist}]}}]`, nil},
	{"labels that kubelets set, and a name",
		`rules: [{name: rule, action: Allow, nodeNames: ["*"],
			nodeSelector: {matchExpressions: [{key: node-restriction.kubernetes.io/certified, operator: Exists},
			{key: topology.kubernetes.io/zone, operator: Exists}, {key: xnode-restriction.kubernetes.io/certified,
			operator: Exists}], matchLabels: {certified: "true", node-restriction.kubernetes.io/certified: "true",
			zone: a}}, restrictedLabels: true}]`, []string{
			"args.rules[0].nodeNames: Forbidden: not with restrictedLabels",
			`args.rules[0].nodeSelector.matchLabels: Invalid value: "certified": must begin with node-restriction.kubernetes.io/`,
			`args.rules[0].nodeSelector.matchLabels: Invalid value: "zone"`,
			`args.rules[0].nodeSelector.matchExpressions[1].key: Invalid value: "topology.kubernetes.io/zone"`,
			`args.rules[0].nodeSelector.matchExpressions[2].key: Invalid value: "xnode-restriction.kubernetes.io/certified"`,
		}},
	{"no labels, which are to be restricted", `rules: [{name: rule, action: Deny, nodeSelector: {}, restrictedLabels: true}]`,
		[]string{"args.rules[0].nodeSelector: Required value: at least one label"}},
	{"only rules of NodeFilter have the action Prefer",
		`defaultAction: Prefer, rules: [{name: a, action: Allow, nodeNames: ["gpu-?"]}]`,
		[]string{`args.defaultAction: Unsupported value: "Prefer": supported values: "Allow", "Deny"`}},
	{"only rules of NodeFilter have the action Share",
		`defaultAction: Share, rules: [{name: a, action: Allow, nodeNames: ["gpu-?"]}]`,
		[]string{`args.defaultAction: Unsupported value: "Share": supported values: "Allow", "Deny"`}},
	{"each condition on nodes is enough",
		`defaultAction: Deny, rules: [{name: names, action: Allow, nodeNames: ["gpu-?"]}, {name: labels,
			action: Allow, nodeSelector: {}}]`, nil},
	{"a rule that is about pods only", `rules: [{name: pods, action: Deny, namespaces: [a]}]`,
		[]string{"args.rules[0]: Required value: at least one of nodeNames and nodeSelector"}},
	{"values that no label has, of nodes and of pods",
		`rules: [{name: x, action: Deny, nodeSelector: {matchExpressions: [{key: tier, operator: In, values: ["",
			database]}, {key: tier, operator: NotIn, values: [web, "c d", e/f]}], matchLabels: {tier: "a b"}},
			podSelector: {matchExpressions: [{key: tier, operator: In, values: ["", database]}, {key: tier,
			operator: NotIn, values: [web, "c d", e/f]}], matchLabels: {tier: "a b"}}}]`, []string{
			`args.rules[0].nodeSelector.matchLabels: Invalid value: "a b"`,
			`args.rules[0].nodeSelector.matchExpressions[1].values[1]: Invalid value: "c d"`,
			`args.rules[0].nodeSelector.matchExpressions[1].values[2]: Invalid value: "e/f"`,
			`args.rules[0].podSelector.matchLabels: Invalid value: "a b"`,
			`args.rules[0].podSelector.matchExpressions[1].values[1]: Invalid value: "c d"`,
			`args.rules[0].podSelector.matchExpressions[1].values[2]: Invalid value: "e/f"`,
		}},
	{"everything wrong in one rule",
		`defaultAction: Reject, rules: [{name: A, namespaces: [_], nodeNames: ["x y"],
			nodeSelector: {matchLabels: {"a b": c}}, podSelector: {matchLabels: {"a b": c}}}]`, []string{
			`args.rules[0].name: Invalid value: "A"`, `args.rules[0].action: Unsupported value: ""`,
			`args.rules[0].nodeNames[0]: Invalid value: "x y"`, "args.rules[0].nodeSelector.matchLabels: Invalid value",
			`args.rules[0].namespaces[0]: Invalid value: "_"`, "args.rules[0].podSelector.matchLabels: Invalid value",
			`args.defaultAction: Unsupported value: "Reject"`,
		}},
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
