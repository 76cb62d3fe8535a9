// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger_test

import (
	"context"
	"fmt"
	"io"
	"reflect"
	goruntime "runtime"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/extensionpointlogger"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/pointer"
)

// message is that of the plugin's lines.
const message = "Extension point called"

func TestRedactHashesAreEqualInAProcess(t *testing.T) {
	log := plugintest.CaptureLog(t)
	state, pod := framework.NewCycleState(), st.MakePod().Namespace("a").Name("b").Obj()
	for i := 0; i < 2; i++ {
		pl := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1), Redact: true})
		pl.PreBind(context.Background(), state, pod, "node")
	}
	calls := log.Lines(t, message)
	if len(calls) != 2 || calls[0]["node"] != calls[1]["node"] || calls[0]["pod"] != calls[1]["pod"] {
		t.Errorf("two profiles write of the same node and pod %v", calls)
	}
}

// logger is what the plugin is at most extension points.
type logger interface {
	framework.PreFilterPlugin
	framework.FilterPlugin
	framework.ScorePlugin
	framework.PreBindPlugin
}

func newLogger(tb testing.TB, args *config.ExtensionPointLoggerArgs) logger {
	tb.Helper()
	plugin, err := extensionpointlogger.New(args, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plugin.(logger)
}

func TestSampleRateIsTheShareOfPods(t *testing.T) {
	const pods = 2000
	for _, tt := range []struct {
		rate   float64
		lowest int
		most   int
	}{
		{rate: 1, lowest: pods, most: pods},
		// 3 standard deviations of 2,000 draws at 1/4: √(2000 × 1/4 × 3/4) = 19.4.
		{rate: 0.25, lowest: 500 - 58, most: 500 + 58},
		{rate: 1e-9, lowest: 0, most: 0},
	} {
		log := plugintest.CaptureLog(t)
		pl := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(tt.rate)})
		for i := 0; i < pods; i++ {
			pod := st.MakePod().Name("pod").UID(fmt.Sprintf("8b1f3f5e-0000-0000-0000-%012d", i)).Obj()
			pl.PreBind(context.Background(), framework.NewCycleState(), pod, "node")
		}
		if got := len(log.Lines(t, message)); got < tt.lowest || got > tt.most {
			t.Errorf("at a sample rate of %v, %d of %d pods are logged, want %d to %d", tt.rate, got, pods, tt.lowest, tt.most)
		}
	}
}

func TestNamespaces(t *testing.T) {
	log := plugintest.CaptureLog(t)
	pl := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1), Namespaces: []string{"a", "b"}})
	for _, namespace := range []string{"a", "b", "c", "ab"} {
		pl.PreBind(context.Background(), framework.NewCycleState(), st.MakePod().Namespace(namespace).Name("pod").Obj(), "node")
	}
	var got []string
	for _, one := range log.Lines(t, message) {
		got = append(got, one["pod"])
	}
	if want := []string{"a/pod", "b/pod"}; !reflect.DeepEqual(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

func TestDuration(t *testing.T) {
	log := plugintest.CaptureLog(t)
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	plugin, err := extensionpointlogger.NewWithClock(&config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1)}, now)
	if err != nil {
		t.Fatal(err)
	}
	pl, pod := plugin.(logger), st.MakePod().Name("pod").Obj()
	first, second := framework.NewCycleState(), framework.NewCycleState()
	pl.PreFilter(context.Background(), first, pod)
	now.SetTime(time.Unix(1000, int64(5*time.Millisecond)))
	pl.Score(context.Background(), first.Clone(), pod, "node")
	pl.PreFilter(context.Background(), second, pod)
	now.SetTime(time.Unix(1002, 0))
	pl.PreBind(context.Background(), second, pod, "node")
	pl.PreBind(context.Background(), first, pod, "node")
	var got []string
	for _, one := range log.Lines(t, message) {
		got = append(got, one["extensionPoint"]+" "+one["cycle"]+" "+one["duration"])
	}
	want := []string{"PreFilter 1 0s", "Score 1 5ms", "PreFilter 2 0s", "PreBind 2 1.995s", "PreBind 1 2s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	log := plugintest.CaptureLog(t)
	pl, state := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1)}), framework.NewCycleState()
	pl.Filter(context.Background(), state, st.MakePod().Name("pod").Obj(), plugintest.NodeInfo(st.MakeNode().Name("node").Obj()))
	calls := log.Lines(t, message)
	if len(calls) != 1 || calls[0]["node"] != "node" || calls[0]["cycle"] != "" {
		t.Errorf("logged %v, want the node and no cycle", calls)
	}
	if _, err := state.Read(extensionpointlogger.Name); err == nil {
		t.Error("Filter wrote to the state, of which another worker may be making a copy")
	}
}

