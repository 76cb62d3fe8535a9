// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// These are plugins at one extension point.
type (
	scorer   struct{ framework.ScorePlugin }
	binder   struct{ framework.BindPlugin }
	sorter   struct{ framework.QueueSortPlugin }
	filterer struct {
		framework.FilterPlugin
		name string
	}
)

func (scorer) Name() string     { return "Scorer" }
func (binder) Name() string     { return "Binder" }
func (sorter) Name() string     { return "Sorter" }
func (f filterer) Name() string { return f.name }

// making returns a factory of a plugin or of an error.
func making(plugin framework.Plugin, err error) frameworkruntime.PluginFactory {
	return func(runtime.Object, framework.Handle) (framework.Plugin, error) { return plugin, err }
}

// load decodes a valid configuration.
func load(t *testing.T, document string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	object, gvk, err := scheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := object.(*schedulerconfig.KubeSchedulerConfiguration)
	cfg.APIVersion = gvk.GroupVersion().String()
	return cfg
}

// validate returns what Validate prints for a valid configuration.
func validate(t *testing.T, start Start, document string) string {
	t.Helper()
	start.Config = load(t, document)
	var out, errOut bytes.Buffer
	if err := Validate(&out, &errOut, start, nil); err != nil || errOut.Len() > 0 {
		t.Errorf("returned %v, and printed as errors:\n%s", err, &errOut)
	}
	return out.String()
}

// fitWarning is the warning about an invalid name in ignoredResources.
const fitWarning = `warning: profiles[0].pluginConfig[0].args.ignoredResources[0]: Invalid value: "a b": name part must consist of alphanumeric ` +
	`characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used ` +
	`for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'); the scheduler starts with it, because the profile disables the plugin, or because ` +
	"ignoredResources are those of the extenders' managedResources; correct it\n"

