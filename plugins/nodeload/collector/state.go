// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

// State says what a source is worth.
type State string

// The states. Before the first refresh there is none.
const (
	// Fresh: it answers, and most nodes are measured.
	Fresh State = "Fresh"
	// Degraded: it answers, but not all of its queries, or fewer than half of the nodes have a fresh sample of
	// anything.
	Degraded State = "Degraded"
	// Down: it does not answer, or none of its queries.
	Down State = "Down"
)

// Status says how the refreshes of a source go. It has no secrets.
type Status struct {
	// Source is the number of the source, as its metrics have it.
	Source string
	State  State
	// Since is when it came into this state.
	Since time.Time
	// Problem says why it is not Fresh; empty if it is.
	Problem string
	// Endpoint is the one that answered last.
	Endpoint string
	// LastSuccess is when the last refresh ended that got an answer.
	LastSuccess time.Time
	// LastError is why the last refresh failed that did, at LastErrorTime. A success does not clear it.
	LastError     string
	LastErrorTime time.Time
	// Duration is how long the last refresh took, however it ended.
	Duration time.Duration
	// Interval is the time between two refreshes now; Slow says that it is longer than configured, because no
	// scheduling cycle looked for some minutes. After a failure the next refresh comes sooner.
	Interval time.Duration
	Slow     bool
	// Failures is how many refreshes failed since the last that did not.
	Failures int
	// Requests, Series, Bytes and Warnings are those of the last refresh that got an answer.
	Requests, Series int
	Bytes            int64
	Warnings         []string
	// Nodes is how many nodes there were at the last answer, and FreshNodes how many of them have a fresh sample of any
	// resource.
	Nodes, FreshNodes int
}

// judge returns the state after a refresh, and what is to be said about it.
func (c *collector) judge(o *outcome, t *tally) (state State, problem string) {
	switch {
	case o.err != nil:
		return Down, o.err.Error()
	case len(o.result.Failed) > 0:
		return Degraded, c.failedQueries(o).Error()
	case 2*t.fresh >= t.nodes:
		return Fresh, ""
	}
	problem = fmt.Sprintf("only %d of %d nodes have a fresh measurement; next: see on the status page what is missing, "+
		"and whether the exporters are scraped", t.fresh, t.nodes)
	if s := o.snapshot; s.Unmatched > 0 {
		problem = fmt.Sprintf("only %d of %d nodes have a fresh measurement; %d series match no node, such as one whose label %s is %q; "+
			"next: compare nodeMatch and the nodes' names and addresses with the series", t.fresh, t.nodes, s.Unmatched, s.UnmatchedLabel, s.UnmatchedExample)
	}
	return Degraded, problem
}

// kubeSystem is what the events are about: a source has no object.
var kubeSystem = &v1.ObjectReference{
	APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem, Namespace: metav1.NamespaceSystem,
}

// longestNote is how many bytes of a text are put into an event, which takes 1,024.
const longestNote = 1000

// severity is how bad a state is.
var severity = map[State]int{Fresh: 1, Degraded: 2, Down: 3}

// news says whether a state is to be told: a worse one than was told last at once, a better one when the next refresh
// does not take it back. So a source that answers every other time is told of once, and not all the time.
func (c *collector) news(state State) bool {
	if severity[state] < severity[c.told] {
		c.better++
	} else {
		c.better = 0
	}
	if state == c.told || c.better == 1 {
		return false
	}
	c.told, c.better = state, 0
	return true
}

// logWarnings logs the warnings of an answer if they are not those of the one before. Their order is the server's whim.
func (c *collector) logWarnings(result *source.Result) {
	sorted := append([]string(nil), result.Warnings...)
	sort.Strings(sorted)
	if text := strings.Join(sorted, "\n"); text != c.warned {
		c.warned = text
		klog.InfoS("Warnings about the measurements changed", "plugin", plugin, "source", c.label, "endpoint", result.Endpoint,
			"mayLackSeries", result.Partial, "warnings", sorted)
	}
}

// report keeps the status, and says once when the state changes.
func (c *collector) report(o *outcome, t *tally, interval time.Duration) {
	state, problem := c.judge(o, t)
	s := c.status.Load().(Status)
	if state != s.State {
		s.State, s.Since = state, o.ended
	}
	s.Problem, s.Duration, s.Failures = problem, o.ended.Sub(o.begun), c.failures
	s.Interval, s.Slow = interval, interval > c.interval
	s.Nodes, s.FreshNodes = t.nodes, t.fresh
	if problem != "" {
		s.LastError, s.LastErrorTime = problem, o.ended
	}
	if o.err == nil {
		s.LastSuccess, s.Endpoint = o.ended, o.result.Endpoint
		s.Requests, s.Series, s.Bytes, s.Warnings = o.result.Requests, o.result.Series, o.result.Bytes, o.result.Warnings
		c.logWarnings(&o.result)
	}
	c.status.Store(s)
	if !c.news(state) {
		return
	}

	kind, note := v1.EventTypeWarning, ""
	switch state {
	case Fresh:
		kind = v1.EventTypeNormal
		note = fmt.Sprintf("Source %s of measurements answers; %d of %d nodes have fresh ones", c.label, t.fresh, t.nodes)
	case Degraded:
		note = fmt.Sprintf("Source %s of measurements is degraded: %s", c.label, problem)
	case Down:
		note = fmt.Sprintf("Source %s of measurements does not answer, pods are scheduled without when the last ones are too old: %s",
			c.label, problem)
	}
	klog.InfoS("State of the measurements changed", "plugin", plugin, "source", c.label, "state", state, "endpoint", s.Endpoint,
		"nodes", t.nodes, "freshNodes", t.fresh, "problem", problem)
	if len(note) > longestNote {
		note = strings.ToValidUTF8(note[:longestNote], "") + " ..."
	}
	if c.recorder != nil {
		c.recorder.Eventf(kubeSystem, nil, kind, "NodeLoadMetrics"+string(state), "Refresh", "%s", note)
	}
}
