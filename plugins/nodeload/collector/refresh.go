// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// plan is what a refresh is for, copied at its begin.
type plan struct {
	subscriptions []*Subscription
	queries       []source.Query
	asked         int // queries that are in use
	slots         []slot
	interval      time.Duration // the shortest
	// strictest and laxest are the smallest and the largest MaxSampleAge.
	strictest, laxest time.Duration
}

func (c *collector) plan() *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned = true
	p := &plan{
		subscriptions: append([]*Subscription(nil), c.subscriptions...),
		slots:         append([]slot(nil), c.slots...),
	}
	for _, q := range c.queries {
		if q.users == 0 {
			q.Query = source.Query{Name: q.Name}
		} else {
			p.asked++
		}
		p.queries = append(p.queries, q.Query)
	}
	for i, s := range p.subscriptions {
		if i == 0 || s.spec.RefreshInterval < p.interval {
			p.interval = s.spec.RefreshInterval
		}
		if i == 0 || s.spec.MaxSampleAge < p.strictest {
			p.strictest = s.spec.MaxSampleAge
		}
		if s.spec.MaxSampleAge > p.laxest {
			p.laxest = s.spec.MaxSampleAge
		}
	}
	return p
}

// outcome is how a refresh went.
type outcome struct {
	begun, ended time.Time
	result       source.Result
	failed       []int // the queries that failed, in order
	nodes        int
	snapshot     *measured.Snapshot // nil without an answer
	err          error              // why there is none
}

// refresh asks once, and returns how long to sleep until the next time. Without an answer the snapshot stays the last
// one, whose samples get older.
func (c *collector) refresh(ctx context.Context) time.Duration {
	atomic.StoreUint32(&c.slow, 0) // a touch from here on need not bring a refresh
	select {
	case <-c.wake: // what it was woken for is in the plan
	default:
	}
	p := c.plan()
	if len(p.subscriptions) == 0 {
		return idleAfter // the last one is about to end the context
	}
	o := outcome{begun: c.clock.Now()}
	c.ask(ctx, p, &o)
	o.ended = c.clock.Now()
	if ctx.Err() != nil {
		return 0
	}
	if o.err == nil {
		c.failures = 0
		c.last = o.snapshot
	} else {
		c.failures++
		klog.V(4).InfoS("Refresh of the measurements failed", "plugin", plugin, "source", c.label, "failures", c.failures, "err", o.err)
	}
	t := c.tally(p, &o)
	interval, sleep := c.pace(p, c.idle(o.ended))
	c.metrics.set(p, &o, t)
	c.report(p, &o, t, interval)
	if o.err == nil {
		for _, s := range p.subscriptions {
			s.deliver(o.snapshot)
		}
	}
	return sleep
}

// ask fills an outcome. A panic, be it over what the server sent or what a node has, is a failure like others.
func (c *collector) ask(ctx context.Context, p *plan, o *outcome) {
	defer func() {
		if problem := recover(); problem != nil {
			o.snapshot, o.err = nil, fmt.Errorf("panic: %v; next: report this as a bug, with the stack in the scheduler's log", problem)
			klog.ErrorS(o.err, "Refresh of the measurements panicked", "plugin", plugin, "source", c.label, "stack", stack())
		}
	}()
	nodes, err := c.lister.List(labels.Everything())
	if err != nil {
		o.err = fmt.Errorf("nodes cannot be listed: %w", err)
		return
	}
	o.nodes = len(nodes)
	t := c.newTable(newDirectory(c.match, nodes), len(p.queries))
	o.result, err = c.source.Ask(ctx, c.match.Label, p.queries, t.row)
	if err != nil {
		o.err = err
		return
	}
	for i := range o.result.Failed {
		if i >= 0 && i < len(p.queries) {
			o.failed = append(o.failed, i)
		}
	}
	sort.Ints(o.failed)
	if len(o.failed) >= p.asked {
		o.err = o.failedQueries(p)
		return
	}
	if o.result.Received.IsZero() {
		o.result.Received = c.clock.Now()
	}
	o.snapshot = c.assemble(p, t, o)
}

// failedQueries says which queries failed, and why.
func (o *outcome) failedQueries(p *plan) error {
	var text []string
	for _, i := range o.failed {
		text = append(text, fmt.Sprintf("%s: %v", p.queries[i].Name, o.result.Failed[i]))
	}
	return fmt.Errorf("%d of %d queries failed: %s", len(o.failed), p.asked, strings.Join(text, "; "))
}

// table gathers an answer's rows.
type table struct {
	*directory
	queries int
	// readings has the queries' readings of one node after those of another.
	readings []reading
	// unmatched is how many rows were about no node, and example the first of their labels in the alphabet, so that it
	// does not change with the order of the rows.
	unmatched int
	example   []byte
}

// newTable returns an empty table. It has the memory of the last one.
func (c *collector) newTable(d *directory, queries int) *table {
	size := len(d.nodes) * queries
	if cap(c.readings) < size {
		c.readings = make([]reading, size)
	}
	c.readings = c.readings[:size]
	for i := range c.readings {
		c.readings[i] = reading{}
	}
	return &table{directory: d, queries: queries, readings: c.readings}
}

