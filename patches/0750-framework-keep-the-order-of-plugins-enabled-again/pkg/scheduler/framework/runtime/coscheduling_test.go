// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

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
