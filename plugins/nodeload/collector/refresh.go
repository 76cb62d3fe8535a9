// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// outcome is the outcome of a refresh.
type outcome struct {
	*plan
	begun, ended time.Time
	result       source.Result
	nodes        int
	snapshot     *Snapshot // nil without an answer
	unmatched    []int     // the number of series of each query that match no node
	err          error     // the reason for which there is no snapshot
}

// refresh queries once, and returns the time until the next refresh. Without an answer the last snapshot stays, and its
// samples age.
func (c *collector) refresh(ctx context.Context) time.Duration {
	o := outcome{plan: c.plan(), begun: c.clock.Now()}
	o.err = c.guard(func() error { return c.ask(ctx, &o) })
	o.ended = c.clock.Now()
	if ctx.Err() != nil {
		return 0
	}
	if o.err == nil {
		c.failures = 0
		c.snapshot.Store(o.snapshot)
	} else {
		c.failures++
		klog.V(4).InfoS("Refreshing the measurements failed", "plugin", plugin, "source", c.number, "failures", c.failures, "err", o.err)
	}
	t := c.tally(&o)
	c.setMetrics(&o, t)
	c.report(&o, t)
	for _, m := range o.members {
		use := func() error {
			if m.Swapped != nil && o.err == nil {
				m.Swapped(o.snapshot)
			}
			if m.Refreshed != nil {
				m.Refreshed()
			}
			return nil
		}
		if err := c.guard(use); err != nil {
			klog.ErrorS(err, "Snapshot was not used", "plugin", plugin, "profile", m.Profile)
		}
	}
	return c.pause(o.interval)
}

// guard returns a panic as an error, whether a server's answer or a node's fields caused it: scheduling goes on.
func (c *collector) guard(do func() error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v; next: report this as a bug, with the stack in the scheduler's log", problem)
			klog.ErrorS(err, "Refreshing the measurements panicked", "plugin", plugin, "source", c.number, "stack", string(debug.Stack()))
		}
	}()
	return do()
}

// ask queries the source and fills an outcome.
func (c *collector) ask(ctx context.Context, o *outcome) error {
	nodes, err := c.first.Nodes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing the nodes failed: %w", err)
	}
	o.nodes = len(nodes)
	if o.result, err = c.source.Ask(ctx, o.queries); err != nil {
		return err
	}
	if len(o.result.Failed) >= len(o.queries) {
		return o.failedQueries()
	}
	if o.result.Received.IsZero() {
		o.result.Received = c.clock.Now()
	}
	t := newTable(nodes, o.resources)
	for i := range o.result.Rows {
		t.add(&o.result.Rows[i])
	}
	o.result.Warnings = append(o.result.Warnings, t.severalSeries()...)
	if t.ambiguous.rows > 0 {
		o.result.Warnings = append(o.result.Warnings, fmt.Sprintf("%d series match more than one node each, for example the one with %s=%q, "+
			"and are ignored; next: set nodeMatch.by or another nodeMatch.label", t.ambiguous.rows, t.ambiguous.label, t.ambiguous.text()))
	}
	o.unmatched = t.unmatchedOf
	o.snapshot = c.assemble(t, o)
	return nil
}

// failedQueries returns an error with the queries that failed, and why.
func (o *outcome) failedQueries() error {
	var text []string
	for i := range o.queries {
		if err := o.result.Failed[i]; err != nil {
			text = append(text, fmt.Sprintf("%s: %v", o.queries[i].Name, err))
		}
	}
	return fmt.Errorf("%d of %d queries failed: %s", len(text), len(o.queries), strings.Join(text, "; "))
}

