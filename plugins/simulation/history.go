// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sort"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// readCluster reads the trace and the snapshot, whose nodes and pods are those of the trace if it is a history.
func (o *options) readCluster(w *work) (err error) {
	if o.trace != "" {
		debug.SetGCPercent(50) // A trace may be large, and what reading it leaves behind goes sooner.
		if w.trace, err = input.ReadTrace(o.trace); err != nil {
			return err
		}
		w.Events, w.History = w.trace.Events, w.trace.History
		if w.History && w.Length == 0 {
			w.Length = w.trace.Length
		}
	}
	if len(o.snapshots) > 0 {
		if w.cluster, err = input.ReadCluster(o.snapshots); err != nil {
			return err
		}
	} else if !w.History {
		return errors.New("no snapshot is given; next: kubectl scheduling snapshot > cluster.yaml, and --snapshot cluster.yaml")
	}
	if w.History {
		w.replaced = w.cluster != nil
		w.cluster = w.trace.Onto(w.cluster)
	}
	return nil
}

// describeHistory describes a history, and how long its pods really waited.
func (w *work) describeHistory() []string {
	var waited []time.Duration
	pods := len(w.trace.Pods)
	for i := range w.trace.Events {
		if of := w.trace.Events[i].Pods; of != nil {
			if pods++; of.Real.Node != "" {
				waited = append(waited, of.Real.Waited)
			}
		}
	}
	sort.Slice(waited, func(i, j int) bool { return waited[i] < waited[j] })
	text := fmt.Sprintf("History: %d pods in %v, of which %d were there at the start, on %d nodes", pods, w.trace.Length, len(w.trace.Pods), len(w.trace.Nodes))
	if n := len(waited); n > 0 {
		// The nearest rank.
		text += fmt.Sprintf("; %d were bound, and really waited p50 %v, p90 %v", n, rounded(waited[(n-1)/2]), rounded(waited[(9*n+9)/10-1]))
	}
	if w.trace.Gaps > 0 {
		text += fmt.Sprintf("; %d gaps of %v in all", w.trace.Gaps, w.trace.GapTime)
	}
	lines := []string{text}
	if w.replaced {
		lines = append(lines, "Snapshot: its nodes and pods are those of the history instead")
	}
	return lines
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
