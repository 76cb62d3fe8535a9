// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
	"sigs.k8s.io/yaml"
)

// argsTest is a test of args.
type argsTest struct {
	name string
	// change is a YAML merge patch of the valid args of the plugin, without the outer braces.
	change string
	// want is the beginning of each error, in order; none means that the args are valid.
	want []string
}

// valid has valid args of plugins; none are valid for the others.
var valid = map[string]string{
	"NodeCost": `instanceTypeLabel: type, zoneLabel: zone, capacityTypeLabel: capacity, strategy: CheapestNode,
		prices: [{instanceType: small, zone: a, capacityType: spot, pricePerHour: 10m},
		{instanceType: small, capacityType: spot, pricePerHour: 12m}, {instanceType: small, pricePerHour: 30m}, {pricePerHour: "0"}],
		spot: {capacityTypes: [spot, preemptible], tolerationKey: example.com/spot}`,
	"NodeLoad":   `prometheus: {endpoints: ["https://prometheus.example.com"]}, resources: [{name: cpu}]`,
	"Overcommit": `prometheus: {endpoints: ["http://prometheus:9090"]}`,
	"WorkloadTopology": `podSelector: {matchLabels: {app: job}}, groupBy: [app],
		levels: [{topologyKey: host}, {topologyKey: rack, cost: 1}, {topologyKey: zone, cost: 99}]`,
}

