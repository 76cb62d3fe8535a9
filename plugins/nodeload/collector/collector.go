// SPDX-License-Identifier: Apache-2.0

// Package collector asks a source of measurements again and again in the background, and keeps what it answered last as
// a snapshot that schedulers read without waiting. Profiles that measure by the same source share one collector.
package collector

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/utils/clock"
)

// Resource is what is asked about a resource, and which node a series of the answer is about.
type Resource struct {
	source.Query
	Match config.NodeLoadNodeMatch
	// HasCapacity says whether it is known what a node has of a resource with absolute values. It is called by the
	// collector's goroutine. Values in shares of the capacity need none.
	HasCapacity func(node *v1.Node) bool
	// Capacity is the same for resources whose HasCapacity says the same.
	Capacity string
}

// Spec is what a profile wants to know, and from where.
type Spec struct {
	Prometheus config.NodeLoadPrometheus
	// MetricsServer is asked instead of Prometheus, if it is there.
	MetricsServer *source.MetricsServer
	// RefreshInterval is the time between two refreshes; of several profiles the shortest counts.
	RefreshInterval time.Duration
	// MaxSampleAge is how old a sample may be to count. The snapshots have older ones too.
	MaxSampleAge time.Duration
	Resources    []Resource
}

// Pool has the collectors of a scheduler.
type Pool struct {
	ctx     context.Context
	clock   clock.Clock
	random  func() float64 // 0 to 1
	connect func(prometheus config.NodeLoadPrometheus) (asker, error)

	mu         sync.Mutex
	collectors []*collector // by number
}

// NewPool returns a pool without collectors, whose goroutines end with the context. A process has one pool: the numbers
// in its metrics begin at 0.
func NewPool(ctx context.Context) *Pool {
	return &Pool{ctx: ctx, clock: clock.RealClock{}, connect: func(prometheus config.NodeLoadPrometheus) (asker, error) {
		return source.New(prometheus)
	}}
}

// Subscription is a profile's part in a collector.
type Subscription struct {
	collector *collector
	slots     []int
}

// Subscribe lets a profile take part in the refreshes. swapped, which may be nil, is called with each new snapshot, one
// call at a time, by the goroutine that refreshes: it must not wait. It is not called for refreshes that failed. The
// recorder, which may be nil, gets the events.
func (p *Pool) Subscribe(spec Spec, nodes coreinformers.NodeInformer, recorder events.EventRecorder, profile string,
	swapped func(*measured.Snapshot)) (*Subscription, error) {
	if len(spec.Resources) == 0 || spec.RefreshInterval <= 0 || spec.MaxSampleAge <= 0 {
		return nil, errors.New("collector: nothing to refresh, because there are no resources, or no times; " +
			"next: give resources, refreshInterval and maxSampleAge, each more than 0")
	}
	member := member{profile: profile, swapped: swapped}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.collectors {
		if c.metricsServer == (spec.MetricsServer != nil) && apiequality.Semantic.DeepEqual(c.prometheus, spec.Prometheus) {
			if slots, joined := c.join(&spec, recorder, member); joined {
				return &Subscription{collector: c, slots: slots}, nil
			}
		}
	}
	var client asker = spec.MetricsServer
	if spec.MetricsServer == nil {
		var err error
		if client, err = p.connect(spec.Prometheus); err != nil {
			return nil, fmt.Errorf("collector: source of measurements cannot be made: %w", err)
		}
	}
	random := p.random
	if random == nil {
		random = rand.New(rand.NewSource(p.clock.Now().UnixNano() + int64(len(p.collectors)))).Float64
	}
	c := &collector{
		label:         strconv.Itoa(len(p.collectors)),
		prometheus:    *spec.Prometheus.DeepCopy(),
		metricsServer: spec.MetricsServer != nil,
		lister:        nodes.Lister(),
		synced:        nodes.Informer().HasSynced,
		source:        client,
		clock:         p.clock,
		random:        random,
		touched:       make(chan struct{}, 1),
	}
	c.status.Store(Status{Source: c.label})
	registerMetrics(c.label)
	slots, _ := c.join(&spec, recorder, member)
	p.collectors = append(p.collectors, c)
	go c.run(p.ctx)
	return &Subscription{collector: c, slots: slots}, nil
}

// Slot returns where the samples of Spec.Resources[resource] are in those of a node.
func (s *Subscription) Slot(resource int) int { return s.slots[resource] }

// Status says how the refreshes go. Its slices must not be changed.
func (s *Subscription) Status() Status { return s.collector.status.Load().(Status) }

// Touch says that a scheduling cycle looked at the snapshot. It keeps the refreshes at their full rate; after some
// minutes without, on a standby or when no pod comes, they get rarer, until a Touch brings one at once.
func (s *Subscription) Touch() {
	select {
	case s.collector.touched <- struct{}{}:
	default: // it is noted already
	}
}

