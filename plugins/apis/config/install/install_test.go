package install_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerv1beta2 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta2"
	schedulerv1beta3 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/install"
)

// defaults are the args of each kind when nothing is given.
var defaults = map[string]runtime.Object{
	"MyScorePluginArgs": &config.MyScorePluginArgs{NodeLabel: "disktype", PreferredValues: []string{"ssd"}},
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
