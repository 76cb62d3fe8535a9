// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/utils/pointer"
)

// of sets the controlling owner of a pod.
func of(pod *v1.Pod, kind, name string) *v1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: pointer.Bool(true)}}
	return pod
}

func TestOwnerOf(t *testing.T) {
	for _, test := range []struct{ kind, name, hash, want string }{
		{"ReplicaSet", "web-6d4cf56db6", "6d4cf56db6", "web"},
		{"ReplicaSet", "web-6d4cf56db6", "", "web-6d4cf56db6"},
		{"Job", "nightly-27338461", "", "nightly"},
		{"Job", "build-x7k2p", "", "build"},
		{"Job", "build-linux", "", "build-linux"},
		{"Job", "build", "", "build"},
		{"StatefulSet", "db-1", "", "db-1"},
		{"DaemonSet", "agent", "", "agent"},
	} {
		p := of(pod("p", "1"), test.kind, test.name)
		p.Labels = map[string]string{"pod-template-hash": test.hash}
		if got, want := ownerOf(p), (owner{"test", test.kind, test.want}); got != want {
			t.Errorf("%s %s: got %v, want %v", test.kind, test.name, got, want)
		}
	}
	if got := ownerOf(pod("p", "1")); got != (owner{}) {
		t.Errorf("without an owner: got %v", got)
	}
}

// learned measures a node at 20 % while a pod starts on it, and again a minute later at another load.
func learned(t *testing.T, load float64, pods ...*v1.Pod) *world {
	t.Helper()
	w := newWorld(t, arguments(cpu(0)), nodes(1), pods...)
	w.measureLoads(0.2)
	w.clock.SetTime(epoch.Add(time.Minute))
	w.measureLoads(load)
	return w
}

// estimated returns the estimated use of a pod that comes.
func (w *world) estimated(pod *v1.Pod) float64 {
	return w.plugin.cycleOf(pod, w.plugin.current()).estimates[0]
}

// TestLearning checks the estimate of an owner's next pod after one that requests 5 of 10 cores ran for one of five
// minutes: if it used all it requested, the mean would rise by 10 %.
func TestLearning(t *testing.T) {
	started := func() *v1.Pod { return of(on(pod("a", "5"), "node-0", 0), "Job", "etl-27338461") }
	next := of(pod("b", "1"), "Job", "etl-27338462")
	limited := of(pod("c", "1"), "Job", "etl-27338463")
	limited.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("1500m")}
	for _, test := range []struct {
		name        string
		load        float64
		low, high   float64
		lowL, highL float64
	}{
		{"as requested", 0.3, 0.99, 1.01, 0.99, 1.01},
		{"a third of it", 0.2333, 0.33, 0.45, 0.33, 0.45},
		{"nothing", 0.2, 0, 0.1, 0, 0.1},
		{"less than nothing: something else ended", 0.1, 0, 0, 0, 0},
		{"three times as much: at most the limit", 0.5, 2.5, 3, 1.5, 1.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := learned(t, test.load, started())
			if got := w.estimated(next); got < test.low || got > test.high {
				t.Errorf("1 core requested: estimated %v, want %v to %v", got, test.low, test.high)
			}
			if got := w.estimated(limited); got < test.lowL || got > test.highL {
				t.Errorf("with a limit: estimated %v, want %v to %v", got, test.lowL, test.highL)
			}
			if got := w.estimated(of(pod("d", "1"), "Job", "other")); got != 1 {
				t.Errorf("another owner's: estimated %v, want 1", got)
			}
		})
	}
}

// TestLearningWithAnnotations checks that an owner's scale is learned from its pods without the annotation, and that
// the annotation's estimate of another pod explains its part of the change: 20 % more after a minute of five are 10
// cores, of which 5 are from the annotation.
func TestLearningWithAnnotations(t *testing.T) {
	resource := cpu(0)
	resource.Estimator.Annotation = "example.com/cpu"
	annotated, plain := of(on(pod("a", "1"), "node-0", 0), "Job", "etl"), of(on(pod("b", "5"), "node-0", 0), "Job", "etl")
	annotated.Annotations = map[string]string{"example.com/cpu": "5"}
	for name, running := range map[string][]*v1.Pod{"one pod of each": {annotated, plain}, "only an annotated pod": {annotated}} {
		w := newWorld(t, arguments(resource), nodes(1), running...)
		w.measureLoads(0.2)
		w.clock.SetTime(epoch.Add(time.Minute))
		w.measureLoads(0.4)
		if got := w.estimated(of(pod("c", "1"), "Job", "etl")); got < 0.99 || got > 1.01 {
			t.Errorf("%s: 1 core requested: estimated %v, want 1", name, got)
		}
	}
}

