// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// reserving has a gang that needs all four nodes, and pods of the same priority that arrive twice a second and keep one
// or the other node busy. It counts the minutes until the gang runs, and the most small pods that wait after the gang
// runs, in the First of two cases with a reservation.
func reserving(o order, r *report) error {
	argument := ""
	if o.First == 1 {
		argument = "reservation: 30s"
	}
	w, err := newWorldWith(argument, []*unstructured.Unstructured{newGroup("large", 4, nil)})
	if err != nil {
		return err
	}
	for i := range 4 {
		w.add(newNode(fmt.Sprint("node-", i), 2).Obj())
	}
	made := 0
	step := func() error {
		small := newPod(fmt.Sprint("small-", made), "", 1, normal)
		small.Duration = 3 * time.Second
		made++
		w.create(small)
		return w.advance(time.Second / 2)
	}
	for range 20 {
		if err := step(); err != nil {
			return err
		}
	}
	w.create(&input.Workload{Pod: newPod("large", "large", 2, normal).Pod, Count: 4})
	for range 600 {
		if err := step(); err != nil {
			return err
		}
		if _, runs := w.placed()["large-0"]; runs {
			r.Counts["runs"] = 1
			break
		}
		r.Counts["steps"]++
	}
	return nil
}

// quiet has a gang that needs two nodes, of which one is free, and then a pod of the same priority. Nothing else happens.
func quiet(_ order, r *report) error {
	w, err := newWorldWith("reservation: 10s", []*unstructured.Unstructured{newGroup("large", 2, nil)})
	if err != nil {
		return err
	}
	for i := range 2 {
		w.add(newNode(fmt.Sprint("node-", i), 2).Obj())
	}
	w.create(newPod("stays", "", 2, high))
	if err := w.advance(time.Second); err != nil {
		return err
	}
	w.create(&input.Workload{Pod: newPod("large", "large", 2, normal).Pod, Count: 2})
	if err := w.advance(time.Second); err != nil {
		return err
	}
	w.create(newPod("small", "", 2, normal))
	for range 30 {
		if err := w.advance(time.Second); err != nil {
			return err
		}
		if w.placed()["small"] != nil {
			r.Counts["runs"] = 1
			return nil
		}
		r.Counts["seconds"]++
	}
	return nil
}

func TestAReservationEndsInAQuietCluster(t *testing.T) {
	if found := run(t, order{Task: "quiet"}); found.Counts["runs"] == 0 || found.Counts["seconds"] < 8 {
		t.Errorf("the other pod runs: %d, after %d seconds, want after about ten", found.Counts["runs"], found.Counts["seconds"])
	}
}

func TestAReservationLetsALargeGangRun(t *testing.T) {
	if without := run(t, order{Task: "reservation"}); without.Counts["runs"] > 0 {
		t.Errorf("the gang runs without a reservation after %d steps: the test shows nothing", without.Counts["steps"])
	}
	with := run(t, order{Task: "reservation", First: 1})
	if t.Logf("the gang runs after %d half seconds", with.Counts["steps"]); with.Counts["runs"] == 0 {
		t.Error("the gang does not run with a reservation")
	}
}
