// SPDX-License-Identifier: Apache-2.0

// Package collector asks a source of measurements again and again in the background, and keeps what it answered last as
// a snapshot that schedulers read without waiting. Profiles that measure by the same source share one collector.
package collector

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/utils/clock"
)

// Who writes what, and under which lock:
//
//  1. A collector has one goroutine, run. It alone asks, so that there is never more than one request, and it alone
//     touches the fields under "of the goroutine".
//  2. collector.mu guards the fields below it: what is asked for, and the status. It is held for a few copies, never
//     during a request, a callback or a wait. A refresh works on the plan that it copied at its begin; what is
//     subscribed to later is asked for by the next one, for which Subscribe wakes the goroutine.
//  3. A snapshot is never changed once it is made. It is stored in an atomic.Value of each subscription of the plan; so
//     what a subscription reads always has its slots. Nothing that a scheduling cycle calls takes a lock.
//  4. touched and slow are atomic. Touch writes touched, then reads slow; the goroutine writes slow, then reads
//     touched. So one of the two sees the other, and a touch is never slept through.
//  5. Subscription.calling is held while swapped is called, and by Close to forbid it: after Close it is not called.
//  6. Pool.mu guards the list of collectors, and is taken before collector.mu. The goroutine never takes it.
type collector struct {
	label   string
	match   match
	lister  corelisters.NodeLister
	synced  func() bool
	source  asker
	clock   clock.Clock
	random  func() float64 // 0 to 1; of the goroutine
	metrics *gauges
	cancel  context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended

	wake          chan struct{} // holds one
	touched, slow uint32        // 0 or 1

	mu            sync.Mutex
	subscriptions []*Subscription
	queries       []query // appended to, so that indices stay
	slots         []slot  // the same
	planned       bool    // a refresh has begun
	status        Status

	// Of the goroutine:
	last        *measured.Snapshot
	lastTouched time.Time
	failures    int // refreshes that failed since the last that did not
	told        State
	better      int      // refreshes in a row with a better state than the one told
	warnings    []string // the last answer's, sorted
	readings    []reading
}

// asker is what is needed of a source.Client.
type asker interface {
	Ask(ctx context.Context, label string, queries []source.Query, row source.Row) (source.Result, error)
	Close()
}

// query is what is asked for about a resource, once for all subscriptions that want to know the same.
type query struct {
	source.Query
	users int
}

// slot is a resource of the snapshots: a query's rows, classified by a unit. Values in shares of the capacity mean the
// same to all subscriptions; absolute ones are held against a capacity that each subscription knows by itself.
type slot struct {
	query
	asked    int // index of the query
	unit     unit
	capacity capacity // of Absolute
	label    string   // of the metrics
}

const (
	// plugin is the one that log lines are of.
	plugin = "NodeLoad"
	// syncInterval is how often it is looked whether the nodes are known.
	syncInterval = 100 * time.Millisecond
	// idleAfter is how long after the last scheduling cycle the refreshes get rarer, by slowdown.
	idleAfter = 5 * time.Minute
	slowdown  = 4
	// jitter is the part of an interval that is random, so that several schedulers do not ask at the same times.
	jitter = 0.2
)

// run refreshes until the context ends. It waits for the nodes first: without them no series would match, and as their
// informer is started after all profiles are made, the first refresh is already for all of them. Where it is not
// started, such as in a mere check of the configuration, nothing is ever sent.
func (c *collector) run(ctx context.Context) {
	defer close(c.done)
	for !c.synced() {
		if !c.sleep(ctx, syncInterval, nil) {
			return
		}
	}
	c.lastTouched = c.clock.Now()
	for {
		pace := c.refresh(ctx)
		if ctx.Err() != nil || !c.sleep(ctx, pace, c.wake) {
			return
		}
	}
}

// sleep returns after some time or when woken; false if the context ended.
func (c *collector) sleep(ctx context.Context, duration time.Duration, wake <-chan struct{}) bool {
	timer := c.clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-wake:
	}
	return ctx.Err() == nil
}

// refreshSoon ends the goroutine's sleep. During a refresh it makes another one follow.
func (c *collector) refreshSoon() {
	select {
	case c.wake <- struct{}{}:
	default: // there is one to come already
	}
}

// touch notes that a scheduling cycle looked.
func (c *collector) touch() {
	atomic.StoreUint32(&c.touched, 1)
	if atomic.LoadUint32(&c.slow) == 1 && atomic.CompareAndSwapUint32(&c.slow, 1, 0) {
		c.refreshSoon()
	}
}

// idle says whether no scheduling cycle looked for so long that refreshes may be rarer, and lets the next touch end
// that.
func (c *collector) idle(now time.Time) bool {
	if atomic.SwapUint32(&c.touched, 0) == 1 {
		c.lastTouched = now
	}
	if now.Sub(c.lastTouched) < idleAfter {
		return false
	}
	atomic.StoreUint32(&c.slow, 1)
	return atomic.LoadUint32(&c.touched) == 0 || !atomic.CompareAndSwapUint32(&c.slow, 1, 0)
}

// pace returns the time between two refreshes, and how long to sleep until the next: that time with jitter, or after
// failures a quarter of it, doubled with each, until it is as long; so what recovers is seen within it.
func (c *collector) pace(p *plan, idle bool) (interval, sleep time.Duration) {
	interval = p.interval
	if idle {
		interval *= slowdown
		if most := p.strictest / 2; interval > most {
			interval = most
		}
		if interval < p.interval {
			interval = p.interval
		}
	}
	if c.failures == 0 {
		return interval, time.Duration(float64(interval) * (1 - jitter/2 + jitter*c.random()))
	}
	wait := p.interval / 4
	for i := 1; i < c.failures && wait < interval; i++ {
		wait *= 2
	}
	if wait > interval {
		wait = interval
	}
	return interval, time.Duration(float64(wait) * (1 - jitter*c.random()))
}