var argsTests = map[string][]argsTest{
	"Coscheduling": coschedulingTests, "DataLocality": dataLocalityTests, "NodeCost": nodeCostTests, "NodeFilter": nodeFilterTests,
	"NodeLoad": nodeLoadTests, "Overcommit": overcommitTests, "WorkloadTopology": workloadTopologyTests,
	"Chaos": {
		{"all at the upper end",
			`maxConsecutiveRejections: 100, namespaces: [test], randomBindPercent: 100, rejectPercent: 100`, nil},
		{"no namespaces", `maxConsecutiveRejections: 1`,
			[]string{"args.namespaces: Required value: the names of the namespaces"}},
		{"everything wrong", `maxConsecutiveRejections: 0, namespaces: [kube-system, test-*], randomBindPercent: -1, rejectPercent: 101`, []string{
			`args.namespaces[1]: Invalid value: "test-*"`,
			"args.namespaces[0]: Forbidden: the pods of kube-system are never disturbed",
			"args.rejectPercent: Invalid value: 101: must be between 0 and 100, inclusive",
			"args.maxConsecutiveRejections: Invalid value: 0: must be between 1 and 100, inclusive",
			"args.randomBindPercent: Invalid value: -1: must be between 0 and 100, inclusive",
		}},
	},
	"ExtensionPointLogger": {
		{"everything", ``, nil},
		{"one pod in ten thousand", `namespaces: [a, b], sampleRate: 0.0001`, nil},
		{"no pod at all", `sampleRate: 0`, []string{"args.sampleRate: Invalid value: 0: must be more than 0 and at most 1"}},
		{"a percentage, a pattern, and a namespace twice", `namespaces: [a, b*, a], sampleRate: 1.01`, []string{
			"args.sampleRate: Invalid value: 1.01", `args.namespaces[1]: Invalid value: "b*"`,
			`args.namespaces[2]: Duplicate value: "a"`,
		}},
	},
	"MyScorePlugin": {
		{"a key with a prefix", `nodeLabel: example.com/disk, preferredValues: [value-0]`, nil},
		{"as many values as there are scores", `nodeLabel: disk, preferredValues: ` + many(100, `value-#`), nil},
		{"one value more", `nodeLabel: disk, preferredValues: ` + many(101, `value-#`),
			[]string{"args.preferredValues: Too many: 101: must have at most 100"}},
		{"nothing", `nodeLabel: "", preferredValues: []`, []string{
			`args.nodeLabel: Invalid value: ""`, `args.nodeLabel: Invalid value: ""`,
			"args.preferredValues: Required value: 1 to 100",
		}},
		{"neither a key nor a value, and a value twice", `nodeLabel: "a b", preferredValues: [x, "y z", x]`, []string{
			"args.nodeLabel: Invalid value", "args.preferredValues[1]: Invalid value",
			`args.preferredValues[2]: Duplicate value: "x"`,
		}},
	},
	"PodFilter": {
		{"only rules of NodeFilter have the action Prefer", `defaultAction: Prefer, rules: [{name: a, action: Prefer, podNames: [a]}]`, []string{
			`args.rules[0].action: Unsupported value: "Prefer": supported values: "Allow", "Deny"`,
			`args.defaultAction: Unsupported value: "Prefer": supported values: "Allow", "Deny"`,
		}},
		{"only rules of NodeFilter have the action Share", `defaultAction: Share, rules: [{name: a, action: Share, podNames: [a]}]`, []string{
			`args.rules[0].action: Unsupported value: "Share": supported values: "Allow", "Deny"`,
			`args.defaultAction: Unsupported value: "Share": supported values: "Allow", "Deny"`,
		}},
		{"each condition is enough",
			`defaultAction: Deny, rules: [{name: names, action: Deny, podNames: [web-*]}, {name: namespaces,
			action: Allow, namespaces: ["*"]}, {name: labels, action: Allow, podSelector: {}}]`, nil},
		{"as many rules as there may be", `rules: ` + many(100, `{name: rule-#, action: Deny, podNames: [web-*]}`), nil},
		{"one rule more", `rules: ` + many(101, `{name: rule-#, action: Deny, podNames: [web-*]}`),
			[]string{"args.rules: Too many: 101: must have at most 100"}},
		{"no rules, a wrong action", `defaultAction: allow`, []string{
			"args.rules: Required value: 1 to 100 rules",
			`args.defaultAction: Unsupported value: "allow": supported values: "Allow", "Deny"`,
		}},
		{"everything wrong in one rule, and its name twice",
			`rules: [{name: x, action: Deny, podNames: [web-*]}, {name: x, action: deny, namespaces: [a/b],
			podNames: ["", Web], podSelector: {matchLabels: {"a b": c}}}]`, []string{
				`args.rules[1].name: Duplicate value: "x"`,
				`args.rules[1].action: Unsupported value: "deny": supported values: "Allow", "Deny"`,
				`args.rules[1].podNames[0]: Invalid value: "": must be 1 to 253 lower case`,
				`args.rules[1].podNames[1]: Invalid value: "Web"`, `args.rules[1].namespaces[0]: Invalid value: "a/b"`,
				`args.rules[1].podSelector.matchLabels: Invalid value: "a b"`,
			}},
		{"patterns of every kind",
			`rules: [{name: x, action: Deny, podNames: [web, "*", "a.b-?", "web-[0-9]*", "[^a-f0-9.]x"]}]`, nil},
		{"what is no pattern",
			`rules: [{name: x, action: Deny, namespaces: ["*[z"], podNames: ["web-[", "[]", "a]", "[a-]*", "a\\*",
			"[A-Z]", ok]}]`, []string{
				`args.rules[0].podNames[0]: Invalid value: "web-[": must be 1 to 253 lower case letters, digits`,
				`args.rules[0].podNames[1]: Invalid value: "[]"`, `args.rules[0].podNames[2]: Invalid value: "a]"`,
				`args.rules[0].podNames[3]: Invalid value: "[a-]*"`, `args.rules[0].podNames[4]: Invalid value: "a\\*"`,
				`args.rules[0].podNames[5]: Invalid value: "[A-Z]"`, `args.rules[0].namespaces[0]: Invalid value: "*[z"`,
			}},
		{"values that no label has",
			`rules: [{name: x, action: Deny, podNames: [web-*]}, {name: "y", action: Deny,
			podSelector: {matchExpressions: [{key: tier, operator: In, values: ["", database]}, {key: tier,
			operator: NotIn, values: [web, "c d", e/f]}], matchLabels: {tier: "a b"}}}]`, []string{
				`args.rules[1].podSelector.matchLabels: Invalid value: "a b"`,
				`args.rules[1].podSelector.matchExpressions[1].values[1]: Invalid value: "c d"`,
				`args.rules[1].podSelector.matchExpressions[1].values[2]: Invalid value: "e/f"`,
			}},
		{"a rule for every pod", `rules: [{name: all, action: Deny}]`,
			[]string{"args.rules[0]: Required value: at least one of podNames, namespaces and podSelector"}},
	},
	"RandScore": {
		{"any seed", `seed: -9223372036854775808`, nil},
	},
	"RunningImageLocality": {
		{"all of both weights", `count: Containers, sizeWeight: 100`, nil},
		{"everything wrong", `count: Pods, sizeWeight: -1, spreadWeight: 101`, []string{
			`args.count: Unsupported value: "Pods": supported values: "Images", "Containers"`,
			"args.sizeWeight: Invalid value: -1: must be between 0 and 100, inclusive",
			"args.spreadWeight: Invalid value: 101: must be between 0 and 100, inclusive",
		}},
	},
}