// collector asks one source for one or more profiles. Who writes what:
//
//  1. It has one goroutine, run, and so never more than one request.
//  2. Profiles join, under mu, until the refreshes begin. From then on what they want does not change, and is read
//     without a lock. A profile that comes later gets a collector of its own. In a scheduler none does: the refreshes
//     wait for the nodes, whose informer is started when all profiles are made.
//  3. A snapshot and a status are never changed once they are stored. Nothing that a scheduling cycle calls waits.
type collector struct {
	label         string
	prometheus    config.NodeLoadPrometheus
	metricsServer bool
	lister        corelisters.NodeLister
	synced        func() bool
	source        asker
	clock         clock.Clock
	random        func() float64

	snapshot atomic.Value  // *measured.Snapshot
	status   atomic.Value  // Status
	touched  chan struct{} // holds one

	mu       sync.Mutex
	begun    bool
	members  []member
	recorder events.EventRecorder // the first one there is
	queries  []source.Query
	slots    []slot
	interval time.Duration // the shortest
	// strictest and laxest are the smallest and the largest MaxSampleAge.
	strictest, laxest time.Duration

	// Of the goroutine:
	lastTouched time.Time
	failures    int // refreshes that failed since the last that did not
	told        State
	better      int    // refreshes in a row with a better state than the one told
	warned      string // the last answer's warnings
}

// member is a profile that takes part.
type member struct {
	profile string
	swapped func(*measured.Snapshot)
}

// asker is what is needed of a source.Client.
type asker interface {
	Ask(ctx context.Context, label string, queries []source.Query, row source.Row) (source.Result, error)
	Close()
}

// slot is a resource of the snapshots.
type slot struct {
	Resource
	asked int    // index of the query
	label string // of the metrics
}

// join gives a profile its slots; false if the refreshes have begun.
func (c *collector) join(spec *Spec, recorder events.EventRecorder, member member) (slots []int, joined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return nil, false
	}
	for i := range spec.Resources {
		slots = append(slots, c.slotOf(spec.Resources[i]))
	}
	if len(c.members) == 0 || spec.RefreshInterval < c.interval {
		c.interval = spec.RefreshInterval
	}
	if len(c.members) == 0 || spec.MaxSampleAge < c.strictest {
		c.strictest = spec.MaxSampleAge
	}
	if spec.MaxSampleAge > c.laxest {
		c.laxest = spec.MaxSampleAge
	}
	if c.recorder == nil {
		c.recorder = recorder
	}
	c.members = append(c.members, member)
	return slots, true
}

// slotOf returns the slot of a resource, and makes one if no other profile has the same.
func (c *collector) slotOf(wanted Resource) int {
	wanted.Label = wanted.Match.Label
	asked, called := len(c.queries), 1
	for i := range c.slots {
		known := &c.slots[i]
		if known.Name == wanted.Name {
			called++
		}
		query := known.Query
		query.Name = wanted.Name // a name is not what is asked
		if query != wanted.Query || known.Match != wanted.Match {
			continue
		}
		if known.Capacity == wanted.Capacity {
			return i
		}
		asked = known.asked
	}
	if asked == len(c.queries) {
		c.queries = append(c.queries, wanted.Query)
	}
	added := slot{Resource: wanted, asked: asked, label: wanted.Name}
	if called > 1 { // two profiles may ask different things about what they both call cpu
		added.label = fmt.Sprintf("%s#%d", wanted.Name, called)
	}
	c.slots = append(c.slots, added)
	return len(c.slots) - 1
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

// run refreshes until the context ends. It waits for the nodes first: without them no series would match. Where their
// informer is not started, such as in a mere check of the configuration, nothing is ever sent.
func (c *collector) run(ctx context.Context) {
	defer c.source.Close()
	for !c.synced() {
		if !c.sleep(ctx, syncInterval, nil) {
			return
		}
	}
	c.mu.Lock()
	c.begun = true
	c.mu.Unlock()
	c.lastTouched = c.clock.Now()
	for {
		pause, idle := c.refresh(ctx)
		wake := c.touched
		if !idle {
			wake = nil
		}
		if ctx.Err() != nil || !c.sleep(ctx, pause, wake) {
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
	case <-timer.C():
	case <-wake:
		c.lastTouched = c.clock.Now()
	}
	return ctx.Err() == nil
}

// idle says whether no scheduling cycle looked for so long that refreshes may be rarer.
func (c *collector) idle(now time.Time) bool {
	select {
	case <-c.touched:
		c.lastTouched = now
	default:
	}
	return now.Sub(c.lastTouched) >= idleAfter
}

// pace returns the time between two refreshes, and how long to sleep until the next: that time with jitter, or after
// failures a quarter of it, doubled with each, until it is as long; so what recovers is seen within it.
func (c *collector) pace(idle bool) (interval, sleep time.Duration) {
	interval = c.interval
	if idle {
		interval *= slowdown
		if most := c.strictest / 2; interval > most {
			interval = most
		}
		if interval < c.interval {
			interval = c.interval
		}
	}
	if c.failures == 0 {
		return interval, time.Duration(float64(interval) * (1 - jitter/2 + jitter*c.random()))
	}
	wait := c.interval / 4
	for i := 1; i < c.failures && wait < interval; i++ {
		wait *= 2
	}
	if wait > interval {
		wait = interval
	}
	return interval, time.Duration(float64(wait) * (1 - jitter*c.random()))
}
