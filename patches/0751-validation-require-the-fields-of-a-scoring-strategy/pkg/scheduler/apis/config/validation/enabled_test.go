// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
)

func TestValidateScoringStrategy(t *testing.T) {
	const path = "profiles[3].pluginConfig[0].args."
	enabled := config.PluginSet{Enabled: []config.Plugin{{Name: "NodeResourcesFit"}}}
	ratio := &config.ScoringStrategy{Type: config.RequestedToCapacityRatio}
	tests := []struct {
		name    string
		plugins *config.Plugins
		args    config.NodeResourcesFitArgs
		want    string
	}{
		{
			name:    "a type without its fields",
			plugins: &config.Plugins{MultiPoint: enabled},
			args:    config.NodeResourcesFitArgs{ScoringStrategy: ratio},
			want:    path + "scoringStrategy.requestedToCapacityRatio: Required value: the type RequestedToCapacityRatio needs its shape",
		},
		{
			name:    "another field, enabled at one extension point",
			plugins: &config.Plugins{Score: enabled},
			args:    config.NodeResourcesFitArgs{IgnoredResourceGroups: []string{"a/b"}},
			want:    path + `ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can't contain '/'`,
		},
		{name: "a plugin that is not enabled", plugins: &config.Plugins{}, args: config.NodeResourcesFitArgs{ScoringStrategy: ratio}},
		{name: "no plugins", args: config.NodeResourcesFitArgs{ScoringStrategy: ratio}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			profile := &config.KubeSchedulerProfile{Plugins: tt.plugins, PluginConfig: []config.PluginConfig{{Name: "NodeResourcesFit", Args: &tt.args}}}
			got := ""
			for _, err := range validatePluginConfig(field.NewPath("profiles").Index(3), v1beta3.SchemeGroupVersion.String(), profile) {
				got += err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
