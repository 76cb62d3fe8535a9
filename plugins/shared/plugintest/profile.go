// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/queue"
)

// Profile is a real framework with the plugin under test, which simulates scheduling cycles.
type Profile struct {
	framework.Framework
	Plugin framework.Plugin
	Client *clientset.Clientset

	name string
}

// Options describe a profile.
type Options struct {
	// Plugin is the name of the plugin, and New its factory.
	Plugin string
	New    frameworkruntime.PluginFactory
	Args   runtime.Object
	// Points are the extension points at which it is enabled, as in a configuration; all if there are none.
	Points []string
	// Nodes and Pods are known to informers. The snapshot has the nodes, with the pods on them.
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// Lister replaces the snapshot if it is not nil.
	Lister framework.SharedLister
	// Framework are more options of the framework.
	Framework []frameworkruntime.Option
}

// NewProfile returns a profile named after the test, because all tests of a process share its metrics.
func NewProfile(t testing.TB, o Options) *Profile {
	t.Helper()
	var objects []runtime.Object
	for _, node := range o.Nodes {
		objects = append(objects, node)
	}
	var placed []*v1.Pod
	for _, pod := range o.Pods {
		objects = append(objects, pod)
		if pod.Spec.NodeName != "" {
			placed = append(placed, pod)
		}
	}
	if o.Lister == nil {
		o.Lister = cache.NewSnapshot(placed, o.Nodes)
	}
	p := &Profile{Client: clientset.NewSimpleClientset(objects...), name: o.Plugin}
	factory := informers.NewSharedInformerFactory(p.Client, 0)
	registry := frameworkruntime.Registry{
		o.Plugin: func(args runtime.Object, handle framework.Handle) (plugin framework.Plugin, err error) {
			scheme.Scheme.Default(args)
			p.Plugin, err = o.New(args, handle)
			return p.Plugin, err
		},
		queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New,
	}
	var err error
	p.Framework, err = frameworkruntime.NewFramework(registry, &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: t.Name(), Plugins: pluginsAt(o.Plugin, o.Points),
		PluginConfig: []schedulerconfig.PluginConfig{{Name: o.Plugin, Args: o.Args}},
	}, append([]frameworkruntime.Option{
		frameworkruntime.WithClientSet(p.Client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(o.Lister),
		frameworkruntime.WithPodNominator(queue.NewPodNominator(factory.Core().V1().Pods().Lister())),
	}, o.Framework...)...)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return p
}

// pluginsAt enables a plugin at extension points, next to the two that each profile needs.
func pluginsAt(name string, points []string) *schedulerconfig.Plugins {
	enabled := func(name string) schedulerconfig.PluginSet {
		return schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: name, Weight: 1}}}
	}
	plugins := &schedulerconfig.Plugins{QueueSort: enabled(queuesort.Name), Bind: enabled(defaultbinder.Name)}
	if len(points) == 0 {
		plugins.MultiPoint = enabled(name)
	}
	for _, point := range points {
		*map[string]*schedulerconfig.PluginSet{
			"preFilter": &plugins.PreFilter, "filter": &plugins.Filter, "preScore": &plugins.PreScore, "score": &plugins.Score,
		}[point] = enabled(name)
	}
	return plugins
}

// Node returns a node of the snapshot.
func (p *Profile) Node(t testing.TB, name string) *framework.NodeInfo {
	t.Helper()
	info, err := p.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Filter begins a cycle of a pod, and returns the status of each node.
func (p *Profile) Filter(t testing.TB, state *framework.CycleState, pod *v1.Pod) map[string]*framework.Status {
	t.Helper()
	ctx := context.Background()
	if status := p.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	infos, err := p.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	statuses, byNode := make([]*framework.Status, len(infos)), map[string]*framework.Status{}
	p.Parallelizer().Until(ctx, len(infos), func(i int) {
		statuses[i] = p.RunFilterPluginsWithNominatedPods(ctx, state, pod, infos[i])
	})
	for i, info := range infos {
		byNode[info.Node().Name] = statuses[i]
	}
	return byNode
}

// Score returns the plugin's scores of some nodes, in a cycle that Filter began.
func (p *Profile) Score(t testing.TB, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) map[string]int64 {
	t.Helper()
	if status := p.RunPreScorePlugins(context.Background(), state, pod, nodes); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	scores, status := p.RunScorePlugins(context.Background(), state, pod, nodes)
	if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	byNode := map[string]int64{}
	for _, score := range scores[p.name] {
		byNode[score.Name] = score.Score
	}
	return byNode
}
