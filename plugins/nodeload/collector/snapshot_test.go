// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// TestReasons checks that each reason has its own name in metrics, and that Present is not among them.
func TestReasons(t *testing.T) {
	seen := map[string]bool{Present.String(): true}
	if Present.String() != "" {
		t.Errorf("Present is called %q", Present)
	}
	reasons := Reasons()
	for _, reason := range reasons {
		if seen[reason.String()] {
			t.Errorf("two reasons are called %q", reason)
		}
		seen[reason.String()] = true
	}
	if len(reasons) != int(TooOld) || reasons[0] != NoSeries || reasons[len(reasons)-1] != TooOld {
		t.Errorf("the reasons are %v, want those from no_series to too_old", reasons)
	}
}

// TestPods checks that samples of pods are in the snapshot if they are valid, and that they are no measurements of
// nodes.
func TestPods(t *testing.T) {
	s := spec("cpu", "cpu of pods")
	pods := &s.Resources[1]
	pods.Query.Pods = true
	w := newMeasuredWorld(t, s, makeNodes(1)...)
	w.answer(rows(
		measuredRows(0, "node-1", 0.5, 0), measuredRows(1, "team/a", 2, 10*time.Second), measuredRows(1, "team/nan", nan, 0),
		measuredRows(1, "team/twice", 1, 0), measuredRows(1, "team/twice", 2, 0),
		[]source.Row{{Query: 1, Label: "team/timeless", Value: 1}},
	)...)
	want := Sample{Value: 2, At: start.Add(-10 * time.Second).UnixNano()}
	if got, found := w.last().Pods(*pods)["team/a"]; !found || got != want {
		t.Errorf("got %+v, %v, want %+v", got, found, want)
	}
	for _, name := range []string{"nan", "twice", "timeless", "other"} {
		if got, found := w.last().Pods(*pods)["team/"+name]; found {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
	if _, found := w.last().Pods(s.Resources[0])["team/a"]; found {
		t.Error("a query for nodes returned a pod")
	}
	if got := w.last().Unmatched; got != 0 {
		t.Errorf("%d series match no node, want 0", got)
	}
}