// assemble returns the snapshot of an answer. If a query failed, its samples of the last snapshot are kept until they
// are too old for all members, those of pods until they are too old for one. The same applies to series of nodes that are
// missing in an answer with warnings: a server that queries others, such as Thanos, warns if some of them did not answer.
func (c *collector) assemble(t *table, o *outcome) *Snapshot {
	id, last := uint64(1), c.last()
	if last != nil {
		id = last.ID + 1
	}
	// A slow answer makes a sample look slightly older than it is, never younger.
	at := answered{evaluated: o.result.Evaluated, local: o.result.Asked}
	if at.local.IsZero() {
		at.local = o.result.Received
	}
	width := len(o.resources)
	samples, byNode := make([]Sample, len(t.nodes)*width), make(map[string][]Sample, len(t.nodes))
	for n, node := range t.nodes {
		of := samples[n*width : (n+1)*width : (n+1)*width]
		byNode[node.Name] = of
		for r := range o.resources {
			of[r] = o.resources[r].classify(&t.readings[n*width+r], node, at)
			lacks := o.result.Partial && (of[r].Missing == NoSeries || of[r].Missing == NoTimestamp)
			if o.result.Failed[r] != nil {
				of[r], lacks = Sample{Missing: QueryFailed}, true
			}
			if !lacks || last == nil {
				continue
			}
			before, known := last.Sample(node.Name, o.resources[r])
			if known && !predates(before.At, node, o.result.Received) && counts(before.At, o.result.Received.UnixNano(), o.laxest) {
				of[r] = before
			}
		}
	}
	snapshot := NewSnapshot(id, o.result.Received, o.resources, byNode)
	for r, readings := range t.pods {
		pods := map[string]Sample{}
		for pod, of := range readings {
			if sample := o.resources[r].classify(of, &v1.Node{}, at); sample.Missing == Present {
				pods[pod] = sample
			}
		}
		if o.result.Failed[r] != nil && last != nil {
			for pod, before := range last.Pods(o.resources[r]) {
				if counts(before.At, o.result.Received.UnixNano(), o.strictest) {
					pods[pod] = before
				}
			}
		}
		snapshot.pods = append(snapshot.pods, pods)
	}
	snapshot.Unmatched, snapshot.UnmatchedLabel, snapshot.UnmatchedExample = t.unmatched.rows, t.unmatched.label, t.unmatched.text()
	return snapshot
}

// Sample returns the sample of a node; false if it is missing.
func (s *Snapshot) Sample(node string, resource Resource) (Sample, bool) {
	column, known := s.Column(resource)
	if samples := s.Nodes[node]; known && samples != nil {
		return samples[column], samples[column].Missing == Present
	}
	return Sample{}, false
}

// counts reports whether a sample is recent enough. The age of a sample from the future is unknown, because this
// process' clock has been set back since.
func counts(at, now int64, maxAge time.Duration) bool {
	age := time.Duration(now - at)
	return age <= maxAge && age >= -Ahead
}

// tally counts the nodes of a snapshot by their state.
type tally struct {
	resources []resourceTally
	// nodes is the number of nodes, and fresh the number with a fresh sample of any resource.
	nodes, fresh int
}

type resourceTally struct {
	states [TooOld + 1]int // by Missing; Present are the fresh ones
	oldest time.Duration   // of all samples, too old or not
}

// tally counts the nodes of the last snapshot, by the strictest member's MaxSampleAge.
func (c *collector) tally(o *outcome) *tally {
	t := &tally{resources: make([]resourceTally, len(o.resources)), nodes: o.nodes}
	last := c.last()
	if last == nil {
		for r := range t.resources {
			t.resources[r].states[QueryFailed] = o.nodes
		}
		return t
	}
	now := o.ended.UnixNano()
	t.nodes = len(last.Nodes)
	for _, samples := range last.Nodes {
		fresh := 0
		for r := range o.resources {
			of, state, at := &t.resources[r], NoSeries, int64(0)
			if column, known := last.Column(o.resources[r]); known {
				state, at = samples[column].Missing, samples[column].At
			}
			if state == Present {
				if age := time.Duration(now - at); age > of.oldest {
					of.oldest = age
				}
				if counts(at, now, o.strictest) {
					fresh = 1
				} else {
					state = TooOld
				}
			}
			of.states[state]++
		}
		t.fresh += fresh
	}
	return t
}
