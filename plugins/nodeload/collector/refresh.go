// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// last returns the last snapshot, nil before the first.
func (c *collector) last() *measured.Snapshot {
	snapshot, _ := c.snapshot.Load().(*measured.Snapshot)
	return snapshot
}

// outcome is how a refresh went.
type outcome struct {
	begun, ended time.Time
	result       source.Result
	nodes        int
	snapshot     *measured.Snapshot // nil without an answer
	strangers    []int              // how many series of each query are about no node
	err          error              // why there is none
}

// refresh asks once, and returns how long to sleep until the next time, and whether that is longer because no cycle
// looks. Without an answer the snapshot stays the last one, whose samples get older.
func (c *collector) refresh(ctx context.Context) (pause time.Duration, idle bool) {
	o := outcome{begun: c.clock.Now()}
	o.err = c.guard(func() error { return c.ask(ctx, &o) })
	o.ended = c.clock.Now()
	if ctx.Err() != nil {
		return 0, false
	}
	if o.err == nil {
		c.failures = 0
		c.snapshot.Store(o.snapshot)
	} else {
		c.failures++
		klog.V(4).InfoS("Refresh of the measurements failed", "plugin", plugin, "source", c.label, "failures", c.failures, "err", o.err)
	}
	idle = c.idle(o.ended)
	interval, pause := c.pace(idle)
	t := c.tally(&o)
	c.setMetrics(&o, t)
	c.report(&o, t, interval)
	for _, m := range c.members {
		if swapped := m.swapped; swapped != nil && o.err == nil {
			if err := c.guard(func() error { swapped(o.snapshot); return nil }); err != nil {
				klog.ErrorS(err, "Profile could not take a snapshot", "plugin", plugin, "profile", m.profile)
			}
		}
	}
	return pause, idle
}

// guard makes an error of a panic, be it over what the server sent or what a node has: scheduling goes on.
func (c *collector) guard(do func() error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v; next: report this as a bug, with the stack in the scheduler's log", problem)
			klog.ErrorS(err, "Refresh of the measurements panicked", "plugin", plugin, "source", c.label, "stack", string(debug.Stack()))
		}
	}()
	return do()
}

// ask fills an outcome.
func (c *collector) ask(ctx context.Context, o *outcome) error {
	nodes, err := c.lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("nodes cannot be listed: %w", err)
	}
	o.nodes = len(nodes)
	t := c.newTable(nodes)
	if o.result, err = c.source.Ask(ctx, "", c.queries, t.row); err != nil {
		return err
	}
	if len(o.result.Failed) >= len(c.queries) {
		return c.failedQueries(o)
	}
	if o.result.Received.IsZero() {
		o.result.Received = c.clock.Now()
	}
	if t.ambiguous.rows > 0 {
		o.result.Warnings = append(o.result.Warnings, fmt.Sprintf("%d series are about more than one node each, such as that with %s=%q, "+
			"and do not count; next: give nodeMatch.by or another nodeMatch.label", t.ambiguous.rows, t.ambiguous.label, t.ambiguous.text()))
	}
	o.snapshot = c.assemble(t, o)
	return nil
}

// failedQueries says which queries failed, and why.
func (c *collector) failedQueries(o *outcome) error {
	var text []string
	for i := range c.queries {
		if err := o.result.Failed[i]; err != nil {
			text = append(text, fmt.Sprintf("%s: %v", c.queries[i].Name, err))
		}
	}
	return fmt.Errorf("%d of %d queries failed: %s", len(text), len(c.queries), strings.Join(text, "; "))
}

// table gathers an answer's rows.
type table struct {
	nodes       []*v1.Node
	queries     []source.Query
	directories []*directory // of each query
	// readings has the queries' readings of one node after those of another.
	readings []reading
	// unmatched are about no node, ambiguous about several.
	unmatched, ambiguous refused
	// strangers is how many rows of each query are about no node.
	strangers []int
}

func (c *collector) newTable(nodes []*v1.Node) *table {
	t := &table{
		nodes: nodes, queries: c.queries, directories: make([]*directory, len(c.queries)), readings: make([]reading, len(nodes)*len(c.queries)),
		strangers: make([]int, len(c.queries)),
	}
	made := map[config.NodeLoadMatchBy]*directory{}
	for i := range c.slots {
		by := c.slots[i].Match.By
		if made[by] == nil {
			made[by] = newDirectory(by, nodes)
		}
		t.directories[c.slots[i].asked] = made[by]
	}
	return t
}