// longestExample is how many bytes of a label are kept.
const longestExample = 256

// row is a source.Row.
func (t *table) row(asked int, kind source.Kind, label []byte, value float64) {
	if asked < 0 || asked >= t.queries || kind > source.Deviation {
		return
	}
	node, several, found := t.find(label)
	switch {
	case !found:
		if t.unmatched++; t.unmatched == 1 || bytes.Compare(label, t.example) < 0 {
			if len(label) > longestExample {
				label = label[:longestExample]
			}
			t.example = append(t.example[:0], label...)
		}
	case several == nil:
		t.readings[int(node)*t.queries+asked].note(kind, value)
	default:
		for _, node := range several {
			t.readings[int(node)*t.queries+asked].blur(kind)
		}
	}
}

// assemble makes a snapshot of an answer. Where a query failed, what the last snapshot had stays as long as anybody
// would count it: as with an answer that did not come at all. So it does for what is not in an answer with warnings of
// the server, which is how one that asks others says that some of them did not answer.
func (c *collector) assemble(p *plan, t *table, o *outcome) *measured.Snapshot {
	id := uint64(1)
	if c.last != nil {
		id = c.last.ID + 1
	}
	// What was asked slowly seems a little older than it is, and not younger.
	at := answered{evaluated: o.result.Evaluated, local: o.result.Asked}
	if at.local.IsZero() {
		at.local = o.result.Received
	}
	failed := make([]bool, len(p.queries))
	for _, i := range o.failed {
		failed[i] = true
	}
	samples := make([]measured.Sample, len(t.nodes)*len(p.slots))
	for n, node := range t.nodes {
		ofNode := samples[n*len(p.slots) : (n+1)*len(p.slots)]
		readings := t.readings[n*t.queries : (n+1)*t.queries]
		for i := range p.slots {
			s := &p.slots[i]
			if !failed[s.asked] {
				ofNode[i] = s.classify(&readings[s.asked], node, at)
				if why := ofNode[i].Missing; !o.result.Partial || why != measured.NoSeries && why != measured.NoTimestamp {
					continue
				}
			} else {
				ofNode[i].Missing = measured.QueryFailed
			}
			if kept, found := c.previous(node, i, o.result.Received, p.laxest); found {
				ofNode[i] = kept
			}
		}
	}
	snapshot := measured.New(id, o.result.Received, len(p.slots), t.names, samples)
	snapshot.Unmatched = t.unmatched
	snapshot.UnmatchedExample = strings.ToValidUTF8(string(t.example), "\uFFFD")
	return snapshot
}

// previous returns the last snapshot's sample of a node if there is one that still counts for a profile.
func (c *collector) previous(node *v1.Node, slot int, now time.Time, maxAge time.Duration) (sample measured.Sample, found bool) {
	if c.last == nil || slot >= c.last.Slots {
		return sample, false
	}
	samples := c.last.Node(node.Name)
	if samples == nil {
		return sample, false
	}
	sample = samples[slot]
	return sample, sample.Missing == measured.Present && counts(sample.At, now.UnixNano(), maxAge) && !predates(sample.At, node, now)
}

// counts says whether a sample is young enough. One that was taken in the future is of a time before this process'
// clock was set back, so that its age is not known.
func counts(at, now int64, maxAge time.Duration) bool {
	age := time.Duration(now - at)
	return age <= maxAge && age >= -measured.Ahead
}

// tally is what a snapshot is worth at one time.
type tally struct {
	slots []slotTally
	// nodes is how many there are, and fresh how many of them have a fresh sample of anything.
	nodes, fresh int
}

type slotTally struct {
	states [measured.TooOld + 1]int // by Missing; Present are the fresh ones
	oldest time.Duration            // of all that are there, too old or not
}

// tally judges the last snapshot there is by the strictest profile.
func (c *collector) tally(p *plan, o *outcome) *tally {
	t := &tally{slots: make([]slotTally, len(p.slots)), nodes: o.nodes}
	if c.last == nil {
		for i := range t.slots {
			t.slots[i].states[measured.QueryFailed] = o.nodes
		}
		return t
	}
	now := o.ended.UnixNano()
	t.nodes = 0
	c.last.Each(func(_ string, samples []measured.Sample) {
		t.nodes++
		anything := false
		for i := range t.slots {
			slot, state := &t.slots[i], measured.QueryFailed
			if i < len(samples) {
				state = samples[i].Missing
			}
			if state == measured.Present {
				age := time.Duration(now - samples[i].At)
				if age > slot.oldest {
					slot.oldest = age
				}
				if !counts(samples[i].At, now, p.strictest) {
					state = measured.TooOld
				} else {
					anything = anything || p.slots[i].users > 0
				}
			}
			slot.states[state]++
		}
		if anything {
			t.fresh++
		}
	})
	return t
}

// stack returns the calling goroutine's stack.
func stack() string {
	return string(debug.Stack())
}