func TestValidatePrintsSummaryAndNotes(t *testing.T) {
	connected := fmt.Sprintf("%sclientConnection: {kubeconfig: %q}\n", head, write(t, ""))
	const unchanged = "profile default-scheduler: the default plugins\n"
	registry := frameworkruntime.Registry{"Scorer": making(scorer{}, nil), "Binder": making(binder{}, nil)}
	if _, patched := frameworkplugins.NewInTreeRegistry()[nodeFilter]; !patched {
		registry[nodeFilter] = making(filterer{name: nodeFilter}, nil)
	}
	tests := []struct {
		name     string
		start    Start
		document string
		// want follows the first line, which names the file and the version.
		want string
	}{
		{name: "one profile that is the default", document: connected, want: unchanged},
		{name: "the older version has other default weights", document: strings.ReplaceAll(connected, "v1beta3", "v1beta2"), want: unchanged},
		{
			name: "plugins that are added, left out, and weigh more",
			document: connected + `
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Scorer, weight: 7}]}
- schedulerName: other
  plugins:
    filter: {disabled: [{name: TaintToleration}, {name: NodeName}]}
    score: {disabled: [{name: ImageLocality}], enabled: [{name: TaintToleration, weight: 5}]}
`,
			want: `profile default-scheduler: the default plugins with these changes
  added:    Scorer (score with weight 7)
profile other: the default plugins with these changes
  left out: NodeName (filter), TaintToleration (filter), ImageLocality (score)
  changed:  TaintToleration (score with weight 5 instead of 3)
`,
		},
		{
			name: "extenders, with files of another machine",
			document: connected + `
extenders:
- {urlPrefix: "http://user:secret@127.0.0.1:9000/a", filterVerb: f, prioritizeVerb: p, weight: 3, bindVerb: b, preemptVerb: v}
- {urlPrefix: "http://127.0.0.1:9001", enableHTTPS: true, tlsConfig: {insecure: true}}
- {urlPrefix: "https://a", filterVerb: f, enableHTTPS: true, tlsConfig: {caFile: /no/such/ca, certFile: /no/such/cert, keyFile: /no/such/key}}
- {urlPrefix: "https://b", filterVerb: f, enableHTTPS: true, tlsConfig: {insecure: true, certData: YQ==, certFile: /no/such/cert, keyFile: /no/such/key}}
`,
			want: unchanged + `extender http://127.0.0.1:9000/a: filter, prioritize with weight 3, preempt, bind
extender http://127.0.0.1:9001: nothing, it has no verbs
extender https://a: filter
extender https://b: filter
note: extenders[1].urlPrefix: begins with http://, so requests are not encrypted, even with enableHTTPS
note: extenders[2].tlsConfig.caFile is not to be found on this machine: stat /no/such/ca: no such file or directory
note: extenders[2].tlsConfig.certFile is not to be found on this machine: stat /no/such/cert: no such file or directory
note: extenders[2].tlsConfig.keyFile is not to be found on this machine: stat /no/such/key: no such file or directory
note: extenders[3].tlsConfig.keyFile is not to be found on this machine: stat /no/such/key: no such file or directory
`,
		},
		{
			name: "settings that are seldom intended", start: Start{KubeconfigFlag: "/kubeconfig"},
			document: head + `
clientConnection: {kubeconfig: /no/such/file}
profiles:
- schedulerName: my-scheduler
  plugins: {filter: {disabled: [{name: NodeNames}, {name: "*"}]}}
  pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 2}}
  - {name: Scorer, args: {a: b}}
  - {name: Scorers, args: {a: b}}
`,
			want: `profile my-scheduler: the default plugins with these changes
  left out: NodeUnschedulable (filter), NodeName (filter), TaintToleration (filter), NodeAffinity (filter), NodePorts (filter), ` +
				`NodeResourcesFit (filter), VolumeRestrictions (filter), EBSLimits (filter), GCEPDLimits (filter), NodeVolumeLimits (filter), ` +
				`AzureDiskLimits (filter), VolumeBinding (filter), VolumeZone (filter), PodTopologySpread (filter), InterPodAffinity (filter)
note: no profile is named default-scheduler: pods that name no scheduler stay Pending, unless another scheduler of that name runs
note: profiles[0].plugins.filter.disabled[NodeNames]: this scheduler has no plugin of that name
note: profiles[0].pluginConfig[1]: Scorer is not enabled in this profile
note: profiles[0].pluginConfig[2]: this scheduler has no plugin named Scorers
note: with --config, the flag --kubeconfig is ignored; set clientConnection.kubeconfig
note: clientConnection.kubeconfig is not to be found on this machine: stat /no/such/file: no such file or directory
`,
		},
		{
			name: "args of a disabled NodeResourcesFit",
			document: connected + `
profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a b]}}]
`,
			want: `profile default-scheduler: the default plugins with these changes
  left out: NodeResourcesFit (preFilter, filter, score)
` + fitWarning,
		},
		{
			name: "args of NodeResourcesFit that an extender's resources replace",
			document: connected + `
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a b]}}]}]
extenders: [{urlPrefix: "http://a", filterVerb: f, managedResources: [{name: example.com/a, ignoredByScheduler: true}]}]
`,
			want: unchanged + "extender http://a: filter\n" + fitWarning,
		},
		{
			name: "rules by restricted labels in one of two profiles",
			document: connected + `
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: NodeFilter}]}}
  pluginConfig:
  - name: NodeFilter
    args:
      defaultAction: Deny
      rules: [{name: a, action: Allow, restrictedLabels: true, nodeSelector: {matchLabels: {node-restriction.kubernetes.io/a: b}}}]
- schedulerName: other
`,
			want: `profile default-scheduler: the default plugins with these changes
  added:    NodeFilter (filter)
profile other: the default plugins
note: rules of NodeFilter with restrictedLabels are in the profiles default-scheduler, and it is not enabled at filter in other: ` +
				"pods choose their profile, and can avoid the rules\n",
		},
		{
			name: "multiPoint in v1beta2",
			document: strings.ReplaceAll(connected, "v1beta3", "v1beta2") + `
profiles:
- {schedulerName: default-scheduler}
- {schedulerName: other, plugins: {multiPoint: {enabled: [{name: Anything}]}}}
`,
			want: unchanged + `profile other: the default plugins
note: profiles[1].plugins.multiPoint: v1beta2 ignores this field; list the extension points, or convert the file to v1beta3
`,
		},
		{
			name: "two documents", document: "# of the first\n---\n" + connected + "---\n# nothing\n---\na: b\n",
			want: unchanged + "note: the file has more than one YAML document: only the first is read, up to the line ---\n",
		},
		{name: "one document between separators", document: "---\n" + connected + "---\n# nothing\n---\n", want: unchanged},
		{name: "the API server's address from a flag", start: Start{Master: "https://127.0.0.1:6443"}, document: head, want: unchanged},
		{
			name: "plugins before and after DefaultBinder",
			document: connected + `
profiles:
- schedulerName: default-scheduler
  plugins: {bind: {enabled: [{name: Binder}]}}
- schedulerName: other
  plugins: {multiPoint: {enabled: [{name: Binder}]}, bind: {enabled: [{name: Binder}, {name: DefaultBinder}]}}
- schedulerName: as-advised
  plugins: {bind: {enabled: [{name: Binder}, {name: DefaultBinder}], disabled: [{name: "*"}]}}
`,
			want: `profile default-scheduler: the default plugins with these changes
  added:    Binder (bind)
profile other: the default plugins with these changes
  added:    Binder (bind)
profile as-advised: the default plugins with these changes
  added:    Binder (bind)
note: profiles[0]: Binder is enabled at bind after DefaultBinder, which binds every pod: list Binder and then DefaultBinder under bind.enabled, and "*" under bind.disabled
`,
		},
		{
			name: "a plugin before DefaultBinder in v1beta2",
			document: strings.ReplaceAll(connected, "v1beta3", "v1beta2") + `
profiles:
- plugins: {bind: {enabled: [{name: Binder}, {name: DefaultBinder}], disabled: [{name: "*"}]}}
`,
			want: "profile default-scheduler: the default plugins with these changes\n  added:    Binder (bind)\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.start.ConfigFile, tt.start.Registry = write(t, tt.document), registry
			got := validate(t, tt.start, tt.document)
			want := fmt.Sprintf("%s is valid (%s)\n%s", tt.start.ConfigFile, load(t, tt.document).APIVersion, tt.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("flags alone", func(t *testing.T) {
		want := "the configuration from the flags is valid (kubescheduler.config.k8s.io/v1beta3)\n" + unchanged + "note: clientConnection.kubeconfig is not set: " +
			"the scheduler finds the API server only if it runs in a pod of the cluster that has a service account's token, or with --master\n"
		if diff := cmp.Diff(want, validate(t, Start{KubeconfigFlag: "/kubeconfig"}, head)); diff != "" {
			t.Errorf("printed (-want +got):\n%s", diff)
		}
	})
}

func TestValidatePrintsAllErrors(t *testing.T) {
	asking := func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		_, err := handle.ClientSet().CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
		return nil, err
	}
	askingByItself := func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		client, err := clientset.NewForConfig(handle.KubeConfig())
		if err != nil {
			return nil, err
		}
		_, err = client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
		return nil, err
	}
	registry := frameworkruntime.Registry{
		"Scorer":         making(scorer{}, nil),
		"Sorter":         making(sorter{}, nil),
		"Broken":         making(nil, errors.New("the first line\nand the second")),
		"BrokenTwice":    making(nil, utilerrors.NewAggregate([]error{errors.New("one thing"), errors.New("another"), errors.New("one thing")})),
		"Asking":         asking,
		"AskingByItself": askingByItself,
	}
	const refused = `Get "https://cluster.invalid/api/v1/nodes": no request is sent while a configuration is validated`
	tests := []struct {
		name     string
		registry frameworkruntime.Registry
		document string
		want     []string
	}{
		{
			name: "plugins whose New fails, and unknown plugins",
			document: head + `
profiles:
- schedulerName: default-scheduler
  plugins: {score: {enabled: [{name: Broken}, {name: Scorer}, {name: Scoorer}, {name: TargetLoadPacking}]}, multiPoint: {enabled: [{name: BrokenTwice}, {name: Lost}]}}
- schedulerName: other
  plugins: {filter: {enabled: [{name: Broken}]}}
`,
			want: []string{
				"profiles[0].plugins.multiPoint.enabled[Lost]: this scheduler has no plugin of that name",
				"profiles[0].plugins.score.enabled[Scoorer]: this scheduler has no plugin of that name",
				"profiles[0].plugins.score.enabled[TargetLoadPacking]: this scheduler has no plugin of that name; use NodeLoad with the strategy TargetUtilization: docs/known-as.md",
				"profiles[0]: plugin Broken: the first line and the second",
				"profiles[0]: plugin BrokenTwice: another",
				"profiles[0]: plugin BrokenTwice: one thing",
				"profiles[1]: plugin Broken: the first line and the second",
			},
		},
		{
			name:     "negative weights",
			document: head + "profiles: [{plugins: {multiPoint: {enabled: [{name: Scorer, weight: -1}]}, score: {enabled: [{name: ImageLocality, weight: -2}]}}}]\n",
			want: []string{
				"profiles[0].plugins.multiPoint.enabled[Scorer].weight: Invalid value: -1: must not be negative",
				"profiles[0].plugins.score.enabled[ImageLocality].weight: Invalid value: -2: must not be negative",
			},
		},
		{
			name:     "plugins that send requests",
			document: head + "profiles: [{plugins: {multiPoint: {enabled: [{name: Asking}, {name: AskingByItself}]}}}]\n",
			want: []string{
				"profiles[0]: plugin Asking: " + refused,
				"profiles[0]: plugin AskingByItself: " + refused,
			},
		},
		{
			name: "profiles as a whole and extenders and leader election",
			document: head + `
leaderElection: {resourceLock: files}
profiles:
- schedulerName: a
  plugins: {filter: {enabled: [{name: Scorer}]}}
- schedulerName: b
  plugins: {bind: {disabled: [{name: "*"}]}}
extenders:
- {urlPrefix: "https://a", enableHTTPS: true, tlsConfig: {insecure: true, certFile: DIRECTORY, keyFile: DIRECTORY}}
- {urlPrefix: "https://b", enableHTTPS: true, tlsConfig: {insecure: true}}
- {urlPrefix: "https://c", enableHTTPS: true, tlsConfig: {caFile: DIRECTORY, certFile: /no/such/cert, keyFile: /no/such/key}}
- {urlPrefix: "https://d", enableHTTPS: true, tlsConfig: {insecure: true, caFile: /no/such/ca}}
`,
			want: []string{
				`profiles[0]: plugin "Scorer" does not extend FilterPlugin plugin`,
				"profiles[1]: at least one bind plugin is needed",
				"extenders[0]: read DIRECTORY: is a directory",
				"extenders[2]: read DIRECTORY: is a directory",
				"extenders[3]: specifying a root certificates file with the insecure flag is not allowed",
				"leaderElection: Invalid lock-type files",
			},
		},
		{
			name: "all profiles together",
			document: head + `
profiles:
- schedulerName: a
- schedulerName: b
  plugins: {multiPoint: {enabled: [{name: Sorter}], disabled: [{name: PrioritySort}]}}
`,
			want: []string{`couldn't create scheduler: initializing profiles: different queue sort plugins for profile "b": "Sorter", first: "PrioritySort"`},
		},
		{
			name:     "two plugins of one name",
			registry: frameworkruntime.Registry{"NodeName": making(scorer{}, nil)},
			document: head,
			want:     []string{"a plugin named NodeName already exists"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.registry == nil {
				tt.registry = registry
			}
			var out, errOut bytes.Buffer
			// A directory exists, but cannot be read as a certificate.
			dir := t.TempDir()
			cfg := load(t, strings.ReplaceAll(tt.document, "DIRECTORY", dir))
			err := Validate(&out, &errOut, Start{ConfigFile: "config.yaml", Config: cfg, Registry: tt.registry}, nil)
			want := ""
			for _, line := range tt.want {
				want += "error: " + strings.ReplaceAll(line, "DIRECTORY", dir) + "\n"
			}
			if diff := cmp.Diff(want, errOut.String()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if wantErr := fmt.Sprintf("config.yaml: %s, listed above", count(len(tt.want), "error")); err == nil || err.Error() != wantErr {
				t.Errorf("returned %v, want %s", err, wantErr)
			}
			if out.Len() > 0 {
				t.Errorf("printed as a result:\n%s", &out)
			}
		})
	}
}

func TestLinesShowTheDuplicatePath(t *testing.T) {
	path := field.NewPath("profiles").Index(1).Child("schedulerName")
	got := Lines(field.Duplicate(path, field.NewPath("profiles").Index(0).Child("schedulerName")))
	if want := []string{`profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"`}; cmp.Diff(want, got) != "" {
		t.Errorf("got %q", got)
	}
}

func TestValidatePrintsErrorsOfTheFile(t *testing.T) {
	var out, errOut bytes.Buffer
	err := Validate(&out, &errOut, Start{ConfigFile: "config.yaml"}, utilerrors.NewAggregate([]error{errors.New("a: wrong"), errors.New("b: wrong")}))
	if err == nil || err.Error() != "config.yaml: 2 errors, listed above" {
		t.Errorf("returned %v", err)
	}
	if errOut.String() != "error: a: wrong\nerror: b: wrong\n" || out.Len() > 0 {
		t.Errorf("printed %q and %q", &errOut, &out)
	}
}

// TestValidateKeepsTheConfiguration covers the extenders' timeouts and the args of NodeResourcesFit, which creating a
// scheduler changes.
func TestValidateKeepsTheConfiguration(t *testing.T) {
	cfg := load(t, head+`extenders: [{urlPrefix: "http://a", managedResources: [{name: example.com/a, ignoredByScheduler: true}]}]`)
	before := cfg.DeepCopy()
	if err := Validate(&bytes.Buffer{}, &bytes.Buffer{}, Start{Config: cfg}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, cfg); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
}

func TestLogErrors(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("ERROR", &log)
	t.Cleanup(func() { klog.LogToStderr(true) })
	plain := errors.New("plain")
	if got := LogErrors(plain); got != plain {
		t.Errorf("got %v, want the error as it was", got)
	}
	err := LogErrors(utilerrors.NewAggregate([]error{
		errors.New(`a: Invalid value: "x"`), utilerrors.NewAggregate([]error{errors.New("b: wrong"), errors.New("c: wrong")}), errors.New(`a: Invalid value: "x"`),
	}))
	if err == nil || err.Error() != "3 errors, logged above" {
		t.Errorf("got %v", err)
	}
	logged := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(logged) != 3 || !strings.HasSuffix(logged[0], `] a: Invalid value: "x"`) || !strings.HasSuffix(logged[1], "] b: wrong") || !strings.HasSuffix(logged[2], "] c: wrong") {
		t.Errorf("logged:\n%s", &log)
	}
}