// yieldingClock lets the other workers come as far as they can while one of them asks it for the time.
type yieldingClock struct{ clock.RealClock }

// Now returns the time.
func (yieldingClock) Now() time.Time {
	for i := 0; i < 100; i++ {
		goruntime.Gosched()
	}
	return time.Now()
}

func TestBeginInParallel(t *testing.T) {
	const cycles = 100
	log := plugintest.CaptureLog(t)
	plugin, err := extensionpointlogger.NewWithClock(&config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1)}, yieldingClock{})
	if err != nil {
		t.Fatal(err)
	}
	pl, pod := plugin.(logger), st.MakePod().Name("pod").Obj()
	for i := 0; i < cycles; i++ {
		state := framework.NewCycleState()
		plugintest.InParallel(16, func(int) { pl.Score(context.Background(), state, pod, "node") })
	}
	lines := map[string]int{}
	for _, one := range log.Lines(t, message) {
		lines[one["cycle"]]++
	}
	for i := 1; i <= cycles; i++ {
		if got := lines[fmt.Sprint(i)]; got != 16 {
			t.Fatalf("%d lines of cycle %d, want one of each of the 16 workers", got, i)
		}
	}
}

func TestQueueSort(t *testing.T) {
	first := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(st.MakePod().Name("first").Priority(1).Obj()), Timestamp: time.Unix(2, 0)}
	second := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(st.MakePod().Name("second").Obj()), Timestamp: time.Unix(1, 0)}
	third := &framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(st.MakePod().Name("third").Obj()), Timestamp: time.Unix(3, 0)}
	if _, sorts := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1)}).(framework.QueueSortPlugin); sorts {
		t.Error("the plugin sorts without having been asked to")
	}
	plugintest.CaptureLog(t)
	sorter, sorts := newLogger(t, &config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1), QueueSort: true}).(framework.QueueSortPlugin)
	if !sorts {
		t.Fatal("the plugin does not sort")
	}
	if !sorter.Less(first, second) || sorter.Less(second, first) {
		t.Error("the pod with the higher priority is not first")
	}
	if !sorter.Less(second, third) || sorter.Less(third, second) {
		t.Error("of two pods with the same priority, the one that has waited longer is not first")
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, tt := range []struct {
		name string
		args config.ExtensionPointLoggerArgs
	}{
		{name: "logged", args: config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1)}},
		{name: "redacted", args: config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1), Redact: true}},
		{name: "another namespace", args: config.ExtensionPointLoggerArgs{SampleRate: pointer.Float64(1), Namespaces: []string{"other"}}},
	} {
		args := tt.args
		b.Run(tt.name, func(b *testing.B) {
			klog.LogToStderr(false)
			klog.SetOutput(io.Discard)
			defer klog.LogToStderr(true)
			pl, state, pod := newLogger(b, &args), framework.NewCycleState(), st.MakePod().Namespace("default").Name("pod").Obj()
			nodeInfo := plugintest.NodeInfo(st.MakeNode().Name("node").Obj())
			pl.PreFilter(context.Background(), state, pod)
			plugintest.PerNode(b, 1, func(int) { pl.Filter(context.Background(), state, pod, nodeInfo) })
		})
	}
}
