package install_test

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerv1beta2 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta2"
	schedulerv1beta3 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/install"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
)

// defaults are the args of each kind when nothing is given.
var defaults = map[string]runtime.Object{
	"ChaosArgs":                &config.ChaosArgs{MaxConsecutiveRejections: 3},
	"ExtensionPointLoggerArgs": &config.ExtensionPointLoggerArgs{SampleRate: 1},
	"MyScorePluginArgs":        &config.MyScorePluginArgs{NodeLabel: "disktype", PreferredValues: []string{"ssd"}},
	"NodeFilterArgs":           &config.NodeFilterArgs{DefaultAction: config.FilterAllow},
	"PodFilterArgs":            &config.PodFilterArgs{DefaultAction: config.FilterAllow},
	"RandScoreArgs":            &config.RandScoreArgs{},
	"RunningImageLocalityArgs": &config.RunningImageLocalityArgs{Count: config.CountImages},
}

// TestArgsAreKnownDefaultedAndConverted asks the very schemes in which the scheduler converts plugin args.
func TestArgsAreKnownDefaultedAndConverted(t *testing.T) {
	for version, scheme := range map[schema.GroupVersion]*runtime.Scheme{
		schedulerv1beta2.SchemeGroupVersion: schedulerv1beta2.GetPluginArgConversionScheme(),
		schedulerv1beta3.SchemeGroupVersion: schedulerv1beta3.GetPluginArgConversionScheme(),
	} {
		for kind, want := range defaults {
			t.Run(version.Version+" "+kind, func(t *testing.T) {
				given, err := scheme.New(version.WithKind(kind))
				if err != nil {
					t.Fatal(err)
				}
				scheme.Default(given)
				internal, err := scheme.ConvertToVersion(given, schedulerconfig.SchemeGroupVersion)
				if err != nil {
					t.Fatal(err)
				}
				internal.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				if !equality.Semantic.DeepEqual(internal, want) {
					t.Errorf("the defaults of %s are %+v, want %+v", kind, internal, want)
				}
				back, err := scheme.ConvertToVersion(internal, version)
				if err != nil {
					t.Fatal(err)
				}
				back.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				if !equality.Semantic.DeepEqual(back, given) {
					t.Errorf("converted there and back: %+v, want %+v", back, given)
				}
			})
		}
	}
}

// TestEveryKindIsInTheTable keeps a kind from being registered and left out of the tests of this package.
func TestEveryKindIsInTheTable(t *testing.T) {
	plugins := validation.Functions()
	if len(plugins) != len(defaults) {
		t.Errorf("%d plugins have validators, and %d kinds of args are tested here", len(plugins), len(defaults))
	}
	for plugin := range plugins {
		if defaults[plugin+"Args"] == nil {
			t.Errorf("the args of %s are not tested here", plugin)
		}
	}
}

// TestGivenArgsAreKept writes every field of every kind with a value that is not its default, and reads it back.
func TestGivenArgsAreKept(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	given := map[string]runtime.Object{
		"ChaosArgs": &config.ChaosArgs{
			Namespaces: []string{"test"}, Seed: -1, DryRun: true, RejectPercent: 1, MaxConsecutiveRejections: 2, RandomScore: true,
			MaxPermitDelay: metav1.Duration{Duration: time.Second}, RandomBindPercent: 3,
		},
		"ExtensionPointLoggerArgs": &config.ExtensionPointLoggerArgs{SampleRate: 0.5, Namespaces: []string{"test"}, Redact: true, QueueSort: true},
		"MyScorePluginArgs":        &config.MyScorePluginArgs{NodeLabel: "zone", PreferredValues: []string{"a", "b"}},
		"NodeFilterArgs": &config.NodeFilterArgs{
			DefaultAction: config.FilterDeny,
			Rules: []config.NodeFilterRule{{
				Name: "rule", Action: config.FilterAllow, NodeNames: []string{"n*"}, NodeSelector: selector, Namespaces: []string{"t?"}, PodSelector: selector,
			}},
		},
		"PodFilterArgs": &config.PodFilterArgs{
			DefaultAction: config.FilterDeny,
			Rules: []config.PodFilterRule{{
				Name: "rule", Action: config.FilterAllow, PodNames: []string{"p*"}, Namespaces: []string{"t?"}, PodSelector: selector,
			}},
		},
		"RandScoreArgs":            &config.RandScoreArgs{Seed: 1 << 62},
		"RunningImageLocalityArgs": &config.RunningImageLocalityArgs{Count: config.CountContainers, SizeWeight: 1, SpreadWeight: 2},
	}
	for version, scheme := range map[schema.GroupVersion]*runtime.Scheme{
		schedulerv1beta2.SchemeGroupVersion: schedulerv1beta2.GetPluginArgConversionScheme(),
		schedulerv1beta3.SchemeGroupVersion: schedulerv1beta3.GetPluginArgConversionScheme(),
	} {
		for kind := range defaults {
			t.Run(version.Version+" "+kind, func(t *testing.T) {
				want := given[kind]
				if want == nil {
					t.Fatal("no example")
				}
				versioned, err := scheme.ConvertToVersion(want, version)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(versioned)
				if err != nil {
					t.Fatal(err)
				}
				read, err := scheme.New(version.WithKind(kind))
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(text, read); err != nil {
					t.Fatal(err)
				}
				scheme.Default(read)
				got, err := scheme.ConvertToVersion(read, schedulerconfig.SchemeGroupVersion)
				if err != nil {
					t.Fatal(err)
				}
				got.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				if !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("%s came back as %+v, want %+v", text, got, want)
				}
			})
		}
	}
}
