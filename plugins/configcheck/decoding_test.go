// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	schedulervalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
)

// newReader returns a reader with the patched scheduler's scheme and validation, which know the plugins' args. In the
// patched tree, validation returns the same errors twice; lines omits duplicates.
func newReader() reader {
	known := runtime.NewScheme()
	schedulerscheme.AddToScheme(known)
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDecoder()
	return reader{scheme: known, decoder: decoder, validate: validateWithPlugins}
}

func validateWithPlugins(cfg *schedulerconfig.KubeSchedulerConfiguration) utilerrors.Aggregate {
	var errs []error
	if err := schedulervalidation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		errs = append(errs, err)
	}
	for i, profile := range cfg.Profiles {
		for j, pluginConfig := range profile.PluginConfig {
			validate, found := validation.Functions()[pluginConfig.Name]
			if !found {
				continue
			}
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
			out := reflect.ValueOf(validate).Call([]reflect.Value{reflect.ValueOf(path), reflect.ValueOf(pluginConfig.Args)})
			if err, ok := out[0].Interface().(error); ok {
				errs = append(errs, err)
			}
		}
	}
	return utilerrors.Flatten(utilerrors.NewAggregate(errs))
}

// decode returns the lines that the scheduler prints when it cannot decode a document.
func decode(t *testing.T, document string) []string {
	t.Helper()
	r := newReader()
	_, _, err := r.decoder.Decode([]byte(document), nil, nil)
	if err == nil {
		t.Fatal("the scheduler's decoder returns no error")
	}
	return lines(r.explain([]byte(document), err))
}

