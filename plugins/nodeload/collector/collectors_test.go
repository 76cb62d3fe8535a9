// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// TestMembers checks that members share equal resources.
func TestMembers(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	w.join(spec("cpu", "memory"))
	faster := spec("gpu", "cpu")
	faster.RefreshInterval = 10 * time.Second
	faster.Resources[1].Name = "processor" // a name is not part of the query
	w.join(faster)
	other := spec("cpu")
	other.Resources[0].Deviation = ""
	w.join(other)
	w.join(spec("memory"))
	expectPause(t, w.answer(measuredRows(1, "node-1", 70, 0)...), 10*time.Second)
	if q := w.source.queries; len(q) != 4 || q[0].Name != "cpu" || q[1].Name != "memory" || q[2].Name != "gpu" || q[3].Deviation != "" {
		t.Errorf("asked %+v, want cpu, memory, gpu, and cpu without a deviation", q)
	}
	for _, resource := range w.plan().members[3].Resources {
		column, known := w.last().Column(resource)
		if !known || column != 1 {
			t.Errorf("the column of %s is %d, %v; want 1", resource.Name, column, known)
		}
	}
	if column, known := w.last().Column(faster.Resources[1]); !known || column != 0 {
		t.Errorf("the column of processor is %d, %v; want that of cpu", column, known)
	}
}

// TestCapacity checks that an absolute value is missing if the capacity is unknown.
func TestCapacity(t *testing.T) {
	args := spec("network")
	args.Resources[0].Capacity = Capacity{Annotation: "capacity"}
	annotated := makeNode("annotated")
	annotated.Annotations = map[string]string{"capacity": "1G"}
	w := newMeasuredWorld(t, args, annotated, makeNode("unknown"))
	w.answer(rows(measuredRows(0, "annotated", 5, 0), measuredRows(0, "unknown", 5, 0))...)
	expectSample(t, w.last(), "annotated", 0, Sample{Value: 5, At: start.UnixNano()})
	expectSample(t, w.last(), "unknown", 0, missing(NoCapacity))
}

// replay always returns the same rows, and counts the open sources.
type replay struct {
	rows []source.Row
	open *sync.WaitGroup
}

func (r replay) Ask(_ context.Context, queries []source.Query) (source.Result, error) {
	now := time.Now()
	result := source.Result{Evaluated: seconds(now), Received: now}
	for query := range queries {
		for _, row := range r.rows {
			row.Query = query
			if row.Kind == source.Timestamp {
				row.Value = result.Evaluated - row.Value
			}
			result.Rows = append(result.Rows, row)
		}
	}
	return result, nil
}

func (r replay) Close() { r.open.Done() }

// TestCollectors lets members join and release concurrently while collectors run, for the race detector.
func TestCollectors(t *testing.T) {
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	_ = nodes.Add(makeNode("node-1"))
	collectors := New()
	var open sync.WaitGroup
	var synced, polled, connected int32
	join := func(key, resource string, swapped func(*Snapshot)) *Handle {
		s := spec("shared", resource)
		s.RefreshInterval, s.Source, s.Swapped = time.Millisecond, key, swapped
		s.Nodes, s.Synced = corelisters.NewNodeLister(nodes), func() bool {
			atomic.AddInt32(&polled, 1)
			return atomic.LoadInt32(&synced) == 1
		}
		s.Connect = func() (source.Source, error) {
			open.Add(1)
			atomic.AddInt32(&connected, 1)
			return replay{measuredRows(0, "node-1", 0.5, 0), &open}, nil
		}
		handle, err := collectors.Join(s)
		if err != nil {
			t.Error(err)
		}
		return handle
	}
	first, other := join("a", "first", func(*Snapshot) {
		if atomic.LoadInt32(&synced) == 0 {
			t.Error("a snapshot before the nodes are known")
		}
	}), join("b", "other", nil)
	if first.Snapshot() != nil || first.Status().Source == other.Status().Source {
		t.Error("there is a snapshot before the nodes are known, or two sources have the same number")
	}
	for atomic.LoadInt32(&polled) < 4 {
		time.Sleep(time.Millisecond)
	}
	atomic.StoreInt32(&synced, 1)
	var members sync.WaitGroup
	for i := 0; i < 4; i++ {
		members.Add(1)
		go func(resource string) {
			defer members.Done()
			for n := 0; n < 5; n++ {
				// Join during a refresh: the resources are in one of the next snapshots.
				arrived, once := make(chan struct{}), sync.Once{}
				want := spec(resource).Resources[0]
				handle := join("a", resource, func(s *Snapshot) {
					if _, known := s.Column(want); known {
						once.Do(func() { close(arrived) })
					}
				})
				<-arrived
				handle.Status()
				handle.Release()
			}
		}(string(rune('a' + i)))
	}
	members.Wait()
	if got := atomic.LoadInt32(&connected); got != 2 {
		t.Errorf("%d sources were connected, want one for each key", got)
	}
	first.Release()
	other.Release()
	open.Wait()
	again := join("a", "again", nil)
	if got := atomic.LoadInt32(&connected); got != 3 {
		t.Errorf("%d sources were connected, want a new one after the last member released", got)
	}
	again.Release()
	open.Wait()
}

func TestJoinError(t *testing.T) {
	s := spec("cpu")
	s.Connect = func() (source.Source, error) { return nil, errors.New("no such endpoint") }
	if _, err := New().Join(s); err == nil || !strings.Contains(err.Error(), "no such endpoint") {
		t.Errorf("the error is %v, want the source's", err)
	}
}
