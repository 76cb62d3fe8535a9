// SPDX-License-Identifier: Apache-2.0

// Package plugins tests plugins in whole schedulers: queue, cycles, bindings, informers.
package plugins

import (
	"context"
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/chaos"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/datalocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/extensionpointlogger"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/myscoreplugin"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodecost"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/overcommit"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podfilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/randscore"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/runningimagelocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/workloadtopology"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
	"kube-scheduler-fork/test/inprocess/decision"
)

// plugins are all plugins of the project. With these args, each does its work for the pods of this file and rejects
// none of them.
var plugins = []struct {
	name    string
	factory frameworkruntime.PluginFactory
	args    string
}{
	{chaos.Name, chaos.New, `{namespaces: [default], randomScore: true, randomBindPercent: 10}`},
	// Each node holds the data "type", by its label disktype, and those with a pod of the application hold "app".
	{datalocality.Name, datalocality.New, `{nodeLabelPrefix: disk, servers: [{datasetLabel: app}], requireWithin: topology.kubernetes.io/zone}`},
	{extensionpointlogger.Name, extensionpointlogger.New, `{}`},
	{myscoreplugin.Name, myscoreplugin.New, `{nodeLabel: disktype, preferredValues: [ssd, hdd]}`},
	// All nodes of a zone cost the same, and those of one zone have no price.
	{nodecost.Name, nodecost.New, `{prices: [{zone: zone-0, pricePerHour: 0.1}, {zone: zone-1, pricePerHour: 0.3}], capacityTypeLabel: disktype,
		spot: {capacityTypes: [hdd], tolerationKey: spot}}`},
	{nodefilter.Name, nodefilter.New, `{rules: [{name: no-gpu, action: Deny, nodeNames: ["gpu-*"], nodeSelector: {matchLabels: {accelerator: gpu}}}]}`},
	// Nothing answers there: nodes are scored by the requests of their pods.
	{nodeload.Name, nodeload.Factory(collector.New()), `{prometheus: {endpoints: ["http://127.0.0.1:1"]}, resources: [{name: cpu, threshold: 80}, {name: memory}]}`},
	{overcommit.Name, overcommit.Factory(collector.New()), `{prometheus: {endpoints: ["http://127.0.0.1:1"]}}` + ignored},
	{podfilter.Name, podfilter.New, `{rules: [{name: no-tests, action: Deny, podNames: ["test-*"], namespaces: ["test-*"]}]}`},
	{randscore.Name, randscore.New, `{seed: 1}`},
	{runningimagelocality.Name, runningimagelocality.New, `{sizeWeight: 50, spreadWeight: 50}`},
	{workloadtopology.Name, workloadtopology.New, `{podSelector: {}, groupBy: [app], maxPerNode: 100, spreadWeight: 20}`},
}

// ignored, after the args of Overcommit, are those of NodeResourcesFit with it.
const ignored = `
      - name: NodeResourcesFit
        args: {ignoredResourceGroups: [overcommit.scheduler]}`

// registered returns all plugins by name.
func registered() frameworkruntime.Registry {
	registry := make(frameworkruntime.Registry)
	for _, plugin := range plugins {
		registry[plugin.name] = plugin.factory
	}
	return registry
}

