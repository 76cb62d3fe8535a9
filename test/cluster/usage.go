// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"kube-scheduler-fork/build/localcluster"
)

// Usage is what a scheduler holds: bytes in objects on its heap, goroutines, open files and pods to try; and when it
// started, in seconds since 1970, and the CPU time since, in seconds.
type Usage struct{ Heap, Goroutines, Files, Pending, Started, CPU float64 }

// Usage reads a scheduler's metrics.
func (c *Cluster) Usage(t testing.TB, scheduler *localcluster.Scheduler) Usage {
	t.Helper()
	content, err := c.Get(t.Context(), scheduler.URL()+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return Usage{
		Heap: Sum(content, "go_memstats_heap_alloc_bytes"), Goroutines: Sum(content, "go_goroutines"), Files: Sum(content, "process_open_fds"),
		Pending: Sum(content, `scheduler_pending_pods\{queue="active"\}`),
		Started: Sum(content, "process_start_time_seconds"), CPU: Sum(content, "process_cpu_seconds_total"),
	}
}

// Sum returns the sum of the series of a page of metrics that match a regular expression: a name, with labels or without.
func Sum(metrics []byte, series string) (sum float64) {
	for _, match := range regexp.MustCompile(`(?m)^`+series+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(metrics, -1) {
		value, _ := strconv.ParseFloat(string(match[1]), 64) // it is a number
		sum += value
	}
	return sum
}

// UsageAfterCollection is Usage after a garbage collection, and returns the heap profile, too. A busy API server or
// scheduler has time until patience is over.
func (c *Cluster) UsageAfterCollection(t testing.TB, scheduler *localcluster.Scheduler, patience time.Duration) (Usage, []byte) {
	t.Helper()
	var profile []byte
	AwaitFor(t, patience, "a heap profile", func() (err error) {
		profile, err = c.Get(t.Context(), scheduler.URL()+"/debug/pprof/heap?gc=1")
		return err
	})
	return c.Usage(t, scheduler), profile
}

// Within reports whether a scheduler holds little more than before: at most factor times the heap and some bytes, and some
// goroutines and files.
func (u Usage) Within(before Usage, factor, bytes, goroutines, files float64) bool {
	return u.Heap <= factor*before.Heap+bytes && u.Goroutines <= before.Goroutines+goroutines && u.Files <= before.Files+files
}

// Least returns the least of each value of several moments: garbage is in the others.
func Least(of []Usage) Usage {
	u := of[0]
	for _, other := range of {
		u = Usage{Heap: min(u.Heap, other.Heap), Goroutines: min(u.Goroutines, other.Goroutines), Files: min(u.Files, other.Files)}
	}
	return u
}
