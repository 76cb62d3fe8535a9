// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const head = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"

// write writes a configuration file.
func write(t *testing.T, document string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExplainNamesAllErrors(t *testing.T) {
	tests := []struct {
		name     string
		document string
		want     []string
	}{
		{
			name: "unknown fields and wrong types, in the args of several plugins in two profiles",
			document: head + `
profiles:
- schedulerName: first
  pluginConfig:
  - name: ExtensionPointLogger
    args: {smapleRate: 1, redact: "no", sampleRate: x}
  - name: NodeFilter
    args:
      rules:
      - {name: a, action: 3, nodeNames: ["n*", 7], nodeSelector: {matchLabel: {a: b}}}
  - {name: Chaos, args: [test]}
  - {name: [RandScore], args: {seed: 1}}
- schedulerName: second
  pluginConfig:
  - name: Chaos
    args: {namespaces: [a], rejectPercent: 1.5, dryRun: true, maxPermitDelay: 5s, seed: 9223372036854775808, maxConsecutiveRejections: x}
  - {name: ExtensionPointLogger, args: {sampleRate: 1e400}}
`,
			want: []string{
				`profiles[0].pluginConfig[0].args.redact: Invalid value: "no": must be true or false`,
				`profiles[0].pluginConfig[0].args.sampleRate: Invalid value: "x": must be a number`,
				`profiles[0].pluginConfig[0].args.smapleRate: unknown field: the known fields are namespaces, queueSort, redact, sampleRate`,
				`profiles[0].pluginConfig[1].args.rules[0].action: Invalid value: 3: must be text; put a number, true or false in quotes`,
				`profiles[0].pluginConfig[1].args.rules[0].nodeNames[1]: Invalid value: 7: must be text; put a number, true or false in quotes`,
				`profiles[0].pluginConfig[1].args.rules[0].nodeSelector.matchLabel: unknown field: the known fields are matchExpressions, matchLabels`,
				"profiles[0].pluginConfig[2].args: Invalid value: a list: must be an object with fields from maxConsecutiveRejections, " +
					"namespaces, randomBindPercent, randomScore, rejectPercent, seed",
				"profiles[0].pluginConfig[3].name: Invalid value: a list: must be text; put a number, true or false in quotes",
				"profiles[1].pluginConfig[0].args.dryRun: unknown field: the known fields are maxConsecutiveRejections, namespaces, randomBindPercent, randomScore, rejectPercent, seed",
				`profiles[1].pluginConfig[0].args.maxConsecutiveRejections: Invalid value: "x": must be a whole number between -2147483648 and 2147483647`,
				"profiles[1].pluginConfig[0].args.maxPermitDelay: unknown field: the known fields are maxConsecutiveRejections, namespaces, randomBindPercent, randomScore, rejectPercent, seed",
				"profiles[1].pluginConfig[0].args.rejectPercent: Invalid value: 1.5: must be a whole number between -2147483648 and 2147483647",
				"profiles[1].pluginConfig[0].args.seed: Invalid value: 9223372036854775808: must be a whole number between -9223372036854775808 and 9223372036854775807",
				`profiles[1].pluginConfig[1].args.sampleRate: Invalid value: "1e400": must be a number`,
			},
		},
		{
			name: "fields outside args, and invalid values",
			document: head + `
paralelism: 4
parallelism: ` + strings.Repeat("x", 100) + `
percentageOfNodesToScore: many
podInitialBackoffSeconds: -1
clientConnection: {qps: fast, kubeConfig: /etc/kubernetes/scheduler.conf}
extenders:
- {urlPrefix: "http://127.0.0.1:9000", prioritizeVerb: prioritize, weight: 0, httpTimeout: 5, tlsConfig: {caData: [secret], keyData: secret!}}
- {urlPrefix: "http://127.0.0.1:9001", prioritizeVerb: prioritize, weight: heavy}
profiles:
- schedulerName: one
  plugins:
    score: {enabled: [{name: ImageLocality, weight: "3"}, NodeAffinity]}
    filters: {}
`,
			want: []string{
				"clientConnection.kubeConfig: unknown field: the known fields are acceptContentTypes, burst, contentType, kubeconfig, qps",
				`clientConnection.qps: Invalid value: "fast": must be a number`,
				"extenders[0].httpTimeout: Invalid value: 5: must be a duration with its unit, such as 30s or 5m",
				"extenders[0].tlsConfig.caData: Invalid value: (not shown): must be text in base64",
				"extenders[0].tlsConfig.keyData: Invalid value: (not shown): must be text in base64",
				`extenders[1].weight: Invalid value: "heavy": must be a whole number between -9223372036854775808 and 9223372036854775807`,
				"paralelism: unknown field: the known fields are clientConnection, enableContentionProfiling, enableProfiling, extenders, " +
					"leaderElection, parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles",
				"parallelism: Invalid value: a value of 102 characters: must be a whole number between -2147483648 and 2147483647",
				`percentageOfNodesToScore: Invalid value: "many": must be a whole number between -2147483648 and 2147483647`,
				"profiles[0].plugins.filters: unknown field: the known fields are bind, filter, multiPoint, permit, postBind, postFilter, preBind, " +
					"preFilter, preScore, queueSort, reserve, score",
				`profiles[0].plugins.score.enabled[0].weight: Invalid value: "3": must be a whole number between -2147483648 and 2147483647`,
				`profiles[0].plugins.score.enabled[1]: Invalid value: "NodeAffinity": must be an object with fields from name, weight`,
				"podInitialBackoffSeconds: Invalid value: -1: must be greater than 0",
				"extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
			},
		},
		{
			name: "args of stock plugins",
			document: head + `
profiles:
- pluginConfig:
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operators: In}]}]}}}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 101, kind: InterPodAffinityArguments}
`,
			want: []string{
				"profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operators: " +
					"unknown field: the known fields are key, operator, values",
				`profiles[0].pluginConfig[1].args.kind: Invalid value: "InterPodAffinityArguments": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
				`profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: ` +
					`Unsupported value: ""`,
				"profiles[0].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
			},
		},
		{
			name: "args of another version than the file",
			document: head + `
profiles:
- pluginConfig:
  - name: InterPodAffinity
    args: {apiVersion: kubescheduler.config.k8s.io/v1beta2, kind: InterPodAffinityArgs, weight: 1}
  - name: RandScore
    args: {apiVersion: kubescheduler.config.k8s.io/v1, sede: 1}
`,
			want: []string{
				"profiles[0].pluginConfig[0].args.weight: unknown field: the known fields are hardPodAffinityWeight",
				`profiles[0].pluginConfig[0].args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta2": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
				"profiles[0].pluginConfig[1].args.sede: unknown field: the known fields are seed",
				`profiles[0].pluginConfig[1].args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
			},
		},
		{
			name: "possible passwords are not shown",
			document: head + `
profiles:
- schedulerName: one
  pluginConfig:
  - {name: NodeLoad, args: {prometheus: "https://user:password@example.com"}}
- schedulerName: other
  pluginConfig:
  - name: NodeLoad
    args:
      prometheus:
        endpoints: https://user:password@example.com
        timeout: 5
        bearerTokenFile: 1234
        headers: [password, {name: X-Key, value: 1234, valueFile: [password]}]
        tls: {keyFile: 1234, insecureSkipVerify: 0}
      resources: [{name: cpu, capacity: many, estimator: {default: {}}}]
`,
			want: []string{
				"profiles[0].pluginConfig[0].args.prometheus: Invalid value: (not shown): must be an object with fields from bearerTokenFile, endpoints, headers, matchers, timeout, tls",
				"profiles[1].pluginConfig[0].args.prometheus.bearerTokenFile: Invalid value: (not shown): must be text; put a number, true or false in quotes",
				"profiles[1].pluginConfig[0].args.prometheus.endpoints: Invalid value: (not shown): must be a list",
				"profiles[1].pluginConfig[0].args.prometheus.headers[0]: Invalid value: (not shown): must be an object with fields from name, value, valueFile",
				"profiles[1].pluginConfig[0].args.prometheus.headers[1].value: Invalid value: (not shown): must be text; put a number, true or false in quotes",
				"profiles[1].pluginConfig[0].args.prometheus.headers[1].valueFile: Invalid value: (not shown): must be text; put a number, true or false in quotes",
				"profiles[1].pluginConfig[0].args.prometheus.timeout: Invalid value: 5: must be a duration with its unit, such as 30s or 5m",
				"profiles[1].pluginConfig[0].args.prometheus.tls.insecureSkipVerify: Invalid value: 0: must be true or false",
				"profiles[1].pluginConfig[0].args.prometheus.tls.keyFile: Invalid value: (not shown): must be text; put a number, true or false in quotes",
				`profiles[1].pluginConfig[0].args.resources[0].capacity: Invalid value: "many": must be a quantity, such as 250m or 2Gi`,
				"profiles[1].pluginConfig[0].args.resources[0].estimator.default: Invalid value: an object: must be a quantity, such as 250m or 2Gi",
			},
		},
		{
			name: "numbers that JSON cannot express",
			document: head + `
parallelism: -.inf # none
profiles:
- schedulerName: one
  pluginConfig:
  - {name: ExtensionPointLogger, args: {sampleRate: .nan}}
  - name: PodFilter
    args:
      rules:
      - {name: a, action: Deny, podNames: [".nan", a.inf]}
- schedulerName: other
  pluginConfig:
  - name: ExtensionPointLogger
    args:
      sampleRate: .NaN
`,
			want: []string{
				`parallelism: Invalid value: "-.inf": must be a whole number between -2147483648 and 2147483647`,
				`profiles[0].pluginConfig[0].args.sampleRate: Invalid value: ".nan": must be a number`,
				`profiles[1].pluginConfig[0].args.sampleRate: Invalid value: ".NaN": must be a number`,
			},
		},
		{
			name: "duplicate keys",
			document: head + `
parallelism: 1
parallelism: 0
profiles:
- schedulerName: a
  schedulerName: b
`,
			want: []string{
				`line 5: key "parallelism" already set in map`,
				`line 8: key "schedulerName" already set in map`,
				"parallelism: Invalid value: 0: should be an integer value greater than zero",
			},
		},
		{
			name:     "JSON",
			document: `{"apiVersion":"kubescheduler.config.k8s.io/v1beta2","kind":"KubeSchedulerConfiguration","parallelism":1,"parallelism":"2","profiles":[{"plugins":{"multipoint":{}}}]}`,
			want: []string{
				`duplicate field "parallelism"`,
				`parallelism: Invalid value: "2": must be a whole number between -2147483648 and 2147483647`,
				"profiles[0].plugins.multipoint: unknown field: the known fields are bind, filter, multiPoint, permit, postBind, postFilter, preBind, preFilter, preScore, queueSort, reserve, score",
			},
		},
		{
			name:     "an unsupported version and kind",
			document: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfig\nprofiles: []\nprofiles: []\n",
			want: []string{
				`line 4: key "profiles" already set in map`,
				`apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1": supported values: "kubescheduler.config.k8s.io/v1beta3", "kubescheduler.config.k8s.io/v1beta2"`,
				`kind: Unsupported value: "KubeSchedulerConfig": supported values: "KubeSchedulerConfiguration"`,
			},
		},
		{
			name: "v1",
			document: `# of a newer cluster
kind: KubeSchedulerConfiguration
apiVersion: kubescheduler.config.k8s.io/v1
delayCacheUntilActive: true
parallelism: 0
profiles:
- pluginConfig: [{name: InterPodAffinity, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs, hardPodAffinityWeight: 101}}]
`,
			want: []string{
				`apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": Kubernetes 1.23 does not read this version: ` +
					"write apiVersion: kubescheduler.config.k8s.io/v1beta3 in line 3, and see docs/known-as.md#v1-and-v1beta1-files",
				"delayCacheUntilActive: unknown field: the known fields are clientConnection, enableContentionProfiling, enableProfiling, extenders, " +
					"leaderElection, parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles",
				`profiles[0].pluginConfig[0].args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
				"parallelism: Invalid value: 0: should be an integer value greater than zero",
				"profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
			},
		},
		{
			name:     "v1beta1 in JSON",
			document: "{\n  \"apiVersion\": \"kubescheduler.config.k8s.io/v1beta1\",\n  \"kind\": \"KubeSchedulerConfiguration\"\n}\n",
			want: []string{`apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta1": Kubernetes 1.23 does not read this version: ` +
				"write apiVersion: kubescheduler.config.k8s.io/v1beta2 in line 2, and see docs/known-as.md#v1-and-v1beta1-files"},
		},
		{
			name:     "v1beta1 after a byte order mark",
			document: "\ufeffapiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n",
			want: []string{`apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta1": Kubernetes 1.23 does not read this version: ` +
				"write apiVersion: kubescheduler.config.k8s.io/v1beta2 in line 1, and see docs/known-as.md#v1-and-v1beta1-files"},
		},
		{
			name: "JSON with a version inside too",
			document: `{"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {
"apiVersion": "kubescheduler.config.k8s.io/v1beta1", "kind": "InterPodAffinityArgs"}}]}],
"apiVersion": "kubescheduler.config.k8s.io/v1beta1", "kind": "KubeSchedulerConfiguration"}`,
			want: []string{`apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta1": Kubernetes 1.23 does not read this version: ` +
				"write apiVersion: kubescheduler.config.k8s.io/v1beta2, and see docs/known-as.md#v1-and-v1beta1-files",
				`profiles[0].pluginConfig[0].args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta1": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
			},
		},
		{
			name:     "neither kind nor version",
			document: "profiles: []\n",
			want: []string{
				"apiVersion: Required value: kubescheduler.config.k8s.io/v1beta3 or kubescheduler.config.k8s.io/v1beta2",
				"kind: Required value: KubeSchedulerConfiguration",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(tt.document), nil, nil)
			if err == nil {
				t.Fatal("the scheduler's decoder returns no error")
			}
			if diff := cmp.Diff(tt.want, Lines(Explain(write(t, tt.document), err))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainReturnsOtherErrors(t *testing.T) {
	other := errors.New("not the decoder's")
	for name, document := range map[string]string{
		"not YAML":       "profiles: [",
		"not JSON":       `{"apiVersion": `,
		"not an object":  "- 1\n",
		"kind is a list": "kind: [1]\n",
		"unknown field":  head + "a: b\n",
		"valid":          head,
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, document)
			_, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
			if got := Explain(file, err); got != err && name != "unknown field" {
				t.Errorf("got %q, want the decoder's %q", got, err)
			}
			for _, file := range []string{file, file + ".gone", ""} {
				if got := Explain(file, other); got != other {
					t.Errorf("%s: got %q", file, got)
				}
			}
			if got := Explain(file, nil); got != nil {
				t.Errorf("without an error: got %q", got)
			}
		})
	}
}

func TestMeaningful(t *testing.T) {
	refused := []string{"profiles[1].pluginConfig[0].args.rules[0].podNames", "parallelism"}
	rule := field.NewPath("profiles").Index(1).Child("pluginConfig").Index(0).Child("args", "rules").Index(0)
	for _, tt := range []struct {
		name string
		err  *field.Error
		want bool
	}{
		{"a rejected field", field.Invalid(field.NewPath("parallelism"), 0, ""), false},
		{"inside a rejected field", field.Invalid(rule.Child("podNames").Index(1), "", ""), false},
		{"another field", field.Required(rule.Child("podNamesOfOthers"), ""), true},
		{"absent because of a rejected field", field.Required(rule, ""), false},
		{"invalid, with a rejected field inside", field.Invalid(rule, "", ""), true},
		{"flags may override it", field.Required(field.NewPath("leaderElection", "resourceName"), ""), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := meaningful(tt.err, refused); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestFindAgreesWithTheDecoder puts values of every kind into every field of the args of all plugins, ours and
// upstream's, and into an unknown field, one at a time. If the scheduler's decoder rejects a value, there must be
// exactly one error, with the path of that field; otherwise there must be none.
func TestFindAgreesWithTheDecoder(t *testing.T) {
	values := []string{`"text"`, `"kubescheduler.config.k8s.io/v1beta2"`, `7`, `1.5`, `99999999999`, `true`, `{"a":"b"}`, `["c"]`, `[["d"]]`, `[{"e":1}]`, `{"f":{"g":1}}`, `null`, `"1s"`, `[null]`}
	refused := 0
	for kind, goType := range scheme.Scheme.KnownTypes(v1beta3.SchemeGroupVersion) {
		if !strings.HasSuffix(kind, "Args") {
			continue
		}
		plugin := strings.TrimSuffix(kind, "Args")
		unknown := place{path: ".no-such-field", before: `{"no-such-field":`, after: "}"}
		for _, place := range append(placesIn(goType), unknown) {
			for _, value := range values {
				document := []byte(fmt.Sprintf(
					`{"apiVersion":%q,"kind":"KubeSchedulerConfiguration","profiles":[{"pluginConfig":[{"name":%q,"args":%s}]}]}`,
					v1beta3.SchemeGroupVersion, plugin, place.before+value+place.after))
				_, _, err := scheme.Codecs.UniversalDecoder().Decode(document, nil, nil)
				got := find(document, v1beta3.SchemeGroupVersion.WithKind(configurationKind)).errs
				if err == nil {
					if len(got) > 0 {
						t.Errorf("%s%s: %s: got %q, the decoder returns no error", kind, place.path, value, got)
					}
					continue
				}
				refused++
				path := "profiles[0].pluginConfig[0].args" + place.path
				if len(got) != 1 || !isWithin(strings.SplitN(got[0].Error(), ": ", 2)[0], path) {
					t.Errorf("%s%s: %s: got %q for the decoder's %q", kind, place.path, value, got, err)
				}
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d values were refused", refused)
	}
}

// place is a field inside an object: its path there, and the JSON around its value.
type place struct{ path, before, after string }

// placesIn returns the fields of a type and of its fields.
func placesIn(t reflect.Type) []place {
	var places []place
	for name, fieldType := range fieldsOf(t) {
		here := place{path: "." + name, before: fmt.Sprintf("{%q:", name), after: "}"}
		places = append(places, here)
		if fieldType.Kind() == reflect.Ptr {
			fieldType = fieldType.Elem()
		}
		if fieldType.Kind() == reflect.Slice {
			fieldType = fieldType.Elem()
			here = place{path: here.path + "[0]", before: here.before + "[", after: "]" + here.after}
		}
		if fieldType.Kind() != reflect.Struct || reflect.PtrTo(fieldType).Implements(jsonUnmarshaler) {
			continue
		}
		for _, below := range placesIn(fieldType) {
			places = append(places, place{path: here.path + below.path, before: here.before + below.before, after: below.after + here.after})
		}
	}
	return places
}