// with returns a configuration with the default plugins and one more.
func with(name, args string) string {
	return fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        enabled: [{name: %s}]
    pluginConfig:
      - name: %s
        args: %s
`, name, name, args)
}

// TestTableHasEveryPlugin fails when a plugin is not in the table of this file.
func TestTableHasEveryPlugin(t *testing.T) {
	var want []string
	// It sorts the queue and reads PodGroups, so it cannot join the others. ../gangs tests it.
	got := []string{"Coscheduling"}
	for name := range validation.Functions() {
		want = append(want, name)
	}
	for _, plugin := range plugins {
		got = append(got, plugin.name)
	}
	sort.Strings(want)
	sort.Strings(got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the table has %v; plugins with args are %v", got, want)
	}
}

// TestNewRefusesArgs covers wrong types of args, and an invalid field of each plugin, next to defaults. RandScore has
// no invalid args.
func TestNewRefusesArgs(t *testing.T) {
	invalid := map[string]struct {
		args apiruntime.Object
		want string
	}{
		chaos.Name:                {&config.ChaosArgs{}, "namespaces"},
		datalocality.Name:         {&config.DataLocalityArgs{DatasetsAnnotation: pointer.String("")}, "datasetsAnnotation"},
		extensionpointlogger.Name: {&config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(0)}, "sampleRate"},
		myscoreplugin.Name:        {&config.MyScorePluginArgs{NodeLabel: pointer.String("")}, "nodeLabel"},
		nodecost.Name:             {&config.NodeCostArgs{Strategy: "Cheapest"}, "strategy"},
		nodefilter.Name:           {&config.NodeFilterArgs{}, "rules"},
		nodeload.Name:             {&config.NodeLoadArgs{}, "prometheus.endpoints"},
		overcommit.Name:           {&config.OvercommitArgs{Predictor: "Best"}, "predictor"},
		podfilter.Name:            {&config.PodFilterArgs{}, "rules"},
		runningimagelocality.Name: {&config.RunningImageLocalityArgs{Count: "Pods"}, "count"},
		workloadtopology.Name:     {&config.WorkloadTopologyArgs{Levels: []config.WorkloadTopologyLevel{}}, "levels"},
	}
	for _, plugin := range plugins {
		t.Run(plugin.name, func(t *testing.T) {
			refuse := func(args apiruntime.Object, want string) {
				t.Helper()
				if _, err := plugin.factory(args, nil); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("New(%T) = %v, want an error with %q", args, err, want)
				}
			}
			refuse(nil, "want args of type "+plugin.name+"Args, got <nil>")
			refuse(&schedulerconfig.NodeAffinityArgs{}, "NodeAffinityArgs")
			if tt, found := invalid[plugin.name]; found {
				scheme.Scheme.Default(tt.args)
				refuse(tt.args, "pluginConfig["+plugin.name+"].args."+tt.want)
			} else if plugin.name != randscore.Name {
				t.Error("no invalid args are given")
			}
		})
	}
}

// TestPluginsOfAnotherProfileChangeNothing compares the placements of the default profile alone with those next to a
// profile that enables all plugins.
func TestPluginsOfAnotherProfileChangeNothing(t *testing.T) {
	run := func(config string) []decision.Decision {
		s := decision.New(t, decision.Options{Config: config, Plugins: registered(), Nodes: decision.MixedNodes(150), Seed: 1})
		return s.Schedule(decision.MixedPods(100)...)
	}
	without, with := run(""), run(withAll())
	if !reflect.DeepEqual(without, with) {
		t.Errorf("with all plugins in another profile:\n%v\nwithout:\n%v", with, without)
	}
}

// withAll returns a configuration with the default profile and a second one with all plugins.
func withAll() string {
	var enabled, args string
	for _, plugin := range plugins {
		enabled += fmt.Sprintf("          - {name: %s}\n", plugin.name)
		args += fmt.Sprintf("      - name: %s\n        args: %s\n", plugin.name, plugin.args)
	}
	return `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
  - schedulerName: all-plugins
    plugins:
      multiPoint:
        enabled:
` + enabled + "    pluginConfig:\n" + args
}

// TestRejectedPodIsRetriedWhenANodeIsReady adds nodes as in a cluster: not yet ready for the pending pod, so that a
// later update must wake the pod. Each wait is shorter than the time after which the scheduler retries every pod.
func TestRejectedPodIsRetriedWhenANodeIsReady(t *testing.T) {
	for _, filter := range []struct{ name, args string }{
		{nodefilter.Name, `{rules: [{name: ssd, action: Allow, nodeSelector: {matchLabels: {disktype: ssd}}}], defaultAction: Deny}`},
		{myscoreplugin.Name, `{nodeLabel: disktype}`},
	} {
		for _, change := range []struct {
			name  string
			unfit func(*v1.Node)
		}{
			{"its taint goes", func(node *v1.Node) {
				node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}}
			}},
			{"its resources come", func(node *v1.Node) { node.Status.Allocatable = nil }},
			{"its resources and its label come at once", func(node *v1.Node) {
				node.Status.Allocatable = nil
				delete(node.Labels, "disktype")
			}},
		} {
			t.Run(filter.name+": "+change.name, func(t *testing.T) {
				s := decision.New(t, decision.Options{
					Config: with(filter.name, filter.args), Plugins: registered(), NoBackoff: true,
					Nodes: []*v1.Node{roomy("other")},
				})
				if got := s.Schedule(application("pod")); got[0].Failure == "" {
					t.Fatalf("there is no node for the pod yet, but it was scheduled: %v", got)
				}
				ready := roomy("new")
				ready.Labels = map[string]string{"disktype": "ssd"}
				unfit := ready.DeepCopy()
				change.unfit(unfit)
				s.AddNodes(unfit)
				s.UpdateNode(ready)
				if got := s.Next(1); got[0].Node != "new" {
					t.Fatalf("the pod is retried, but not placed on the node: %v", got)
				}
				s.Settle()
				if got := s.Bound()["default/pod"]; got != "new" {
					t.Errorf("the pod is bound to %q", got)
				}
			})
		}
	}
}

// roomy returns a node with room for an application.
func roomy(name string) *v1.Node {
	return st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{
		v1.ResourceCPU: "1", v1.ResourceMemory: "1Gi", v1.ResourcePods: "10",
	}).Obj()
}

// TestEachPluginDecides places pods with each plugin, with 16 workers for the race detector.
func TestEachPluginDecides(t *testing.T) {
	for _, plugin := range plugins {
		plugin := plugin
		t.Run(plugin.name, func(t *testing.T) {
			decision.Quiet(t)
			s, pods := measured(t, 20, 10, 16, registered(), with(plugin.name, plugin.args))
			for _, pod := range pods {
				if node, err := s.Decide(pod); err != nil || node == "" {
					t.Errorf("%s is placed on %q: %v", pod.Name, node, err)
				}
			}
		})
	}
}

var nodesFlag = flag.Int("nodes", 5000, "how many nodes BenchmarkDecision has")

// fiveResources makes NodeLoad filter and score by all its built-in resources except the GPU, and by one more.
const fiveResources = `{prometheus: {endpoints: [%q]}, resources: [{name: cpu, threshold: 90}, {name: memory, threshold: 90}, {name: network}, {name: diskIO},
  {name: pressure, query: pressure, timestampQuery: timestamp(pressure), weight: 1}]}`

// BenchmarkDecision times one decision of a scheduler with 5,000 nodes and a running pod on every fifth of them, with
// the default profile alone and with one more plugin. Run each in its own process and a fixed number of times,
// alternating (make bench NAME=plugins), because every decision adds a pod.
func BenchmarkDecision(b *testing.B) {
	decision.Quiet(b)
	benchmark(b, "default", nil, "")
	benchmark(b, "empty", frameworkruntime.Registry{emptyName: newEmpty}, with(emptyName, "{}"))
	loads := make(map[string]float64)
	for i, node := range decision.MixedNodes(*nodesFlag) {
		loads[node.Name] = float64(i%50) / 100
	}
	for _, plugin := range plugins {
		args := plugin.args
		if plugin.name == nodeload.Name {
			args = fmt.Sprintf(fiveResources, newPrometheus(b, loads, time.Time{}).url)
		}
		benchmark(b, plugin.name, registered(), with(plugin.name, args))
	}
	for _, policy := range placementPolicies {
		benchmark(b, policy.name, registered(), with(nodefilter.Name, policy.args))
	}
	for _, plugin := range thirdParty {
		benchmark(b, plugin.name, nil, plugin.config)
	}
}

// placementPolicies make NodeFilter prefer half of the nodes, bound their share to all pods and to half of them, or pull
// half of the pods to them.
var placementPolicies = []struct{ name, args string }{
	{"NodeFilter-prefer", `{rules: [{name: ssd, action: Prefer, weight: 10, nodeSelector: {matchLabels: {disktype: ssd}}}]}`},
	{"NodeFilter-share", `{rules: [{name: ssd, action: Share, whenUnsatisfiable: DoNotSchedule, maxPercent: 100, nodeSelector: {matchLabels: {disktype: ssd}}, podSelector: {matchLabels: {app: app}}}]}`},
	{"NodeFilter-pull", `{rules: [{name: ssd, action: Share, maxPercent: 50, nodeSelector: {matchLabels: {disktype: ssd}}, podSelector: {matchLabels: {app: app}}}]}`},
	{"NodeFilter-half", `{rules: [{name: ssd, action: Share, whenUnsatisfiable: DoNotSchedule, maxPercent: 50, nodeSelector: {matchLabels: {disktype: ssd}}, podSelector: {matchLabels: {app: app}}}]}`},
}

// thirdParty are configurations with plugins of other projects, and kubeConfig is that of the API server from which they
// read. A file in testdata/ that sets both is compiled into trees that have them: see scripts/stock-and-fork.sh.
var (
	thirdParty []struct{ name, config string }
	kubeConfig *restclient.Config
)

const emptyName = "Empty"

// empty scores every node 0: it measures the least cost of one more score plugin.
type empty struct{}

func newEmpty(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return empty{}, nil }

func (empty) Name() string { return emptyName }

func (empty) Score(context.Context, *framework.CycleState, *v1.Pod, string) (int64, *framework.Status) {
	return 0, nil
}

func (empty) ScoreExtensions() framework.ScoreExtensions { return nil }

func benchmark(b *testing.B, name string, registry frameworkruntime.Registry, config string) {
	var s *decision.Scheduler
	var pods []*v1.Pod
	made := 0
	b.Run(name, func(sub *testing.B) {
		if s == nil {
			// They belong to the outer benchmark, because this function is called several times.
			s, pods = measured(b, *nodesFlag, *nodesFlag/25, 1, registry, config)
			for name == nodeload.Name && !measuredAll(b, *nodesFlag) {
				time.Sleep(10 * time.Millisecond)
			}
			for _, pod := range pods {
				decide(sub, s, pod)
			}
			made = len(pods)
		}
		pods = s.Complete(pending(made, sub.N)...)
		made += sub.N
		runtime.GC()
		sub.ReportAllocs()
		sub.ResetTimer()
		for _, pod := range pods {
			decide(sub, s, pod)
		}
	})
}

func decide(b *testing.B, s *decision.Scheduler, pod *v1.Pod) {
	if _, err := s.Decide(pod); err != nil {
		b.Fatal(err)
	}
}

const image = "registry.example.com/team/app:v1"

// measured returns a scheduler with a running pod on every fifth node, and n pending pods of the same kind.
func measured(tb testing.TB, nodes, n int, workers int32, registry frameworkruntime.Registry, config string) (*decision.Scheduler, []*v1.Pod) {
	all := decision.MixedNodes(nodes)
	for _, node := range all {
		node.Spec.Taints = nil
	}
	s := decision.New(tb, decision.Options{Config: config, Plugins: registry, KubeConfig: kubeConfig, Nodes: all, Parallelism: workers})
	var running []*v1.Pod
	for i := 0; i < nodes; i += 5 {
		running = append(running, runningOn(all[i]))
	}
	s.Create(running...)
	return s, s.Complete(pending(0, n)...)
}

// pending returns n pods without a node, numbered from the given number on.
func pending(from, n int) []*v1.Pod {
	var pods []*v1.Pod
	for i := from; i < from+n; i++ {
		pods = append(pods, application(fmt.Sprintf("pod-%d", i)))
	}
	return pods
}

func application(name string) *v1.Pod {
	pod := st.MakePod().Name(name).Label("app", "app").
		Req(map[v1.ResourceName]string{v1.ResourceCPU: "100m", v1.ResourceMemory: "128Mi"}).Obj()
	pod.Spec.Containers[0].Image = image
	pod.Annotations = map[string]string{"data-locality.scheduler/datasets": "app=2Gi,type=1Gi"}
	return pod
}

// measuredAll reports whether all nodes have a measurement of all five resources.
func measuredAll(tb testing.TB, nodes int) bool {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	complete := 0
	for _, family := range families {
		if family.GetName() != "scheduler_node_load_nodes" {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "state" && label.GetValue() == "fresh" && metric.GetGauge().GetValue() == float64(nodes) {
					complete++
				}
			}
		}
	}
	return complete >= 5
}
