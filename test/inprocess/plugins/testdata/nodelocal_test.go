// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	intree "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest/nodelocal"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"kube-scheduler-fork/test/inprocess/decision"
)

// TestNodeLocalKeysOfTheTree checks the plugins of Kubernetes whose results the scheduler remembers. The tests of this
// project's own plugins check theirs.
func TestNodeLocalKeysOfTheTree(t *testing.T) {
	equal := []schedulerconfig.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}, {Name: "example.com/gpu", Weight: 1}}
	resources := append(equal[:2:2], schedulerconfig.ResourceSpec{Name: "example.com/gpu", Weight: 3})
	fit := func(strategy schedulerconfig.ScoringStrategyType, ignored ...string) apiruntime.Object {
		return &schedulerconfig.NodeResourcesFitArgs{IgnoredResourceGroups: ignored, ScoringStrategy: &schedulerconfig.ScoringStrategy{
			Type: strategy, Resources: resources, RequestedToCapacityRatio: &schedulerconfig.RequestedToCapacityRatioParam{
				Shape: []schedulerconfig.UtilizationShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}},
			},
		}}
	}
	in := func(key, value string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}}}
	}
	added := &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{in("zone", "a"), in("disk", "ssd")}},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 5, Preference: in("zone", "a")}},
	}
	const affinity = "spec.affinity.nodeAffinity."
	const required, preferred = affinity + "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.", affinity + "preferredDuringSchedulingIgnoredDuringExecution."
	ofAffinity := []string{"spec.nodeSelector", required + "matchExpressions", required + "matchFields",
		preferred + "weight", preferred + "preference.matchExpressions", preferred + "preference.matchFields"}
	ofResources := []string{"spec.containers.resources.requests", "spec.initContainers.resources.requests", "spec.overhead"}
	ofTolerations := []string{"spec.tolerations.key", "spec.tolerations.operator", "spec.tolerations.value", "spec.tolerations.effect"}
	registry, checked := intree.NewInTreeRegistry(), map[string]bool{"Coscheduling": true}
	for _, tt := range []struct {
		plugin, name string
		args         apiruntime.Object
		reads        []string
	}{
		{names.NodeResourcesFit, "LeastAllocated", fit(schedulerconfig.LeastAllocated), ofResources},
		{names.NodeResourcesFit, "MostAllocated", fit(schedulerconfig.MostAllocated), ofResources},
		{names.NodeResourcesFit, "RequestedToCapacityRatio", fit(schedulerconfig.RequestedToCapacityRatio), ofResources},
		{names.NodeResourcesFit, "ignored resources", fit(schedulerconfig.LeastAllocated, "example.com"), ofResources},
		{names.NodeResourcesBalancedAllocation, "", &schedulerconfig.NodeResourcesBalancedAllocationArgs{Resources: equal}, ofResources},
		{names.NodeAffinity, "", &schedulerconfig.NodeAffinityArgs{}, ofAffinity},
		{names.NodeAffinity, "addedAffinity", &schedulerconfig.NodeAffinityArgs{AddedAffinity: added}, ofAffinity},
		{names.TaintToleration, "", nil, ofTolerations},
		{names.NodeUnschedulable, "", nil, ofTolerations},
		{names.NodeName, "", nil, []string{"spec.nodeName"}},
		{names.NodePorts, "", nil, []string{"spec.containers.ports.hostPort", "spec.containers.ports.protocol", "spec.containers.ports.hostIP"}},
		{names.ImageLocality, "", nil, []string{"spec.containers.image"}},
	} {
		checked[tt.plugin] = true
		t.Run(tt.plugin+" "+tt.name, func(t *testing.T) { nodelocal.Test(t, registry[tt.plugin], tt.args, tt.reads...) })
	}
	for _, plugin := range plugins {
		checked[plugin.name] = true
	}
	args := map[string]apiruntime.Object{}
	for _, config := range defaults.PluginConfigsV1beta3 {
		args[config.Name] = config.Args
	}
	for name, factory := range registry {
		if checked[name] {
			continue
		}
		plugin, err := factory(args[name], plugintest.Handle(t, "profile", frameworkruntime.WithSnapshotSharedLister(plugintest.NewCluster(t).Snapshot)))
		if err != nil {
			t.Fatal(err)
		}
		if _, has := plugin.(services.NodeLocal); has {
			t.Errorf("%s has the method NodeLocalKey: add it to the table", name)
		}
	}
}

