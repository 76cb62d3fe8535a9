// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// stateKey is the key of an attempt in its CycleState.
const stateKey framework.StateKey = "shared/records"

// Attempt is one attempt to schedule a pod. Until End it belongs to the scheduling goroutine; afterwards it is
// immutable.
type Attempt struct {
	recorder *Recorder
	state    *framework.CycleState
	held     held
	trail    *trail
	// bytes is the size that the recorder has counted for it.
	bytes int64

	number                     int
	queued, first, began       time.Time
	took                       time.Duration
	profile, wokenBy           string
	nodes, evaluated, feasible int
	// passed is the number of nodes that passed all filters, before extenders.
	passed     int
	rejections []rejection
	// others is the number of nodes that extenders rejected, in the rejection for other reasons.
	others int
	scores scores
	node   string

	ended                        time.Time
	bound, failed, unschedulable bool
	message                      string
	// told is from Tell.
	told PluginWords
}

// rejection describes nodes that one plugin or one extender rejected for the same reasons.
type rejection struct {
	plugin  string
	reasons []string
	nodes   int
	sample  []string
	status  *framework.Status // of the last node; nodes may share one
}

// scores are those of the best nodes and of the chosen one.
type scores struct {
	plugins []Plugin
	nodes   []rank
	// ties is the number of nodes with the highest total.
	ties int
	// values has two numbers per node and plugin, in the order of nodes and plugins: the raw and the weighted score.
	values []int64
}

type rank struct {
	index int
	name  string
	total int64
}

// Plugin describes a Score plugin, with its weight in the profile.
type Plugin struct {
	Name   string
	Weight int64
}

// Clone implements framework.StateData. It returns nil, because simulations of preemption are not recorded.
func (a *Attempt) Clone() framework.StateData { return (*Attempt)(nil) }

// Of returns the attempt of a cycle, or nil if it is not recorded.
func Of(state *framework.CycleState) *Attempt {
	if state == nil {
		return nil
	}
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	a, _ := data.(*Attempt)
	return a
}

// fail records an error. It does not format a FitError, which is slow and repeats the recorded rejections.
func (a *Attempt) fail(err error) {
	a.failed = true
	if fit, ok := err.(*framework.FitError); ok {
		a.unschedulable = true
		a.addExtenders(fit.Diagnosis.NodeToStatusMap)
		return
	}
	a.unschedulable = a.nodes == 0
	if a.message = short(err.Error()); a.message == "" {
		a.message = "no reason is given"
	}
}

// short truncates a text to bytesOfText.
func short(text string) string {
	if len(text) <= bytesOfText {
		return text
	}
	return strings.ToValidUTF8(text[:bytesOfText], "") + "…"
}

// shortened returns the first reasons that together have at most bytesOfText, and the number of those left out.
func shortened(reasons []string) []string {
	left := bytesOfText
	for i, reason := range reasons {
		if left -= len(reason); left >= 0 {
			continue
		}
		first := append([]string(nil), reasons[:i]...)
		if i == 0 {
			first, i = []string{short(reason)}, 1
		}
		if i < len(reasons) {
			first = append(first, fmt.Sprintf("… (%d more)", len(reasons)-i))
		}
		return first
	}
	return reasons
}

// complete adds a rejection for the nodes that passed the filters and were silently left out by extenders, truncates
// long reasons, and drops the statuses.
func (a *Attempt) complete() {
	left := a.passed - a.feasible - a.others
	for i := range a.rejections {
		r := &a.rejections[i]
		if r.status = nil; r.plugin == "" {
			left -= r.nodes
		}
		r.reasons = shortened(r.reasons)
	}
	if left > 0 && (!a.failed || a.unschedulable) {
		a.rejections = append(a.rejections, rejection{reasons: []string{LeftOut}, nodes: left})
	}
}

// addExtenders adds the nodes that extenders rejected; their statuses name no plugin.
func (a *Attempt) addExtenders(statuses framework.NodeToStatusMap) {
	if a.passed == 0 {
		return
	}
	for node, status := range statuses {
		if status.FailedPlugin() == "" {
			a.Reject(node, status)
		}
	}
}

// rejected returns the number of rejected nodes.
func (a *Attempt) rejected() int {
	nodes := 0
	for i := range a.rejections {
		nodes += a.rejections[i].nodes
	}
	return nodes
}

// Searched records the number of nodes that passed all filters. It drops earlier rejections: they belong to a search
// that is repeated for all nodes.
func (a *Attempt) Searched(passed int) {
	if a != nil {
		a.passed, a.others, a.rejections = passed, 0, a.rejections[:0]
	}
}

// RejectAll records a rejection in PreFilter: no node is evaluated.
func (a *Attempt) RejectAll(status *framework.Status) {
	if a != nil {
		a.rejections = []rejection{{plugin: status.FailedPlugin(), reasons: status.Reasons()}}
	}
}

