// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// recorder keeps the events.
type recorder []string

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...interface{}) {
	*r = append(*r, fmt.Sprintf("%s: %s %s %s: %s", regarding.(*v1.Pod).Name, eventType, reason, action, fmt.Sprintf(note, args...)))
}

// world is a profile with the plugin at all of its points.
type world struct {
	*plugintest.Profile
	plugin *Chaos
	events recorder
	nodes  []*v1.Node
}

func newWorld(t testing.TB, args config.ChaosArgs, nodes []*v1.Node, pods ...*v1.Pod) *world {
	t.Helper()
	if args.MaxConsecutiveRejections == nil {
		args.MaxConsecutiveRejections = pointer.Int32(100)
	}
	w := &world{nodes: nodes}
	w.Profile = plugintest.NewProfile(t, plugintest.Options{
		Plugin: Name, New: New, Args: &args, Nodes: nodes, Pods: pods,
		Framework: []frameworkruntime.Option{frameworkruntime.WithEventRecorder(&w.events)},
	})
	w.plugin = w.Plugin.(*Chaos)
	return w
}

// result is the outcome of a scheduling cycle.
type result struct {
	state *framework.CycleState
	// rejected has the message for each node that did not fit.
	rejected map[string]string
	scores   map[string]int64
	best     string
}

// cycle runs a scheduling cycle of a pod up to Reserve. The best node is the first one with the highest score.
func (w *world) cycle(t testing.TB, pod *v1.Pod) *result {
	t.Helper()
	r := &result{state: framework.NewCycleState(), rejected: map[string]string{}, scores: map[string]int64{}}
	statuses := w.Filter(t, r.state, pod)
	var feasible []*v1.Node
	for _, node := range w.nodes {
		switch status := statuses[node.Name]; status.Code() {
		case framework.Success:
			feasible = append(feasible, node)
		case framework.UnschedulableAndUnresolvable:
			r.rejected[node.Name] = status.Message()
		default:
			t.Fatalf("Filter(%s) = %v", node.Name, status)
		}
	}
	if len(feasible) == 0 {
		return r
	}
	r.best = feasible[0].Name
	if len(feasible) > 1 {
		r.scores = w.Score(t, r.state, pod, feasible)
	}
	for _, node := range feasible {
		if r.scores[node.Name] > r.scores[r.best] {
			r.best = node.Name
		}
	}
	if status := w.RunReservePluginsReserve(context.Background(), r.state, pod, r.best); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	return r
}

// counted returns the values of counters, which all tests of the process share.
func counted(t testing.TB, w *world) map[string]float64 {
	t.Helper()
	c := w.plugin.counters
	return map[string]float64{
		"reject": plugintest.MetricValue(t, c.rejected), "score": plugintest.MetricValue(t, c.scored),
		"redirect": plugintest.MetricValue(t, c.redirected), "spare": plugintest.MetricValue(t, c.spared),
	}
}

func makePod(number int) *v1.Pod {
	return st.MakePod().Namespace("test").Name(fmt.Sprintf("pod-%d", number)).UID(fmt.Sprintf("uid-%d", number)).Obj()
}
