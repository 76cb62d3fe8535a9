// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"kube-scheduler-fork/build/localcluster"
)

// Usage is what a scheduler holds: bytes in objects on its heap, goroutines, open files and pods to try; and when it
// started, in seconds since 1970, and the CPU time since, in seconds.
type Usage struct{ Heap, Goroutines, Files, Pending, Started, CPU float64 }

// Usage reads a scheduler's metrics.
func (c *Cluster) Usage(t testing.TB, scheduler *localcluster.Scheduler) (u Usage) {
	t.Helper()
	content, err := c.Get(t.Context(), scheduler.URL()+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		for name, to := range map[string]*float64{
			"go_memstats_heap_alloc_bytes": &u.Heap, "go_goroutines": &u.Goroutines, "process_open_fds": &u.Files,
			`scheduler_pending_pods{queue="active"}`: &u.Pending,
			"process_start_time_seconds":             &u.Started, "process_cpu_seconds_total": &u.CPU,
		} {
			if value, found := strings.CutPrefix(line, name+" "); found {
				if _, err := fmt.Sscan(value, to); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return u
}
