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
	// Profiles are the profiles that share it, in the order in which they came.
	Profiles []string
	State    State
	// Since is when it came into this state.
	Since time.Time
	// Problem says why it is not Fresh; empty if it is.
	Problem string
	// Endpoint is the one that answered last.
	Endpoint string
	// LastAttempt is when the last refresh ended, and LastSuccess when the last one ended that got an answer.
	LastAttempt, LastSuccess time.Time
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

func (s *Status) copy() Status {
	c := *s
	c.Profiles = append([]string(nil), s.Profiles...)
	c.Warnings = append([]string(nil), s.Warnings...)
	return c
}

// judge returns the state after a refresh, and what is to be said about it.
func (c *collector) judge(p *plan, o *outcome, t *tally) (state State, problem string) {
	switch {
	case o.err != nil:
		return Down, o.err.Error()
	case len(o.failed) > 0:
		return Degraded, o.failedQueries(p).Error()
	case 2*t.fresh < t.nodes:
		problem = fmt.Sprintf("only %d of %d nodes have a fresh measurement", t.fresh, t.nodes)
		if o.snapshot.Unmatched > 0 {
			problem += fmt.Sprintf("; %d series match no node, such as one whose label %s is %q; "+
				"next: compare nodeMatch, which is by %s, with the series", o.snapshot.Unmatched, c.match.Label,
				o.snapshot.UnmatchedExample, c.match.By)
		} else {
			problem += "; next: see on the status page what is missing, and whether the exporters are scraped"
		}
		return Degraded, problem
	}
	return Fresh, ""
}

// kubeSystem is what the events are about: a source has no object.
var kubeSystem = &v1.ObjectReference{
	APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem, Namespace: metav1.NamespaceSystem,
}

// longestNote is how many bytes of a text are put into an event, which takes 1,024.
const longestNote = 1000

// severity is how bad a state is.
func (s State) severity() int {
	switch s {
	case Fresh:
		return 0
	case Degraded:
		return 1
	default:
		return 2
	}
}

// news says whether a state is to be told: a worse one than was told last at once, a better one when the next refresh
// does not take it back. So a source that answers every other time is told of once, and not all the time.
func (c *collector) news(state State) bool {
	if c.told != "" && state.severity() < c.told.severity() {
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
func (c *collector) logWarnings(o *outcome) {
	if o.err != nil {
		return
	}
	warnings := append([]string(nil), o.result.Warnings...)
	sort.Strings(warnings)
	before := strings.Join(c.warnings, "\n")
	c.warnings = warnings
	switch {
	case strings.Join(warnings, "\n") == before:
	case len(warnings) == 0:
		klog.InfoS("Answers have no warnings any more", "plugin", plugin, "source", c.label, "endpoint", o.result.Endpoint)
	default:
		klog.InfoS("Answer has warnings", "plugin", plugin, "source", c.label, "endpoint", o.result.Endpoint,
			"mayLackSeries", o.result.Partial, "warnings", warnings)
	}
}

// report keeps the status, and says once when the state changes.
func (c *collector) report(p *plan, o *outcome, t *tally, interval time.Duration) {
	state, problem := c.judge(p, o, t)
	c.mu.Lock()
	s := &c.status
	if state != s.State {
		s.State, s.Since = state, o.ended
	}
	s.Problem = problem
	s.LastAttempt, s.Duration = o.ended, o.ended.Sub(o.begun)
	s.Interval, s.Slow, s.Failures = interval, interval > p.interval, c.failures
	s.Nodes, s.FreshNodes = t.nodes, t.fresh
	if problem != "" {
		s.LastError, s.LastErrorTime = problem, o.ended
	}
	if o.err == nil {
		s.LastSuccess, s.Endpoint = o.ended, o.result.Endpoint
		s.Requests, s.Series, s.Bytes, s.Warnings = o.result.Requests, o.result.Series, o.result.Bytes, o.result.Warnings
	}
	c.mu.Unlock()
	c.logWarnings(o)
	if !c.news(state) {
		return
	}

	kind, note := v1.EventTypeWarning, ""
	switch state {
	case Fresh:
		kind = v1.EventTypeNormal
		note = fmt.Sprintf("Source %s of measurements answers; %d of %d nodes have fresh ones", c.label, t.fresh, t.nodes)
		klog.InfoS("Measurements are fresh", "plugin", plugin, "source", c.label, "endpoint", o.result.Endpoint,
			"nodes", t.nodes, "freshNodes", t.fresh, "unmatchedSeries", o.snapshot.Unmatched)
	case Degraded:
		note = fmt.Sprintf("Source %s of measurements is degraded: %s", c.label, problem)
		klog.InfoS("Measurements are degraded", "plugin", plugin, "source", c.label, "endpoint", o.result.Endpoint,
			"nodes", t.nodes, "freshNodes", t.fresh, "problem", problem)
	case Down:
		note = fmt.Sprintf("Source %s of measurements does not answer, pods are scheduled without when the last ones are too old: %s",
			c.label, problem)
		klog.ErrorS(o.err, "Source of measurements does not answer", "plugin", plugin, "source", c.label)
	}
	if len(note) > longestNote {
		note = strings.ToValidUTF8(note[:longestNote], "") + " ..."
	}
	for _, s := range p.subscriptions {
		if s.recorder != nil {
			s.recorder.Eventf(kubeSystem, nil, kind, "NodeLoadMetrics"+string(state), "Refresh", "%s", note)
			return // one event, however many profiles there are
		}
	}
}
