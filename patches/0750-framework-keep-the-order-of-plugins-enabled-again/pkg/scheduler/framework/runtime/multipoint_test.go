// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestOrderOfPluginsThatAreEnabledAgain enables plugins at multiPoint, and some of them again at score.
func TestOrderOfPluginsThatAreEnabledAgain(t *testing.T) {
	tests := []struct{ multiPoint, score, want string }{
		{multiPoint: "A B", score: "B A", want: "B A"},
		{multiPoint: "A B C", score: "A B C", want: "A B C"},
		{multiPoint: "A B C", score: "C A B", want: "C A B"},
		{multiPoint: "A B C D E", score: "E D C B A", want: "E D C B A"},
		// First those enabled twice, then those of multiPoint alone, then those of score alone.
		{multiPoint: "A B C D", score: "X D Y C A Z", want: "D C A B X Y Z"},
	}
	plugins := func(names string) (set config.PluginSet) {
		for _, name := range strings.Fields(names) {
			set.Enabled = append(set.Enabled, config.Plugin{Name: name, Weight: 2})
		}
		return set
	}
	registry := Registry{queueSortPlugin: newQueueSortPlugin, bindPlugin: newBindPlugin}
	for _, name := range strings.Fields("A B C D E X Y Z") {
		name := name
		registry[name] = func(runtime.Object, framework.Handle) (framework.Plugin, error) {
			return &batching{preparing{name: name}}, nil
		}
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s at multiPoint, %s at score", tt.multiPoint, tt.score), func(t *testing.T) {
			fwk, err := newFrameworkWithQueueSortAndBind(registry, config.KubeSchedulerProfile{
				Plugins: &config.Plugins{MultiPoint: plugins(tt.multiPoint), Score: plugins(tt.score)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plugins(tt.want), fwk.ListPlugins().Score); diff != "" {
				t.Errorf("score plugins (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCoschedulingBesideMultiPoint enables a plugin at extension points that only its namesake extends.
func TestCoschedulingBesideMultiPoint(t *testing.T) {
	enabled := config.PluginSet{Enabled: []config.Plugin{{Name: "Coscheduling"}}}
	registry := Registry{"Coscheduling": func(runtime.Object, framework.Handle) (framework.Plugin, error) {
		return &preparing{name: "Coscheduling"}, nil
	}}
	fwk, err := newFrameworkWithQueueSortAndBind(registry, config.KubeSchedulerProfile{
		Plugins: &config.Plugins{MultiPoint: enabled, PostFilter: enabled, Permit: enabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fwk.ListPlugins()
	if diff := cmp.Diff(enabled, got.Filter); diff != "" || len(got.PostFilter.Enabled)+len(got.Permit.Enabled) > 0 {
		t.Errorf("filter plugins (-want +got):\n%s\nat postFilter %v, permit %v", diff, got.PostFilter, got.Permit)
	}
}
