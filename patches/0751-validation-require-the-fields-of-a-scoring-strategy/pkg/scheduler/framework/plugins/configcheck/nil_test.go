// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"strings"
	"testing"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// TestNoConfigurationPanics puts empty values, and a value that needs another field, into every field of the args of all
// plugins, and of the configuration, one at a time. A start with each configuration that can be decoded must end with an
// error or succeed.
func TestNoConfigurationPanics(t *testing.T) {
	values := []string{`null`, `{}`, `[]`, `[null]`, `[{}]`, `""`, `0`, `{"a":null}`, `"RequestedToCapacityRatio"`}
	started := 0
	try := func(what, document string) {
		defer func() {
			if panicked := recover(); panicked != nil {
				t.Errorf("%s: %v", what, panicked)
			}
		}()
		object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
		if err != nil {
			return
		}
		cfg := object.(*schedulerconfig.KubeSchedulerConfiguration)
		cfg.APIVersion = v1beta3.SchemeGroupVersion.String()
		if validation.ValidateKubeSchedulerConfiguration(cfg) == nil {
			started++
			// Only a panic is a fault here.
			_, _ = Start{Config: cfg}.check()
		}
	}
	for kind, goType := range scheme.Scheme.KnownTypes(v1beta3.SchemeGroupVersion) {
		before, after, plugin := "{", "", strings.TrimSuffix(kind, "Args")
		if plugin != kind {
			before = fmt.Sprintf(`{"profiles":[{"plugins":{"multiPoint":{"enabled":[{"name":%q}]}},"pluginConfig":[{"name":%q,"args":{`, plugin, plugin)
			after = "}]}]}"
		} else if kind != configurationKind {
			continue
		}
		before = fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, v1beta3.SchemeGroupVersion, configurationKind) + before[1:]
		for _, place := range placesIn(goType) {
			for _, value := range values {
				try(kind+place.path+": "+value, before+place.before[1:]+value+place.after+after)
			}
		}
	}
	if started < 300 {
		t.Errorf("only %d configurations were started", started)
	}
}
