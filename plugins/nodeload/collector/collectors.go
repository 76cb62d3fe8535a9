// SPDX-License-Identifier: Apache-2.0

// Package collector queries a source of measurements periodically in the background, and keeps the last answer as a
// snapshot that schedulers read without waiting.
//
// There is one collector for each source in a process. A plugin joins it with the source's key:
//
//	handle, err := collectors.Join(collector.Spec{Source: key, Connect: ..., Resources: ..., Swapped: ...})
//	handle.Snapshot(), handle.Status()
//	handle.Release()
//
// The collector runs from the first Join until the last Release, and queries the union of the members' resources at
// their shortest interval. Several plugins share a source if they use the same Collectors.
package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/utils/clock"
)

// Resource is a measurement of each node. A collector treats resources that differ only in their name as one.
type Resource struct {
	source.Query
	// By is the property of a node that the series' label contains.
	By config.NodeLoadMatchBy
	// Capacity is required for absolute values, and empty for shares of the capacity, which Percent multiplies by 100.
	Capacity Capacity
	Percent  bool
}

func (r Resource) key() Resource {
	r.Name = ""
	return r
}

// PrometheusKey returns the key of a source that is a Prometheus. It is JSON, so that two args have the same key if, and
// only if, their values are the same.
func PrometheusKey(args *config.NodeLoadPrometheus) string {
	key, err := json.Marshal(args)
	if err != nil {
		panic(err) // Its fields are texts, lists of texts, a bool and a duration.
	}
	return string(key)
}

// Simulated returns the source of a simulation, in which the client's transport is one, or nil.
func Simulated(handle framework.Handle) source.Source {
	if handle == nil {
		return nil
	}
	if kubeConfig := handle.KubeConfig(); kubeConfig != nil {
		if simulated, ok := kubeConfig.Transport.(source.Source); ok {
			return simulated
		}
	}
	return nil
}

// Spec describes a member of a collector.
type Spec struct {
	// Source is the key of the source: members with the same key share a collector.
	Source string
	// Connect returns the source. It is called for the first member only.
	Connect func() (source.Source, error)
	// RefreshInterval is the time between two refreshes; the shortest of all members counts.
	RefreshInterval time.Duration
	// MaxSampleAge is the maximum age of a sample that counts. Snapshots have older ones too.
	MaxSampleAge time.Duration
	Resources    []Resource
	// Nodes lists the nodes. No request is sent until Synced reports true.
	Nodes  corelisters.NodeLister
	Synced func() bool
	// Profile is for log messages.
	Profile string
	// Recorder gets the events; may be nil. The first member's is used.
	Recorder events.EventRecorder
	// Swapped is called with each new snapshot by the goroutine that refreshes, so it must not wait; may be nil. It is
	// not called for refreshes that failed.
	Swapped func(*Snapshot)
	// Refreshed is called after each refresh, failed or not, in the same way; may be nil.
	Refreshed func()
}

// Collectors has the collectors of a process by the keys of their sources.
type Collectors struct {
	clock  clock.Clock
	random func() float64 // 0 to 1; nil: each collector has its own

	mu      sync.Mutex
	sources int // the number of collectors that were started
	running map[string]*collector
}

// New returns empty Collectors. A process has one: the sources in its metrics are numbered from 0.
func New() *Collectors {
	return &Collectors{clock: clock.RealClock{}, running: map[string]*collector{}}
}

// Handle is a member's access to a collector.
type Handle struct {
	collectors *Collectors
	collector  *collector
	spec       *Spec
}

// Join adds a member to the collector of its source, and starts the collector if it is the first. The member's
// resources are in the snapshots from the next refresh on.
func (cs *Collectors) Join(spec Spec) (*Handle, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.running[spec.Source]
	if c == nil {
		var err error
		if c, err = newCollector(strconv.Itoa(cs.sources), &spec, cs.clock, cs.random); err != nil {
			return nil, err
		}
		cs.sources++
		cs.running[spec.Source] = c
		initMetrics(c.number)
		var ctx context.Context
		ctx, c.cancel = context.WithCancel(context.Background())
		go c.run(ctx)
	} else {
		c.setMembers(append(c.plan().members, &spec))
	}
	return &Handle{collectors: cs, collector: c, spec: &spec}, nil
}

// Release removes the member. The last one stops the collector.
func (h *Handle) Release() {
	h.collectors.mu.Lock()
	defer h.collectors.mu.Unlock()
	var left []*Spec
	for _, member := range h.collector.plan().members {
		if member != h.spec {
			left = append(left, member)
		}
	}
	if len(left) > 0 {
		h.collector.setMembers(left)
		return
	}
	h.collector.cancel()
	if h.collectors.running[h.spec.Source] == h.collector {
		delete(h.collectors.running, h.spec.Source)
	}
}

// Snapshot returns the result of the last successful refresh; nil before the first.
func (h *Handle) Snapshot() *Snapshot { return h.collector.last() }

// Status returns the state of the refreshes. Its slices must not be changed.
func (h *Handle) Status() Status { return h.collector.status.Load().(Status) }

// Once queries a member's source once for some nodes, and writes how it answered. It is for checks, and starts no
// goroutine.
func Once(ctx context.Context, spec Spec, nodes []*v1.Node, out io.Writer) (*Snapshot, Status, error) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, node := range nodes {
		if err := indexer.Add(node); err != nil {
			return nil, Status{}, err
		}
	}
	spec.Nodes = corelisters.NewNodeLister(indexer)
	c, err := newCollector("check", &spec, clock.RealClock{}, nil)
	if err != nil {
		return nil, Status{}, err
	}
	defer c.source.Close()
	c.refresh(ctx)
	status := c.status.Load().(Status)
	switch {
	case ctx.Err() != nil:
		return nil, status, fmt.Errorf("no answer in time: %w; next: check that one of the endpoints can be reached from here", ctx.Err())
	case c.last() == nil:
		return nil, status, fmt.Errorf("%s", status.LastError)
	}
	fmt.Fprintf(out, "%s answered in %v: %d series in %d requests, %d bytes\n", status.Endpoint, status.Duration.Round(time.Millisecond),
		status.Series, status.Requests, status.Bytes)
	for _, warning := range status.Warnings {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
	return c.last(), status, nil
}
