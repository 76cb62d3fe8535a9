// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"sigs.k8s.io/scheduler-plugins/apis/config"
)

// TestArguments decodes empty arguments of each plugin of the module, in each version.
func TestArguments(t *testing.T) {
	kinds := []string{"NodeResourcesAllocatable", "TargetLoadPacking", "LoadVariationRiskBalancing", "NodeResourceTopologyMatch", "PreemptionToleration"}
	for _, version := range []string{"v1beta2", "v1beta3"} {
		text := "apiVersion: kubescheduler.config.k8s.io/" + version + "\nkind: KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n"
		for _, kind := range kinds {
			text += fmt.Sprintf("  - {name: %s, args: {}}\n", kind)
		}
		decoded, _, err := Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		for i, kind := range kinds {
			args := reflect.ValueOf(decoded.(*schedconfig.KubeSchedulerConfiguration).Profiles[0].PluginConfig[i].Args).Elem()
			own := args.Type().Name() == kind+"Args" && strings.HasSuffix(args.Type().PkgPath(), "scheduler-plugins/apis/config")
			if !own || args.IsZero() {
				t.Errorf("%s: the arguments of %s are %s %+v, want the module's, with defaults", version, kind, args.Type(), args)
			}
		}
	}
}

// TestCoschedulingArgs checks that the kind is free for the plugin of Kubernetes' tree that has the name of the module's.
func TestCoschedulingArgs(t *testing.T) {
	for _, known := range Scheme.AllKnownTypes() {
		if known == reflect.TypeOf(config.CoschedulingArgs{}) {
			t.Error("the module's type is registered")
		}
	}
}
