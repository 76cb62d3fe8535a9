// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	pluginconfig "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	pluginvalidation "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/utils/pointer"
)

// TestValidatePluginArgsReportsAllErrors sets invalid args for several plugins.
func TestValidatePluginArgsReportsAllErrors(t *testing.T) {
	profile := &config.KubeSchedulerProfile{
		SchedulerName: "a",
		PluginConfig: []config.PluginConfig{
			{Name: "ExtensionPointLogger", Args: &pluginconfig.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(2)}},
			{Name: "InterPodAffinity", Args: &config.InterPodAffinityArgs{HardPodAffinityWeight: -1}},
			{Name: "RandScore", Args: &pluginconfig.RandScoreArgs{}},
			{Name: "RunningImageLocality", Args: &pluginconfig.RunningImageLocalityArgs{Count: pluginconfig.CountImages, SizeWeight: 101, SpreadWeight: pointer.Int32(-1)}},
		},
	}
	err := utilerrors.Flatten(utilerrors.NewAggregate(validatePluginConfig(field.NewPath("profiles").Index(3), v1beta3.SchemeGroupVersion.String(), profile)))
	got := sets.NewString()
	for _, err := range err.Errors() {
		got.Insert(err.(*field.Error).Field)
	}
	want := sets.NewString(
		"profiles[3].pluginConfig[0].args.sampleRate", "profiles[3].pluginConfig[1].args.hardPodAffinityWeight",
		"profiles[3].pluginConfig[3].args.sizeWeight", "profiles[3].pluginConfig[3].args.spreadWeight",
	)
	if !got.Equal(want) {
		t.Errorf("errors for %v, want them for %v", got.List(), want.List())
	}
}

// TestValidatePluginArgsCallsEveryValidator sets another plugin's args for each of our plugins. Only plugins with a
// validator in the table get an error for that.
func TestValidatePluginArgsCallsEveryValidator(t *testing.T) {
	for name := range pluginvalidation.Functions() {
		var foreign runtime.Object = &config.NodeAffinityArgs{}
		profile := &config.KubeSchedulerProfile{SchedulerName: "a", PluginConfig: []config.PluginConfig{{Name: name, Args: foreign}}}
		if errs := validatePluginConfig(nil, v1beta3.SchemeGroupVersion.String(), profile); len(errs) != 1 {
			t.Errorf("%s: got %q, want one error", name, errs)
		}
	}
}
