// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

func values(count int) []string {
	var values []string
	for i := 0; i < count; i++ {
		values = append(values, fmt.Sprintf("value-%d", i))
	}
	return values
}

// validate sets the defaults of args that are not given, and calls the validator of a plugin, as the scheduler does.
func validate(t *testing.T, plugin string, args runtime.Object) error {
	t.Helper()
	scheme.Scheme.Default(args)
	function := reflect.ValueOf(Functions()[plugin])
	result := function.Call([]reflect.Value{reflect.ValueOf(field.NewPath("args")), reflect.ValueOf(args)})[0].Interface()
	if result == nil {
		return nil
	}
	return result.(error)
}

// expectErrors wants an aggregate of errors that begin like this, in order; or none.
func expectErrors(t *testing.T, err error, want []string) {
	t.Helper()
	var got []error
	if err != nil {
		got = err.(utilerrors.Aggregate).Errors()
	}
	if len(got) != len(want) {
		t.Fatalf("got %d errors %q, want %d: %q", len(got), got, len(want), want)
	}
	for i, beginning := range want {
		if !strings.HasPrefix(got[i].Error(), beginning) {
			t.Errorf("error %d is %q, want it to begin with %q", i, got[i], beginning)
		}
	}
}

func podRule(name string) config.PodFilterRule {
	return config.PodFilterRule{Name: name, Action: config.FilterDeny, PodNames: []string{"web-*"}}
}

func nodeRule(name string) config.NodeFilterRule {
	return config.NodeFilterRule{Name: name, Action: config.FilterAllow, NodeNames: []string{"gpu-?"}}
}

func podRules(count int) []config.PodFilterRule {
	var rules []config.PodFilterRule
	for i := 0; i < count; i++ {
		rules = append(rules, podRule(fmt.Sprintf("rule-%d", i)))
	}
	return rules
}