// RejectNode is Reject, and reads a node only if the attempt has too few names of nodes with this status.
func (a *Attempt) RejectNode(node *framework.NodeInfo, status *framework.Status) {
	if a == nil {
		return
	}
	for i := range a.rejections {
		if r := &a.rejections[i]; r.status == status && len(r.sample) == sampleNodes {
			r.nodes++
			return
		}
	}
	a.Reject(node.Node().Name, status)
}

// Reject records the status with which a node was rejected. It is the hot path for a pod that fits nowhere: most nodes
// have the same status as an earlier one, or equal reasons.
func (a *Attempt) Reject(node string, status *framework.Status) {
	if a == nil {
		return
	}
	for i := range a.rejections {
		r := &a.rejections[i]
		if r.status == status || r.plugin == status.FailedPlugin() && equal(r.reasons, status.Reasons()) {
			r.nodes++
			r.status = status
			if len(r.sample) < sampleNodes {
				r.sample = append(r.sample, node)
			}
			return
		}
	}
	if len(a.rejections) == textsOfAttempt {
		last := &a.rejections[textsOfAttempt-1]
		if last.plugin == "" {
			a.others += last.nodes
		}
		if status.FailedPlugin() == "" {
			a.others++
		}
		last.plugin, last.reasons, last.status = otherPlugins, []string{otherReasons}, nil
		last.nodes++
		return
	}
	a.rejections = append(a.rejections, rejection{
		plugin: status.FailedPlugin(), reasons: status.Reasons(), nodes: 1,
		sample: append(make([]string, 0, sampleNodes), node), status: status,
	})
}

const (
	// otherPlugins and otherReasons replace the texts beyond textsOfAttempt.
	otherPlugins, otherReasons = "…", "other reasons"
	// LeftOut is the reason for nodes that an extender leaves out without one.
	LeftOut = "an extender left it out"
)

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// held reads the scores of the nodes of a cycle, until Rank has copied those that are kept.
type held struct {
	plugins []Plugin
	score   func(plugin, node int) (raw, weighted int64)
	release func()
}

// Hold keeps a function that returns a plugin's score of a node, before it normalizes its scores and with its weight,
// until Rank, which then calls release. plugins is called once per profile.
func (a *Attempt) Hold(plugins func() []Plugin, score func(plugin, node int) (raw, weighted int64), release func()) {
	known, found := a.recorder.plugins[a.profile]
	if !found {
		known = plugins()
		a.recorder.plugins[a.profile] = known
	}
	a.held = held{plugins: known, score: score, release: release}
}

// Rank copies the scores of the best nodes and of the chosen one. totals has all nodes in the order of the lists.
func (a *Attempt) Rank(totals framework.NodeScoreList, chosen string) {
	if a == nil || len(totals) == 0 {
		return
	}
	best := make([]rank, 0, bestNodes+1)
	var outside []rank
	lowest, highest := int64(0), totals[0].Score
	for i := range totals {
		total := totals[i].Score
		if total > highest {
			highest, a.scores.ties = total, 0
		}
		if total == highest {
			a.scores.ties++
		}
		if len(best) == bestNodes && total <= lowest {
			// The chosen node has the highest total, but more nodes have it than are kept.
			if total == highest && totals[i].Name == chosen {
				outside = []rank{{i, chosen, total}}
			}
			continue
		}
		if len(best) < bestNodes {
			best = append(best, rank{})
		}
		at := len(best) - 1
		for ; at > 0 && best[at-1].total < total; at-- {
			best[at] = best[at-1]
		}
		best[at] = rank{i, totals[i].Name, total}
		lowest = best[len(best)-1].total
	}
	a.scores.nodes = append(best, outside...)

	h := a.held
	if h.release == nil {
		return
	}
	a.held = held{}
	a.scores.plugins = h.plugins
	a.scores.values = make([]int64, 0, 2*len(a.scores.nodes)*len(h.plugins))
	for _, node := range a.scores.nodes {
		for i := range h.plugins {
			raw, weighted := h.score(i, node.index)
			a.scores.values = append(a.scores.values, raw, weighted)
		}
	}
	h.release()
}

// size estimates the memory of an attempt in bytes. It counts plugins' texts as if no other attempt shared them.
func (a *Attempt) size() int64 {
	size := 700 + a.trail.size() + len(a.message) + len(a.told.Text) + 40*len(a.scores.nodes) + 8*len(a.scores.values)
	for i := range a.rejections {
		size += 100 + 16*len(a.rejections[i].sample)
		for _, reason := range a.rejections[i].reasons {
			size += 16 + len(reason)
		}
	}
	return int64(size)
}