func TestExplainNamesAllErrors(t *testing.T) {
	const v1beta3Head = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
	tests := []struct {
		name     string
		document string
		want     []string
	}{
		{
			name: "an unknown field, a wrong type and a bad value, in the args of three plugins in two profiles",
			document: v1beta3Head + `
profiles:
- schedulerName: first
  pluginConfig:
  - name: ExtensionPointLogger
    args: {smapleRate: 1, redact: "no", sampleRate: 2}
  - name: NodeFilter
    args:
      rules:
      - {name: a, action: Allow, nodeNames: ["n*"]}
      - {name: b, action: Refuse, nodeNames: ["n*"]}
      - {name: c, action: 3, nodeNames: ["n*", 7], nodeSelector: {matchLabel: {a: b}}}
- schedulerName: second
  pluginConfig:
  - name: Chaos
    args: {namespaces: [kube-system], rejectPercent: 101, maxPermitDelay: 5 minutes, seed: 1.5}
`,
			want: []string{
				`profiles[0].pluginConfig[0].args.redact: Invalid value: "no": must be true or false`,
				`profiles[0].pluginConfig[0].args.smapleRate: unknown field: the known fields are namespaces, queueSort, redact, sampleRate`,
				`profiles[0].pluginConfig[1].args.rules[2].action: Invalid value: 3: must be text; put a number, true or false in quotes`,
				`profiles[0].pluginConfig[1].args.rules[2].nodeNames[1]: Invalid value: 7: must be text; put a number, true or false in quotes`,
				`profiles[0].pluginConfig[1].args.rules[2].nodeSelector.matchLabel: unknown field: the known fields are matchExpressions, matchLabels`,
				`profiles[1].pluginConfig[0].args.maxPermitDelay: Invalid value: "5 minutes": must be a duration with its unit, such as 30s or 5m`,
				`profiles[1].pluginConfig[0].args.seed: Invalid value: 1.5: must be a whole number between -9223372036854775808 and 9223372036854775807`,
				`profiles[0].pluginConfig[0].args.sampleRate: Invalid value: 2: must be more than 0 and at most 1`,
				`profiles[0].pluginConfig[1].args.rules[1].action: Unsupported value: "Refuse": supported values: "Allow", "Deny", "Prefer", "Share"`,
				`profiles[1].pluginConfig[0].args.namespaces[0]: Forbidden: the pods of kube-system are never disturbed`,
				`profiles[1].pluginConfig[0].args.rejectPercent: Invalid value: 101: must be between 0 and 100, inclusive`,
			},
		},
		{
			name: "fields outside args",
			document: v1beta3Head + `
paralelism: 4
percentageOfNodesToScore: many
podInitialBackoffSeconds: -1
clientConnection: {qps: fast, kubeConfig: /etc/kubernetes/scheduler.conf}
extenders:
- {urlPrefix: "http://127.0.0.1:9000", prioritizeVerb: prioritize, weight: 0, httpTimeout: 5, tlsConfig: {keyData: secret!}}
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
				"extenders[0].tlsConfig.keyData: Invalid value: (not shown): must be text in base64",
				"paralelism: unknown field: the known fields are clientConnection, enableContentionProfiling, enableProfiling, extenders, " +
					"leaderElection, parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles",
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
			document: v1beta3Head + `
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
			document: v1beta3Head + `
profiles:
- pluginConfig:
  - name: InterPodAffinity
    args: {apiVersion: kubescheduler.config.k8s.io/v1beta2, kind: InterPodAffinityArgs, weight: 1}
  - name: NodeFilter
    args: {apiVersion: kubescheduler.config.k8s.io/v1, seed: 1}
`,
			want: []string{
				"profiles[0].pluginConfig[0].args.weight: unknown field: the known fields are hardPodAffinityWeight",
				`profiles[0].pluginConfig[0].args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta2": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
				"profiles[0].pluginConfig[1].args.seed: unknown field: the known fields are defaultAction, rules",
				`profiles[0].pluginConfig[1].args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": args have the file's version and the plugin's kind: leave out apiVersion and kind`,
				"profiles[0].pluginConfig[1].args.rules: Required value: 1 to 100 rules",
			},
		},
		{
			name: "args that are not an object",
			document: v1beta3Head + `
profiles:
- pluginConfig:
  - {name: Chaos, args: [test]}
  - {name: [RandScore], args: {seed: 1}}
`,
			want: []string{
				"profiles[0].pluginConfig[0].args: Invalid value: a list: must be an object with fields from dryRun, maxConsecutiveRejections, maxPermitDelay, " +
					"namespaces, randomBindPercent, randomScore, rejectPercent, seed",
				"profiles[0].pluginConfig[1].name: Invalid value: a list: must be text; put a number, true or false in quotes",
			},
		},
		{
			name: "errors caused only by refused fields are omitted",
			document: v1beta3Head + `
profiles:
- pluginConfig:
  - {name: PodFilter, args: {rules: [{name: a, action: Deny, podNames: a*}]}}
  - {name: Chaos, args: {namespaces: test}}
`,
			want: []string{
				`profiles[0].pluginConfig[0].args.rules[0].podNames: Invalid value: "a*": must be a list`,
				`profiles[0].pluginConfig[1].args.namespaces: Invalid value: "test": must be a list`,
			},
		},
		{
			name: "possible passwords are not shown",
			document: v1beta3Head + `
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
				"profiles[0].pluginConfig[0].args.prometheus: Invalid value: (not shown): must be an object with fields from bearerTokenFile, endpoints, headers, timeout, tls",
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
			name: "wrong numbers",
			document: v1beta3Head + `
profiles:
- schedulerName: one
  pluginConfig:
  - {name: Chaos, args: {namespaces: [a], rejectPercent: 1.5, seed: 9223372036854775808, maxPermitDelay: 5, maxConsecutiveRejections: x}}
  - {name: ExtensionPointLogger, args: {sampleRate: x}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: x}}
- schedulerName: other
  pluginConfig:
  - {name: ExtensionPointLogger, args: {sampleRate: 1e400}}
`,
			want: []string{
				`profiles[0].pluginConfig[0].args.maxConsecutiveRejections: Invalid value: "x": must be a whole number between -2147483648 and 2147483647`,
				"profiles[0].pluginConfig[0].args.maxPermitDelay: Invalid value: 5: must be a duration with its unit, such as 30s or 5m",
				"profiles[0].pluginConfig[0].args.rejectPercent: Invalid value: 1.5: must be a whole number between -2147483648 and 2147483647",
				"profiles[0].pluginConfig[0].args.seed: Invalid value: 9223372036854775808: must be a whole number between -9223372036854775808 and 9223372036854775807",
				`profiles[0].pluginConfig[1].args.sampleRate: Invalid value: "x": must be a number`,
				`profiles[0].pluginConfig[2].args.hardPodAffinityWeight: Invalid value: "x": must be a whole number between -2147483648 and 2147483647`,
				`profiles[1].pluginConfig[0].args.sampleRate: Invalid value: "1e400": must be a number`,
			},
		},
		{
			name: "numbers that JSON cannot express",
			document: v1beta3Head + `
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
			document: v1beta3Head + `
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
			name:     "neither kind nor version",
			document: "profiles: []\n",
			want: []string{
				"apiVersion: Required value: kubescheduler.config.k8s.io/v1beta3 or kubescheduler.config.k8s.io/v1beta2",
				"kind: Required value: KubeSchedulerConfiguration",
			},
		},
		{
			name:     "a value too long to show",
			document: v1beta3Head + "parallelism: " + strings.Repeat("x", 100) + "\n",
			want:     []string{"parallelism: Invalid value: a value of 102 characters: must be a whole number between -2147483648 and 2147483647"},
		},
		{
			name:     "leader election, which flags may override, is not validated",
			document: v1beta3Head + "parallelism: x\nleaderElection: {leaseDuration: 1s}\n",
			want:     []string{`parallelism: Invalid value: "x": must be a whole number between -2147483648 and 2147483647`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, decode(t, tt.document)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainReturnsOtherErrors(t *testing.T) {
	other := errors.New("not the decoder's")
	r := newReader()
	for name, document := range map[string]string{
		"not YAML":       "profiles: [",
		"not JSON":       `{"apiVersion": `,
		"not an object":  "- 1\n",
		"kind is a list": "kind: [1]\n",
		"valid":          "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := r.decoder.Decode([]byte(document), nil, nil); err != nil {
				if got := r.explain([]byte(document), err); got != err {
					t.Errorf("got %q, want the decoder's %q", got, err)
				}
			}
			if got := r.explain([]byte(document), other); got != other {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestExplainWithOwnScheme uses the scheduler's own scheme, which knows the args of upstream's plugins.
func TestExplainWithOwnScheme(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	document := `
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeigth: 1, hardPodAffinityWeight: -1}}]}]
`
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := schedulerscheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
	want := []string{
		"profiles[0].pluginConfig[0].args.hardPodAffinityWeigth: unknown field: the known fields are hardPodAffinityWeight",
		"profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]",
	}
	if diff := cmp.Diff(want, lines(Explain(file, err))); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	other := errors.New("a flag is wrong")
	for name, configFile := range map[string]string{"not the decoder's": file, "no file": "", "a missing file": file + ".gone"} {
		if got := Explain(configFile, other); got != other {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := Explain(file, nil); got != nil {
		t.Errorf("without an error: got %q", got)
	}
}

// fieldErrors returns the errors of the fields of a document, even if the decoder returns none.
func fieldErrors(t *testing.T, r reader, data []byte) []error {
	t.Helper()
	document, errs, err := parse(data)
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(document, &kind); err != nil {
		t.Fatal(err)
	}
	return r.find(document, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)).errs
}

// TestFindAgreesWithTheDecoder puts values of every kind into every field of the args of all plugins, ours and
// upstream's, and into an unknown field, one at a time. If the scheduler's decoder rejects a value, there must be
// exactly one error, with the path of that field; otherwise there must be none.
func TestFindAgreesWithTheDecoder(t *testing.T) {
	r := newReader()
	values := []string{`"text"`, `7`, `1.5`, `99999999999`, `true`, `{"a":"b"}`, `["c"]`, `[["d"]]`, `[{"e":1}]`, `{"f":{"g":1}}`, `null`, `"1s"`, `[null]`}
	refused := 0
	for kind, goType := range r.scheme.KnownTypes(v1beta3.SchemeGroupVersion) {
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
				_, _, err := r.decoder.Decode(document, nil, nil)
				got := fieldErrors(t, r, document)
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

// placesIn returns the fields of a type and of its fields, without apiVersion and kind.
func placesIn(t reflect.Type) []place {
	var places []place
	for name, fieldType := range fieldsOf(t) {
		if name == "apiVersion" || name == "kind" {
			continue
		}
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
