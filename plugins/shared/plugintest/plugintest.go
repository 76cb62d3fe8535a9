// SPDX-License-Identifier: Apache-2.0

// Package plugintest has the fixtures of the tests of plugins: a handle, a framework with one plugin, a cluster, and
// what measures metrics, allocations and time. Only _test files import it.
package plugintest

import (
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Handle returns the handle that plugins of a profile get. Its informers know no objects.
func Handle(t testing.TB, profile string, options ...frameworkruntime.Option) framework.Handle {
	t.Helper()
	factory := informers.NewSharedInformerFactory(clientset.NewSimpleClientset(), 0)
	handle, err := frameworkruntime.NewFramework(nil, &schedulerconfig.KubeSchedulerProfile{SchedulerName: profile},
		append([]frameworkruntime.Option{frameworkruntime.WithInformerFactory(factory)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// New makes a plugin for a profile as the scheduler does, with defaults for arguments that are not set.
func New(t testing.TB, factory frameworkruntime.PluginFactory, profile string, args runtime.Object, lister framework.SharedLister) framework.Plugin {
	t.Helper()
	scheme.Scheme.Default(args)
	plugin, err := factory(args, Handle(t, profile, frameworkruntime.WithSnapshotSharedLister(lister)))
	if err != nil {
		t.Fatal(err)
	}
	return plugin
}

// NodeInfo returns a node with pods.
func NodeInfo(node *v1.Node, pods ...*v1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(node)
	return info
}

// MetricValue returns the value of a counter or a gauge.
func MetricValue(t testing.TB, metric interface{}) float64 {
	t.Helper()
	var value float64
	var err error
	// A gauge has the methods of a counter, too.
	if gauge, is := metric.(metrics.GaugeMetric); is {
		value, err = testutil.GetGaugeMetricValue(gauge)
	} else {
		value, err = testutil.GetCounterMetricValue(metric.(metrics.CounterMetric))
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// WaitFor waits until a condition holds.
func WaitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, 30*time.Second, func() (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("timed out: %s", what)
	}
}

// InParallel calls a function from several goroutines, which begin together, and waits for them.
func InParallel(workers int, call func(worker int)) {
	var group sync.WaitGroup
	begin := make(chan struct{})
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			<-begin
			call(worker)
		}(worker)
	}
	close(begin)
	group.Wait()
}

// ExpectAllocations checks how often a function allocates memory on average.
func ExpectAllocations(t testing.TB, what string, most float64, call func()) {
	t.Helper()
	if got := testing.AllocsPerRun(100, call); got > most {
		t.Errorf("%s: %g allocations, want at most %g", what, got, most)
	}
}

// PerNode runs a benchmark, and reports the time for each of the nodes that a call is about.
func PerNode(b *testing.B, nodes int, call func(i int)) {
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	for i := 0; i < b.N; i++ {
		call(i)
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N*nodes), "ns/node")
}