// many returns a list of items, in which # stands for the index.
func many(count int, item string) string {
	var items []string
	for i := 0; i < count; i++ {
		items = append(items, strings.ReplaceAll(item, "#", strconv.Itoa(i)))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// given returns the valid args of a plugin with a change.
func given(t *testing.T, plugin, change string) runtime.Object {
	t.Helper()
	var documents [2][]byte
	for i, text := range []string{valid[plugin], change} {
		var err error
		if documents[i], err = yaml.YAMLToJSON([]byte("{" + strings.ReplaceAll(text, "\t", "") + "}")); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := jsonpatch.MergePatch(documents[0], documents[1])
	if err != nil {
		t.Fatal(err)
	}
	args, err := scheme.Scheme.New(v1beta3.SchemeGroupVersion.WithKind(plugin + "Args"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(merged))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(args); err != nil {
		t.Fatal(err)
	}
	return args
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
		if text := got[i].Error(); !strings.HasPrefix(text, beginning) || strings.Contains(text, "%!") {
			t.Errorf("error %d is %q, want it to begin with %q", i, text, beginning)
		}
	}
}

func TestValidate(t *testing.T) {
	for plugin := range Functions() {
		if len(argsTests[plugin]) == 0 {
			t.Errorf("the args of %s are not tested", plugin)
		}
		for _, tt := range argsTests[plugin] {
			t.Run(plugin+" "+tt.name, func(t *testing.T) {
				expectErrors(t, validate(t, plugin, given(t, plugin, tt.change)), tt.want)
			})
		}
	}
}

// TestValidateValuesWithoutJSON has numbers and a text that a configuration file cannot have.
func TestValidateValuesWithoutJSON(t *testing.T) {
	nan := pointer.Float64(math.NaN())
	expectErrors(t, validate(t, "ExtensionPointLogger", &config.ExtensionPointLoggerArgs{SampleRate: nan}),
		[]string{"args.sampleRate: Invalid value: NaN: must be more than 0 and at most 1"})
	overcommits := given(t, overcommit, "").(*config.OvercommitArgs)
	overcommits.Sigmas = nan
	expectErrors(t, validate(t, overcommit, overcommits), []string{"args.sigmas: Invalid value"})
	load := given(t, "NodeLoad", `prometheus: {matchers: [{label: a, operator: "="}]}`).(*config.NodeLoadArgs)
	load.Prometheus.Matchers[0].Value = "\xff"
	load.Resources[0].Margin, load.Resources[0].Sensitivity = nan, nan
	expectErrors(t, validate(t, "NodeLoad", load), []string{
		`args.prometheus.matchers[0].value: Invalid value: "\xff": must be UTF-8`,
		"args.resources[0].margin: Invalid value: NaN", "args.resources[0].sensitivity: Invalid value: NaN",
	})
}