// TestLearningFromMeasurementsOnly checks that nothing is learned from a node whose second measurement is missing, is
// the same as before, or follows a missing one.
func TestLearningFromMeasurementsOnly(t *testing.T) {
	next := of(pod("b", "1"), "Job", "etl")
	for name, samples := range map[string][]collector.Sample{
		"missing": {{Missing: collector.NotANumber}},
		"older":   {{Value: 0.9, At: epoch.UnixNano()}},
	} {
		w := newWorld(t, arguments(cpu(0)), nodes(1), of(on(pod("a", "5"), "node-0", 0), "Job", "etl"))
		w.measureLoads(0.2)
		w.clock.SetTime(epoch.Add(time.Minute))
		w.measure(map[string][]collector.Sample{"node-0": samples})
		if got := w.estimated(next); got != 1 {
			t.Errorf("%s: estimated %v, want 1", name, got)
		}
		w.clock.SetTime(epoch.Add(2 * time.Minute))
		w.measureLoads(math.Inf(1))
		if got := w.estimated(next); name == "missing" && got != 1 {
			t.Errorf("after a missing one: estimated %v, want 1", got)
		}
	}
}

// TestOutlier checks that one wrong measurement of a node hardly changes the estimate of a pod that comes.
func TestOutlier(t *testing.T) {
	w := learned(t, 50, of(on(pod("a", "500m"), "node-0", 0), "Job", "etl"))
	if got := w.estimated(of(pod("b", "1"), "Job", "etl")); got > 10 {
		t.Errorf("1 core requested: estimated %v", got)
	}
}

// TestLearningFromCrashes checks that a pod that crashes does not change the estimate of its owner's others.
func TestLearningFromCrashes(t *testing.T) {
	crashes, began := of(on(pod("a", "5"), "node-0", 0), "Job", "etl"), after(0)
	crashes.Status.StartTime = &began
	crashes.Status.ContainerStatuses[0] = v1.ContainerStatus{RestartCount: 7, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}
	w := learned(t, 0.2, crashes)
	if got := w.estimated(of(pod("b", "1"), "Job", "etl")); got != 1 {
		t.Errorf("1 core requested: estimated %v, want 1", got)
	}
}

// TestForgetting checks that owners are forgotten: a Job's a day after its last pod, others earlier, and that there is a
// maximum.
func TestForgetting(t *testing.T) {
	key := func(kind, name string) owner { return owner{"test", kind, name} }
	w := newWorld(t, arguments(cpu(0)), nodes(1), of(on(pod("a", "1"), "node-0", -1000), "ReplicaSet", "runs"))
	v := w.plugin.current()
	v.scales = &ownerScales{byOwner: map[owner]*scales{}}
	for key, unseen := range map[owner]time.Duration{
		key("ReplicaSet", "runs"): 0, key("ReplicaSet", "is gone"): time.Hour, key("Job", "nightly"): 24 * time.Hour,
		key("Job", "weekly"): 7 * 24 * time.Hour,
	} {
		v.scales.see(key, 1, v.made-int64(unseen))
	}
	w.clock.Step(10 * time.Minute)
	w.measure(nil)
	v = w.plugin.current()
	if len(v.scales.byOwner) != 2 || v.scales.byOwner[key("Job", "nightly")] == nil || v.scales.byOwner[key("ReplicaSet", "runs")] == nil {
		t.Errorf("known are %v, want the Job that runs daily, and the ReplicaSet with a pod", v.scales)
	} else if got := v.scales.byOwner[key("ReplicaSet", "runs")].seen; got != w.clock.Now().UnixNano() {
		t.Error("the owner of a pod that runs was not seen")
	}
	for i := 0; i < 2*mostScales; i++ {
		v.scales.see(key("Job", fmt.Sprint("job", i)), 1, v.made)
	}
	if got := len(v.scales.byOwner); got != mostScales {
		t.Errorf("%d owners are known, want %d", got, mostScales)
	}
}