func TestValidate(t *testing.T) {
	badSelector := &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	badValues := &metav1.LabelSelector{
		MatchLabels: map[string]string{"tier": "a b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"", "database"}},
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web", "c d", "e/f"}},
		},
	}
	tests := []struct {
		plugin, name string
		args         runtime.Object
		// want is the beginning of each error, in order; none means that the args are valid.
		want []string
	}{
		{plugin: "MyScorePlugin", name: "a key with a prefix", args: &config.MyScorePluginArgs{NodeLabel: pointer.String("example.com/disk"), PreferredValues: values(1)}},
		{plugin: "MyScorePlugin", name: "as many values as there are scores", args: &config.MyScorePluginArgs{NodeLabel: pointer.String("disk"), PreferredValues: values(100)}},
		{
			plugin: "MyScorePlugin", name: "one value more",
			args: &config.MyScorePluginArgs{NodeLabel: pointer.String("disk"), PreferredValues: values(101)},
			want: []string{"args.preferredValues: Too many: 101: must have at most 100"},
		},
		{
			plugin: "MyScorePlugin", name: "nothing", args: &config.MyScorePluginArgs{NodeLabel: pointer.String(""), PreferredValues: []string{}},
			want: []string{`args.nodeLabel: Invalid value: ""`, `args.nodeLabel: Invalid value: ""`, "args.preferredValues: Required value: 1 to 100"},
		},
		{
			plugin: "MyScorePlugin", name: "neither a key nor a value, and a value twice",
			args: &config.MyScorePluginArgs{NodeLabel: pointer.String("a b"), PreferredValues: []string{"x", "y z", "x"}},
			want: []string{"args.nodeLabel: Invalid value", "args.preferredValues[1]: Invalid value", `args.preferredValues[2]: Duplicate value: "x"`},
		},

		{plugin: "ExtensionPointLogger", name: "everything", args: &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1)}},
		{plugin: "ExtensionPointLogger", name: "one pod in ten thousand", args: &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(0.0001), Namespaces: []string{"a", "b"}}},
		{
			plugin: "ExtensionPointLogger", name: "no pod at all", args: &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(0)},
			want: []string{"args.sampleRate: Invalid value: 0: must be more than 0 and at most 1"},
		},
		{
			plugin: "ExtensionPointLogger", name: "not a number", args: &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(math.NaN())},
			want: []string{"args.sampleRate: Invalid value: NaN: must be more than 0 and at most 1"},
		},
		{
			plugin: "ExtensionPointLogger", name: "a percentage, a pattern, and a namespace twice",
			args: &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1.01), Namespaces: []string{"a", "b*", "a"}},
			want: []string{"args.sampleRate: Invalid value: 1.01", `args.namespaces[1]: Invalid value: "b*"`, `args.namespaces[2]: Duplicate value: "a"`},
		},

		{plugin: "RandScore", name: "any seed", args: &config.RandScoreArgs{Seed: math.MinInt64}},

		{
			plugin: "PodFilter", name: "each condition is enough",
			args: &config.PodFilterArgs{DefaultAction: config.FilterDeny, Rules: []config.PodFilterRule{
				podRule("names"), {Name: "namespaces", Action: config.FilterAllow, Namespaces: []string{"*"}},
				{Name: "labels", Action: config.FilterAllow, PodSelector: &metav1.LabelSelector{}},
			}},
		},
		{plugin: "PodFilter", name: "as many rules as there may be", args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: podRules(100)}},
		{
			plugin: "PodFilter", name: "one rule more", args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: podRules(101)},
			want: []string{"args.rules: Too many: 101: must have at most 100"},
		},
		{
			plugin: "PodFilter", name: "no rules, a wrong action", args: &config.PodFilterArgs{DefaultAction: "allow"},
			want: []string{"args.rules: Required value: 1 to 100 rules", `args.defaultAction: Unsupported value: "allow": supported values: "Allow", "Deny"`},
		},
		{
			plugin: "PodFilter", name: "everything wrong in one rule, and its name twice",
			args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.PodFilterRule{
				podRule("x"), {Name: "x", Action: "deny", PodNames: []string{"", "Web"}, Namespaces: []string{"a/b"}, PodSelector: badSelector},
			}},
			want: []string{
				`args.rules[1].name: Duplicate value: "x"`, `args.rules[1].action: Unsupported value: "deny": supported values: "Allow", "Deny"`,
				`args.rules[1].podNames[0]: Invalid value: "": must be 1 to 253 lower case`, `args.rules[1].podNames[1]: Invalid value: "Web"`,
				`args.rules[1].namespaces[0]: Invalid value: "a/b"`, `args.rules[1].podSelector.matchLabels: Invalid value: "a b"`,
			},
		},
		{
			plugin: "PodFilter", name: "patterns of every kind", args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.PodFilterRule{
				{Name: "x", Action: config.FilterDeny, PodNames: []string{"web", "*", "a.b-?", "web-[0-9]*", "[^a-f0-9.]x"}},
			}},
		},
		{
			plugin: "PodFilter", name: "what is no pattern",
			args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.PodFilterRule{
				{Name: "x", Action: config.FilterDeny, PodNames: []string{"web-[", "[]", "a]", "[a-]*", `a\*`, "[A-Z]", "ok"}, Namespaces: []string{"*[z"}},
			}},
			want: []string{
				`args.rules[0].podNames[0]: Invalid value: "web-[": must be 1 to 253 lower case letters, digits`, `args.rules[0].podNames[1]: Invalid value: "[]"`,
				`args.rules[0].podNames[2]: Invalid value: "a]"`, `args.rules[0].podNames[3]: Invalid value: "[a-]*"`,
				`args.rules[0].podNames[4]: Invalid value: "a\\*"`, `args.rules[0].podNames[5]: Invalid value: "[A-Z]"`,
				`args.rules[0].namespaces[0]: Invalid value: "*[z"`,
			},
		},
		{
			plugin: "PodFilter", name: "values that no label has",
			args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.PodFilterRule{
				podRule("x"), {Name: "y", Action: config.FilterDeny, PodSelector: badValues},
			}},
			want: []string{
				`args.rules[1].podSelector.matchLabels: Invalid value: "a b"`,
				`args.rules[1].podSelector.matchExpressions[1].values[1]: Invalid value: "c d"`,
				`args.rules[1].podSelector.matchExpressions[1].values[2]: Invalid value: "e/f"`,
			},
		},
		{
			plugin: "PodFilter", name: "a rule for every pod",
			args: &config.PodFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.PodFilterRule{{Name: "all", Action: config.FilterDeny}}},
			want: []string{"args.rules[0]: Required value: at least one of podNames, namespaces and podSelector"},
		},

		// More of it is in TestValidateNodeCostArgs.
		{plugin: "NodeCost", name: "the label alone", args: nodeCost(func(args *config.NodeCostArgs) { args.Prices, args.PriceLabel = nil, "price" })},

		{
			plugin: "NodeFilter", name: "each condition on nodes is enough",
			args: &config.NodeFilterArgs{DefaultAction: config.FilterDeny, Rules: []config.NodeFilterRule{
				nodeRule("names"), {Name: "labels", Action: config.FilterAllow, NodeSelector: &metav1.LabelSelector{}},
			}},
		},
		{
			plugin: "NodeFilter", name: "a rule that is about pods only",
			args: &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{{Name: "pods", Action: config.FilterDeny, Namespaces: []string{"a"}}}},
			want: []string{"args.rules[0]: Required value: at least one of nodeNames and nodeSelector"},
		},
		{
			plugin: "NodeFilter", name: "values that no label has, of nodes and of pods",
			args: &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{
				{Name: "x", Action: config.FilterDeny, NodeSelector: badValues, PodSelector: badValues},
			}},
			want: []string{
				`args.rules[0].nodeSelector.matchLabels: Invalid value: "a b"`,
				`args.rules[0].nodeSelector.matchExpressions[1].values[1]: Invalid value: "c d"`,
				`args.rules[0].nodeSelector.matchExpressions[1].values[2]: Invalid value: "e/f"`,
				`args.rules[0].podSelector.matchLabels: Invalid value: "a b"`,
				`args.rules[0].podSelector.matchExpressions[1].values[1]: Invalid value: "c d"`,
				`args.rules[0].podSelector.matchExpressions[1].values[2]: Invalid value: "e/f"`,
			},
		},
		{
			plugin: "NodeFilter", name: "everything wrong in one rule",
			args: &config.NodeFilterArgs{DefaultAction: "Reject", Rules: []config.NodeFilterRule{
				{Name: "A", NodeNames: []string{"x y"}, NodeSelector: badSelector, Namespaces: []string{"_"}, PodSelector: badSelector},
			}},
			want: []string{
				`args.rules[0].name: Invalid value: "A"`, `args.rules[0].action: Unsupported value: ""`, `args.rules[0].nodeNames[0]: Invalid value: "x y"`,
				"args.rules[0].nodeSelector.matchLabels: Invalid value", `args.rules[0].namespaces[0]: Invalid value: "_"`,
				"args.rules[0].podSelector.matchLabels: Invalid value", `args.defaultAction: Unsupported value: "Reject"`,
			},
		},

		// More of it is in TestValidateNodeLoadArgs.
		// More of it is in data_locality_test.go.
		{plugin: "DataLocality", name: "the defaults", args: dataLocality(nil)},

		{plugin: "NodeLoad", name: "a server and a resource", args: nodeLoad(nil)},

		{plugin: "RunningImageLocality", name: "all of both weights", args: &config.RunningImageLocalityArgs{Count: config.CountContainers, SizeWeight: 100, SpreadWeight: pointer.Int32(100)}},
		{
			plugin: "RunningImageLocality", name: "everything wrong", args: &config.RunningImageLocalityArgs{Count: "Pods", SizeWeight: -1, SpreadWeight: pointer.Int32(101)},
			want: []string{
				`args.count: Unsupported value: "Pods": supported values: "Images", "Containers"`,
				"args.sizeWeight: Invalid value: -1: must be between 0 and 100, inclusive", "args.spreadWeight: Invalid value: 101: must be between 0 and 100, inclusive",
			},
		},

		{
			plugin: "Chaos", name: "all at the upper end",
			args: &config.ChaosArgs{Namespaces: []string{"test"}, RejectPercent: 100, MaxConsecutiveRejections: pointer.Int32(100), RandomBindPercent: 100},
		},
		{
			plugin: "Chaos", name: "no namespaces", args: &config.ChaosArgs{MaxConsecutiveRejections: pointer.Int32(1)},
			want: []string{"args.namespaces: Required value: the names of the namespaces"},
		},
		{
			plugin: "Chaos", name: "everything wrong",
			args: &config.ChaosArgs{
				Namespaces: []string{"kube-system", "test-*"}, RejectPercent: 101, MaxConsecutiveRejections: pointer.Int32(0),
				RandomBindPercent: -1,
			},
			want: []string{
				`args.namespaces[1]: Invalid value: "test-*"`, "args.namespaces[0]: Forbidden: the pods of kube-system are never disturbed",
				"args.rejectPercent: Invalid value: 101: must be between 0 and 100, inclusive",
				"args.maxConsecutiveRejections: Invalid value: 0: must be between 1 and 100, inclusive",
				"args.randomBindPercent: Invalid value: -1: must be between 0 and 100, inclusive",
			},
		},
		// More of it is in coscheduling_test.go.
		{plugin: "Coscheduling", name: "the shortest timeout", args: &config.CoschedulingArgs{AttemptTimeout: &metav1.Duration{Duration: time.Millisecond}}},
		// More of it is in overcommit_test.go.
		{plugin: "Overcommit", name: "without measurements", args: &config.OvercommitArgs{
			Predictor: config.OvercommitRequests, Horizon: &metav1.Duration{Duration: time.Hour}, Percentile: pointer.Int32(95),
		}},
		{
			plugin: "WorkloadTopology", name: "nothing", args: &config.WorkloadTopologyArgs{PodSelector: &metav1.LabelSelector{}, Levels: []config.WorkloadTopologyLevel{}},
			want: []string{"args.groupBy: Required value: 1 to 8 keys of labels", "args.levels: Required value: 1 to 8 levels"},
		},
	}
	tested := map[string]bool{}
	for _, tt := range tests {
		tested[tt.plugin] = true
		t.Run(tt.plugin+" "+tt.name, func(t *testing.T) {
			expectErrors(t, validate(t, tt.plugin, tt.args), tt.want)
		})
	}
	for plugin := range Functions() {
		if !tested[plugin] {
			t.Errorf("the args of %s are not tested", plugin)
		}
	}
}
