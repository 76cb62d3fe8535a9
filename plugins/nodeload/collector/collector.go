// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"math/rand"
	"sync/atomic"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/utils/clock"
)

// collector queries one source for all its members. The rules for its concurrent use:
//
//  1. It has one goroutine, run, and so at most one Ask at a time.
//  2. A plan, a snapshot and a status never change once they are stored: others replace them. A refresh uses the plan
//     that was current when it began.
//  3. No call of a scheduling cycle waits.
type collector struct {
	number string // in metrics, messages and Status
	first  *Spec  // the member whose nodes and recorder are used
	source source.Source
	clock  clock.Clock
	random func() float64
	cancel context.CancelFunc

	planned  atomic.Value // *plan
	snapshot atomic.Value // *Snapshot
	status   atomic.Value // Status

	// The following are for the goroutine only.
	failures int // failed refreshes since the last successful one
	reported State
	better   int    // successive refreshes with a better state than the reported one
	warned   string // the last answer's warnings
}

func newCollector(number string, first *Spec, clock clock.Clock, random func() float64) (*collector, error) {
	source, err := first.Connect()
	if err != nil {
		return nil, fmt.Errorf("collector: the source of measurements cannot be used: %w", err)
	}
	if random == nil {
		random = rand.New(rand.NewSource(clock.Now().UnixNano())).Float64
	}
	c := &collector{number: number, first: first, source: source, clock: clock, random: random}
	c.status.Store(Status{Source: number})
	c.setMembers([]*Spec{first})
	return c, nil
}

// plan combines the members' specs.
type plan struct {
	members   []*Spec
	resources []Resource
	labels    []string       // of the resources, in metrics
	queries   []source.Query // of the resources
	interval  time.Duration  // the shortest
	// strictest and laxest are the smallest and the largest MaxSampleAge.
	strictest, laxest time.Duration
}

func (c *collector) plan() *plan { return c.planned.Load().(*plan) }

func (c *collector) setMembers(members []*Spec) {
	p := &plan{members: append([]*Spec(nil), members...)}
	known, named := map[Resource]bool{}, map[string]int{}
	for i, m := range members {
		if i == 0 || m.RefreshInterval < p.interval {
			p.interval = m.RefreshInterval
		}
		if i == 0 || m.MaxSampleAge < p.strictest {
			p.strictest = m.MaxSampleAge
		}
		if m.MaxSampleAge > p.laxest {
			p.laxest = m.MaxSampleAge
		}
		for _, r := range m.Resources {
			if known[r.key()] {
				continue
			}
			known[r.key()] = true
			label := r.Name
			// Two profiles may have different queries that are both named cpu.
			if named[r.Name]++; named[r.Name] > 1 {
				label = fmt.Sprintf("%s#%d", r.Name, named[r.Name])
			}
			p.resources, p.labels, p.queries = append(p.resources, r), append(p.labels, label), append(p.queries, r.Query)
		}
	}
	c.planned.Store(p)
}

// last returns the last snapshot; nil before the first.
func (c *collector) last() *Snapshot {
	snapshot, _ := c.snapshot.Load().(*Snapshot)
	return snapshot
}

const (
	// plugin is the name of the plugin in log lines.
	plugin = "NodeLoad"
	// syncInterval is the time between two checks of whether the nodes are known.
	syncInterval = 100 * time.Millisecond
	// jitter is the random part of an interval, so that several schedulers do not ask at the same times.
	jitter = 0.2
)

// run refreshes until the context ends. It waits for the nodes first: without them no series would match. If their
// informer is never started, no request is sent.
func (c *collector) run(ctx context.Context) {
	defer c.source.Close()
	for !c.first.Synced() {
		if !c.sleep(ctx, syncInterval) {
			return
		}
	}
	for c.sleep(ctx, c.refresh(ctx)) {
	}
}

// sleep waits; it returns false if the context ended.
func (c *collector) sleep(ctx context.Context, duration time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := c.clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// pause returns the time until the next refresh: the interval with jitter. After a failure it is a quarter of the
// interval, doubled with each further failure up to the interval, so that a recovery is noticed within an interval.
func (c *collector) pause(interval time.Duration) time.Duration {
	if c.failures == 0 {
		return time.Duration(float64(interval) * (1 - jitter/2 + jitter*c.random()))
	}
	wait := interval / 4
	for i := 1; i < c.failures && wait < interval; i++ {
		wait *= 2
	}
	if wait > interval {
		wait = interval
	}
	return time.Duration(float64(wait) * (1 - jitter*c.random()))
}