// TestNodeFilterIsRemembered schedules five pods of one kind. The scheduler remembers from the second on what NodeFilter
// rejects. Its comparison of memory and nodes on SIGUSR2 counts no rejections.
func TestNodeFilterIsRemembered(t *testing.T) {
	for rule, more := range map[string]string{"only-deny": "", "deny-and-prefer": `, {name: prefer, action: Prefer, weight: 1, nodeNames: ["ssd-1"]}`} {
		s := decision.New(t, decision.Options{
			Config:  with(nodefilter.Name, `{rules: [{name: `+rule+`, action: Deny, nodeNames: ["hdd-*"]}`+more+`]}`),
			Plugins: registered(), Nodes: append(pool("ssd", 2, "10"), pool("hdd", 3, "10")...), Seed: 1,
		})
		for i := 0; i < 5; i++ {
			s.Schedule(ofShare(fmt.Sprintf("pod-%d", i), 0))
		}
		counted := rejectedBy(t, rule)
		if counted < 3 || counted >= 5*3 {
			t.Errorf("%s: %g rejections are counted, want fewer than 3 for each pod", rule, counted)
		}
		differs := compare(t, s)
		if got := rejectedBy(t, rule); got != counted || len(differs) > 0 {
			t.Errorf("%s: a comparison counts %g rejections; differences: %q", rule, got-counted, differs)
		}
	}
}

// picky counts the calls of PreFilter. No pod qualifies.
type picky struct{ calls int }

func (p *picky) Name() string                                       { return "Picky" }
func (p *picky) NodeLocalKey(_ *v1.Pod, key []byte) ([]byte, bool)  { return key, false }
func (p *picky) PreFilterExtensions() framework.PreFilterExtensions { return nil }
func (p *picky) Filter(context.Context, *framework.CycleState, *v1.Pod, *framework.NodeInfo) *framework.Status {
	return nil
}
func (p *picky) PreFilter(context.Context, *framework.CycleState, *v1.Pod) *framework.Status {
	p.calls++
	return nil
}

// TestAComparisonCallsPluginsForPodsThatQualify: others may write what cycles read meanwhile.
func TestAComparisonCallsPluginsForPodsThatQualify(t *testing.T) {
	plugin := &picky{}
	s := decision.New(t, decision.Options{Config: with("Picky", "{}"), Nodes: pool("ssd", 2, "10"), Seed: 1,
		Plugins: frameworkruntime.Registry{"Picky": func(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return plugin, nil }}})
	for i := 0; i < 3; i++ {
		s.Schedule(ofShare(fmt.Sprintf("pod-%d", i), 0))
	}
	if compare(t, s); plugin.calls != 3 {
		t.Errorf("PreFilter is called %d times, want 3", plugin.calls)
	}
}

// compare compares the memory with the nodes.
func compare(t *testing.T, s *decision.Scheduler) []string {
	t.Helper()
	profile, nodes := s.Profiles["default-scheduler"], map[string]*framework.NodeInfo{}
	infos, err := profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		nodes[info.Node().Name] = info
	}
	return profile.(interface {
		CompareCache(map[string]*framework.NodeInfo) []string
	}).CompareCache(nodes)
}

// rejectedBy returns the number of rejections by a rule of NodeFilter.
func rejectedBy(t *testing.T, rule string) (count float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.Metric {
			if family.GetName() == "scheduler_node_filter_rejections_total" && strings.Contains(metric.String(), `"`+rule+`"`) {
				count += metric.GetCounter().GetValue()
			}
		}
	}
	return count
}
