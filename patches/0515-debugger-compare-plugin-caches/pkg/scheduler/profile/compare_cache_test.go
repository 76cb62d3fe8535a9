// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// keeper reports a difference for each node. It is enabled at several extension points.
type keeper struct {
	framework.PreFilterPlugin
	framework.FilterPlugin
}

func (keeper) Name() string { return "Keeper" }

func (keeper) CompareCache(nodes map[string]*framework.NodeInfo) []string {
	var differs []string
	for name := range nodes {
		differs = append(differs, name+" is not so")
	}
	return differs
}

func TestCompareCache(t *testing.T) {
	registry := frameworkruntime.Registry{
		"Keeper": func(runtime.Object, framework.Handle) (framework.Plugin, error) { return keeper{}, nil },
	}
	if err := registry.Merge(fakeRegistry); err != nil {
		t.Fatal(err)
	}
	keeping := config.PluginSet{Enabled: []config.Plugin{{Name: "Keeper"}}}
	profiles := Map{}
	for _, name := range []string{"one", "two"} {
		fwk, err := frameworkruntime.NewFramework(registry, &config.KubeSchedulerProfile{SchedulerName: name, Plugins: &config.Plugins{
			QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: "QueueSort"}}},
			Bind:      config.PluginSet{Enabled: []config.Plugin{{Name: "Bind1"}}},
			PreFilter: keeping, Filter: keeping,
		}})
		if err != nil {
			t.Fatal(err)
		}
		profiles[name] = fwk
	}
	got := profiles.CompareCache(map[string]*framework.NodeInfo{"node-1": framework.NewNodeInfo()})
	if want := []string{"one, Keeper: node-1 is not so", "two, Keeper: node-1 is not so"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