// refused are rows that are not about one node.
type refused struct {
	rows int
	// example is the first of their labels' values in the alphabet, so that it does not change with the order of rows.
	example []byte
	label   string
}

// longestExample is how many bytes of a label are kept.
const longestExample = 256

func (r *refused) add(label string, value []byte) {
	if r.rows++; r.rows == 1 || bytes.Compare(value, r.example) < 0 {
		if len(value) > longestExample {
			value = value[:longestExample]
		}
		r.label, r.example = label, append(r.example[:0], value...)
	}
}

func (r *refused) text() string { return strings.ToValidUTF8(string(r.example), "\uFFFD") }

// row is a source.Row.
func (t *table) row(asked int, kind source.Kind, label []byte, value float64) {
	if asked < 0 || asked >= len(t.queries) || kind > source.Deviation {
		return
	}
	nodes := t.directories[asked].find(label)
	switch len(nodes) {
	case 0:
		t.unmatched.add(t.queries[asked].Label, label)
		t.strangers[asked]++
	case 1:
		t.readings[int(nodes[0])*len(t.queries)+asked].note(kind, value)
	default:
		t.ambiguous.add(t.queries[asked].Label, label)
		for _, node := range nodes {
			t.readings[int(node)*len(t.queries)+asked].blur(kind)
		}
	}
}

// assemble makes a snapshot of an answer. Where a query failed, what the last snapshot had stays as long as any profile
// would count it: as with an answer that did not come at all. So it does for what is not in an answer with warnings of
// the server, which is how one that asks others says that some of them did not answer.
func (c *collector) assemble(t *table, o *outcome) *measured.Snapshot {
	id, last := uint64(1), c.last()
	if last != nil {
		id = last.ID + 1
	}
	// What was asked slowly seems a little older than it is, and not younger.
	at := answered{evaluated: o.result.Evaluated, local: o.result.Asked}
	if at.local.IsZero() {
		at.local = o.result.Received
	}
	index, samples := make(map[string]int32, len(t.nodes)), make([]measured.Sample, 0, len(t.nodes)*len(c.slots))
	for n, node := range t.nodes {
		index[node.Name] = int32(n)
		var before []measured.Sample
		if last != nil {
			before = last.Node(node.Name)
		}
		for i := range c.slots {
			asked := c.slots[i].asked
			sample := c.slots[i].classify(&t.readings[n*len(c.queries)+asked], node, at)
			lacks := o.result.Partial && (sample.Missing == measured.NoSeries || sample.Missing == measured.NoTimestamp)
			if o.result.Failed[asked] != nil {
				sample, lacks = measured.Sample{Missing: measured.QueryFailed}, true
			}
			if lacks && before != nil && before[i].Missing == measured.Present && !predates(before[i].At, node, o.result.Received) &&
				counts(before[i].At, o.result.Received.UnixNano(), c.laxest) {
				sample = before[i]
			}
			samples = append(samples, sample)
		}
	}
	o.strangers = t.strangers
	snapshot := measured.New(id, o.result.Received, len(c.slots), index, samples)
	snapshot.Unmatched, snapshot.UnmatchedLabel, snapshot.UnmatchedExample = t.unmatched.rows, t.unmatched.label, t.unmatched.text()
	return snapshot
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
func (c *collector) tally(o *outcome) *tally {
	t := &tally{slots: make([]slotTally, len(c.slots)), nodes: o.nodes}
	last := c.last()
	if last == nil {
		for i := range t.slots {
			t.slots[i].states[measured.QueryFailed] = o.nodes
		}
		return t
	}
	now := o.ended.UnixNano()
	t.nodes = 0
	last.Each(func(_ string, samples []measured.Sample) {
		t.nodes++
		fresh := 0
		for i := range samples {
			slot, state := &t.slots[i], samples[i].Missing
			if state == measured.Present {
				if age := time.Duration(now - samples[i].At); age > slot.oldest {
					slot.oldest = age
				}
				if counts(samples[i].At, now, c.strictest) {
					fresh = 1
				} else {
					state = measured.TooOld
				}
			}
			slot.states[state]++
		}
		t.fresh += fresh
	})
	return t
}
