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

// State is the state of a source.
type State string

// The states. Before the first refresh it is empty.
const (
	// Fresh: it answers, and most nodes are measured.
	Fresh State = "Fresh"
	// Degraded: some of its queries fail, or fewer than half of the nodes have a fresh sample of any resource.
	Degraded State = "Degraded"
	// Down: it does not answer, or all of its queries fail.
	Down State = "Down"
)

// Status is the state of the refreshes of a source. It has no secrets.
type Status struct {
	// Source is the number of the source, as in metrics.
	Source string
	State  State
	// Since is when the source entered this state.
	Since time.Time
	// Problem is why the source is not Fresh; empty if it is.
	Problem string
	// Endpoint is the one that answered last.
	Endpoint string
	// LastSuccess is when the last refresh with an answer ended.
	LastSuccess time.Time
	// LastError is the problem at LastErrorTime, the last time that there was one. A success does not clear it.
	LastError     string
	LastErrorTime time.Time
	// Duration is the duration of the last refresh, successful or not.
	Duration time.Duration
	// Interval is the time between two refreshes. After a failure the next refresh comes sooner.
	Interval time.Duration
	// Failures is the number of failed refreshes since the last successful one.
	Failures int
	// Requests, Series, Bytes and Warnings are those of the last refresh with an answer.
	Requests, Series int
	Bytes            int64
	Warnings         []string
	// Nodes is the number of nodes at the last answer, and FreshNodes the number of those with a fresh sample of any
	// resource.
	Nodes, FreshNodes int
}

// judge returns the state after a refresh, and the problem if there is one.
func judge(o *outcome, t *tally) (state State, problem string) {
	switch {
	case o.err != nil:
		return Down, o.err.Error()
	case len(o.result.Failed) > 0:
		return Degraded, o.failedQueries().Error()
	case 2*t.fresh >= t.nodes:
		return Fresh, ""
	}
	problem = fmt.Sprintf("only %d of %d nodes have a fresh measurement; next: kubectl scheduling load shows NodeLoad's reasons; "+
		"check that the exporters are scraped", t.fresh, t.nodes)
	if s := o.snapshot; s.Unmatched > 0 {
		problem = fmt.Sprintf("only %d of %d nodes have a fresh measurement; %d series match no node, for example the one with %s=%q; "+
			"next: compare nodeMatch and the nodes' names and addresses with the series", t.fresh, t.nodes, s.Unmatched, s.UnmatchedLabel, s.UnmatchedExample)
	}
	return Degraded, problem
}

// kubeSystem is the object of the events: a source has no object.
var kubeSystem = &v1.ObjectReference{
	APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem, Namespace: metav1.NamespaceSystem,
}

// longestNote is the maximum length of a text in an event, whose own limit is 1,024 bytes.
const longestNote = 1000

// severity orders the states.
var severity = map[State]int{Fresh: 1, Degraded: 2, Down: 3}

// news reports whether to report a state: a worse one than the last reported immediately, a better one once the next
// refresh confirms it. So a source that answers every other time is reported once.
func (c *collector) news(state State) bool {
	if severity[state] < severity[c.reported] {
		c.better++
	} else {
		c.better = 0
	}
	if state == c.reported || c.better == 1 {
		return false
	}
	c.reported, c.better = state, 0
	return true
}

// logWarnings logs the warnings of an answer if they differ from the previous ones. Their order has no meaning.
func (c *collector) logWarnings(result *source.Result) {
	sorted := append([]string(nil), result.Warnings...)
	sort.Strings(sorted)
	if text := strings.Join(sorted, "\n"); text != c.warned {
		c.warned = text
		klog.InfoS("Warnings about the measurements changed", "plugin", plugin, "source", c.number, "endpoint", result.Endpoint,
			"mayLackSeries", result.Partial, "warnings", sorted)
	}
}

// report sets the status, and logs changes of the state and emits an event for them.
func (c *collector) report(o *outcome, t *tally) {
	state, problem := judge(o, t)
	s := c.status.Load().(Status)
	if state != s.State {
		s.State, s.Since = state, o.ended
	}
	s.Problem, s.Duration, s.Failures = problem, o.ended.Sub(o.begun), c.failures
	s.Interval = o.interval
	s.Nodes, s.FreshNodes = t.nodes, t.fresh
	if problem != "" {
		s.LastError, s.LastErrorTime = problem, o.ended
	}
	if o.err == nil {
		s.LastSuccess, s.Endpoint = o.ended, o.result.Endpoint
		s.Requests, s.Series, s.Bytes, s.Warnings = o.result.Requests, len(o.result.Rows), o.result.Bytes, o.result.Warnings
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
		note = fmt.Sprintf("Source %s of measurements answers; %d of %d nodes have fresh ones", c.number, t.fresh, t.nodes)
	case Degraded:
		note = fmt.Sprintf("Source %s of measurements is degraded: %s", c.number, problem)
	case Down:
		note = fmt.Sprintf("Source %s of measurements does not answer; once the last ones are too old, NodeLoad does without them, and Overcommit takes no more pods: %s",
			c.number, problem)
	}
	klog.InfoS("State of the measurements changed", "plugin", plugin, "source", c.number, "state", state, "endpoint", s.Endpoint,
		"nodes", t.nodes, "freshNodes", t.fresh, "problem", problem)
	if len(note) > longestNote {
		note = strings.ToValidUTF8(note[:longestNote], "") + " ..."
	}
	if c.first.Recorder != nil {
		c.first.Recorder.Eventf(kubeSystem, nil, kind, "NodeLoadMetrics"+string(state), "Refresh", "%s", note)
	}
}
