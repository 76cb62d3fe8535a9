// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// situations has gangs that are attempted several times or change meanwhile. Each reports what went wrong.
var situations = []struct {
	name string
	slow bool
	find func(w *world) (wrong string, err error)
}{
	{"members of different priorities do not evict each other", false, func(w *world) (string, error) {
		err := w.prepare(1, 5)
		if err == nil {
			w.create(newPod("g-low", "g", 3, normal), newPod("g-high", "g", 2, high))
			err = w.advance(20 * time.Second)
		}
		return w.unlessEvicted(), err
	}},
	{"while its victims end, a gang evicts no others for its spare members", false, func(w *world) (string, error) {
		return w.manyMembers(4, 30, 30)
	}},
	{"victims that end at different times are evicted once", false, func(w *world) (string, error) {
		return w.manyMembers(2, 30, 5)
	}},
	{"the nominations of a gang that is no longer complete end", false, func(w *world) (string, error) {
		err := w.prepare(2, 5, 5)
		if err == nil {
			w.create(newPod("g-0", "g", 4, normal), newPod("g-1", "g", 4, normal))
			err = w.advance(2 * time.Second)
		}
		if err == nil {
			w.remove("g-1")
			w.create(newPod("small-0", "", 4, low), newPod("small-1", "", 4, low))
			err = w.advance(2 * time.Minute)
		}
		placed := w.placed()
		if placed["small-0"] == nil || placed["small-1"] == nil {
			return "the nodes of the gang stay empty", err
		}
		return "", err
	}},
	{"a member that is deleted during the attempt does not count", true, func(w *world) (string, error) {
		w.add(newNode("node-0", 40).Obj())
		w.create(newPod("g-0", "g", 4, normal), newPod("g-1", "g", 4, normal))
		w.At(w.passed+150*time.Millisecond, func() { w.Apply(&input.Event{Delete: "default/g-0"}) })
		err := w.advance(10 * time.Second)
		if w.placed()["g-1"] != nil {
			return "the other member is bound alone", err
		}
		return "", err
	}},
}

// prepare adds nodes with a pod of low priority each that takes so many seconds to end.
func (w *world) prepare(nodes int, seconds ...int64) error {
	for i := range nodes {
		w.add(newNode(fmt.Sprint("node-", i), 4).Obj())
		victim := newPod(fmt.Sprint("victim-", i), "", 4, low)
		victim.Pod.Spec.TerminationGracePeriodSeconds = &seconds[i]
		w.create(victim)
	}
	return w.advance(time.Second)
}

// manyMembers has a gang that needs two nodes, whose pods end after so many seconds. Meanwhile the pods of three other
// nodes are replaced by less important ones.
func (w *world) manyMembers(members int, seconds ...int64) (string, error) {
	err := w.prepare(2, seconds...)
	for i := 0; err == nil && i < 3; i++ {
		w.add(newNode(fmt.Sprint("other-node-", i), 4).Obj())
		other := newPod(fmt.Sprint("other-", i), "", 4, low+10)
		*other.Pod.Spec.TerminationGracePeriodSeconds = 0
		w.create(other)
	}
	if err == nil {
		err = w.advance(time.Second)
	}
	var pods []*input.Workload
	for i := range members {
		member := newPod(fmt.Sprint("g-", i), "g", 4, normal)
		member.Pod.Spec.Tolerations = []v1.Toleration{{Key: fmt.Sprint(i)}} // Each has its own shape.
		pods = append(pods, member)
	}
	w.create(pods...)
	if err == nil {
		err = w.advance(200 * time.Millisecond)
	}
	for i := range 3 {
		w.remove(fmt.Sprint("other-", i))
		w.create(newPod(fmt.Sprint("late-", i), "", 4, low-10))
	}
	if err == nil {
		err = w.advance(20 * time.Second)
	}
	return w.unlessEvicted("default/victim-0", "default/victim-1"), err
}

func (w *world) remove(name string) {
	w.At(w.passed, func() { w.Apply(&input.Event{Delete: "default/" + name}) })
}

// unlessEvicted returns which other pods were evicted.
func (w *world) unlessEvicted(want ...string) string {
	var evicted []string
	for _, preemption := range w.Outcome().Preemptions {
		evicted = append(evicted, preemption.Victim)
	}
	if slices.Sort(evicted); slices.Equal(evicted, want) {
		return ""
	}
	return fmt.Sprintf("evicted are %v, want %v", evicted, want)
}

// slow is a plugin that takes time for a gang.
type slow struct{}

func (slow) Name() string                                       { return "Slow" }
func (slow) PreFilterExtensions() framework.PreFilterExtensions { return nil }
func (slow) PreFilter(_ context.Context, _ *framework.CycleState, pod *v1.Pod) *framework.Status {
	if pod.Labels[groupLabel] != "" {
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

func situation(o order, r *report) error {
	if situations[o.First].slow {
		plugins["Slow"] = func(runtime.Object, framework.Handle) (framework.Plugin, error) { return slow{}, nil }
	}
	w, err := newWorld([]*unstructured.Unstructured{newGroup("g", 2, nil)})
	if err != nil {
		return err
	}
	w.Expect(nil, 0)
	wrong, err := situations[o.First].find(w)
	if wrong != "" {
		r.fail("%s", wrong)
	}
	return err
}

func TestAGangIsDecidedOnce(t *testing.T) {
	for i, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			for _, failure := range run(t, order{Task: "situation", First: i}).Failures {
				t.Error(failure)
			}
		})
	}
}
