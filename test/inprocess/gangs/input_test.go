// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

func sortByName(pods []*input.Workload) {
	slices.SortFunc(pods, func(a, b *input.Workload) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
}

// members returns the pods of a gang, NAME-0 and so on.
func members(group string, count int, change func(i int, pod *input.Workload)) (pods []*input.Workload) {
	for i := range count {
		pod := newPod(fmt.Sprintf("%s-%d", group, i), group, 1, normal)
		change(i, pod)
		pods = append(pods, pod)
	}
	return pods
}

// report adds the reasons of pods, and fails if a pod without a gang waits.
func (w *world) report(r *report) {
	for _, pod := range w.Outcome().Pods {
		name := strings.TrimPrefix(pod.Name, "default/")
		if pod.Node == "" {
			r.Reasons[name] = pod.Reason
		}
		if alone := strings.HasPrefix(name, "alone"); alone && (pod.Node == "" || pod.Attempts != 1) {
			r.fail("the pod %s has the node %q after %d attempts, want one attempt", name, pod.Node, pod.Attempts)
		} else if !alone && pod.Node != "" {
			r.fail("the pod %s runs on %s, want it to wait", name, pod.Node)
		}
	}
}

// badInput creates gangs that cannot be scheduled, and pods without a gang between them.
func badInput(_ order, r *report) error {
	w, err := newWorld([]*unstructured.Unstructured{
		newGroup("above", 5, nil), newGroup("negative", -3, nil), newGroup("namespaces", 4, nil), newGroup("profiles", 4, nil),
	})
	if err != nil {
		return err
	}
	for i := 0; i < 10; i++ {
		w.add(newNode(fmt.Sprintf("node-%d", i), 4).Obj())
	}
	w.Expect(nil, 0)
	same := func(int, *input.Workload) {}
	for i, gang := range [][]*input.Workload{
		members("above", 4, same),
		members("negative", 4, same),
		members("missing", 4, same),
		members("namespaces", 4, func(i int, pod *input.Workload) {
			if i >= 2 {
				pod.Pod.Namespace = "elsewhere"
			}
		}),
		members("profiles", 4, func(i int, pod *input.Workload) {
			if i >= 2 {
				pod.Pod.Spec.SchedulerName = "second"
			}
		}),
	} {
		w.create(gang...)
		w.create(newPod(fmt.Sprintf("alone-%d", i), "", 1, low))
		if err := w.advance(10 * time.Second); err != nil {
			return err
		}
	}
	w.report(r)
	return nil
}

func TestGangsThatCannotBeScheduledHaveAReason(t *testing.T) {
	found := run(t, order{Task: "bad input"})
	for _, failure := range found.Failures {
		t.Error(failure)
	}
	reasons := map[string]map[string]bool{}
	for name, reason := range found.Reasons {
		gang := name[:strings.LastIndexByte(name, '-')]
		if reasons[gang] == nil {
			reasons[gang] = map[string]bool{}
		}
		reasons[gang][reason] = true
	}
	for _, gang := range []string{"above", "negative", "missing", "namespaces", "elsewhere/namespaces", "profiles"} {
		t.Logf("%s: %v", gang, reasons[gang])
		if len(reasons[gang]) != 1 || reasons[gang][""] {
			t.Errorf("the pods of %s have the reasons %v, want one, the same for all", gang, reasons[gang])
		}
	}
}

// tooMany creates a gang of o.Count pods, for which there is no room, and pods without a gang before and after it.
func tooMany(o order, r *report) error {
	w, err := newWorld([]*unstructured.Unstructured{newGroup("many", o.Count, nil)})
	if err != nil {
		return err
	}
	for i := 0; i < 10; i++ {
		w.add(newNode(fmt.Sprintf("node-%d", i), 4).Obj())
	}
	w.Expect(nil, 0)
	w.create(newPod("alone-before", "", 1, low))
	many := newPod("many", "many", 1, normal)
	many.Count = o.Count
	w.create(many)
	w.create(newPod("alone-after", "", 1, low))
	if err := w.advance(time.Minute); err != nil {
		return err
	}
	w.report(r)
	for name := range r.Reasons {
		r.Counts[r.Reasons[name]]++
	}
	r.Reasons = nil
	return nil
}

func TestAGangOfTooManyPods(t *testing.T) {
	found := run(t, order{Task: "too many", Count: 20_000})
	for _, failure := range found.Failures {
		t.Error(failure)
	}
	if t.Log(found.Counts); len(found.Counts) != 1 || found.Counts[""] > 0 {
		t.Errorf("the pods have the reasons %v, want one, the same for all", found.Counts)
	}
}
