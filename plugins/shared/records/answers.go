// SPDX-License-Identifier: Apache-2.0

package records

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"
)

// SetConfiguration sets the configuration whose hash is in all answers.
func (r *Recorder) SetConfiguration(configuration interface{}) {
	if r == nil {
		return
	}
	// Without an encoding there is no hash.
	if content, err := json.Marshal(configuration); err == nil {
		r.Sources.Configuration = fmt.Sprintf("%x", sha256.Sum256(content))[:12]
	}
}

// SetLeader sets the holder of the lease.
func (r *Recorder) SetLeader(identity string) {
	if r != nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.leader = identity
	}
}

// List returns the pods that have records.
func (r *Recorder) List() PodList {
	list := PodList{Items: []PodSummary{}}
	for _, kept := range r.copy(func(*pod) bool { return true }) {
		list.Items = append(list.Items, r.summary(kept))
	}
	waits := func(item PodSummary) bool { return item.Result != Bound && item.Result != Gone }
	sort.SliceStable(list.Items, func(i, j int) bool { return waits(list.Items[i]) && !waits(list.Items[j]) })
	return list
}

// Get returns the records of a pod.
func (r *Recorder) Get(namespace, name string) (PodRecord, bool) {
	found := r.copy(func(p *pod) bool { return p.namespace == namespace && p.name == name })
	if len(found) == 0 {
		return PodRecord{}, false
	}
	record := PodRecord{PodSummary: r.summary(found[0])}
	if record.Result == Binding {
		record.Permit = r.permit(found[0])
	}
	for i := len(found[0].attempts) - 1; i >= 0; i-- {
		record.Attempts = append(record.Attempts, found[0].attempts[i].record())
	}
	return record, true
}

// last returns the latest attempt.
func (p *pod) last() *Attempt { return p.attempts[len(p.attempts)-1] }

// copy returns copies of the pods for which wanted returns true, those with the latest attempts first.
func (r *Recorder) copy(wanted func(*pod) bool) []pod {
	var pods []pod
	r.mutex.Lock()
	for _, list := range []*list.List{r.waiting, r.done} {
		for element := list.Front(); element != nil; element = element.Next() {
			if p := element.Value.(*pod); wanted(p) {
				copied := *p
				copied.attempts = append([]*Attempt(nil), p.attempts...)
				pods = append(pods, copied)
			}
		}
	}
	r.mutex.Unlock()
	sort.SliceStable(pods, func(i, j int) bool { return pods[i].last().began.After(pods[j].last().began) })
	return pods
}

// search removes the pods from a list whose texts do not contain all words of text.
func (l *PodList) search(text string) {
	items := []PodSummary{}
	for _, p := range l.Items {
		if hasWords(text, p.Namespace+"/"+p.Name, p.Node, p.NominatedNode, string(p.Result), p.Summary) {
			items = append(items, p)
		}
	}
	l.Items = items
}

// search removes the pods from a queue whose texts do not contain all words of text.
func (q *Queue) search(text string) {
	items := []QueuedPod{}
	for _, p := range q.Items {
		plugins := strings.Join(p.WaitsFor, "\n")
		if hasWords(text, p.Namespace+"/"+p.Name, p.Profile, p.NominatedNode, string(p.Where), p.Summary, plugins) {
			items = append(items, p)
		}
	}
	q.Items = items
}

// hasWords reports whether texts contain all words of text, ignoring case.
func hasWords(text string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// Decision returns how the attempt rejected and scored nodes.
func (a *Attempt) Decision() Decision {
	decision := Decision{
		Nodes: a.nodes, Evaluated: a.evaluated, Feasible: a.feasible, Node: a.node, Ties: a.scores.ties,
		Rejections: a.rejectionRecords(), Scores: a.scores.records(),
	}
	a.trail.decide(&decision)
	if a.told.Text != "" {
		decision.Words = append(decision.Words, a.told)
	}
	return decision
}

// rejectionRecords returns the rejections as they are served, those of most nodes first.
func (a *Attempt) rejectionRecords() []RejectionRecord {
	var records []RejectionRecord
	for _, r := range a.rejections {
		records = append(records, RejectionRecord{Plugin: r.plugin, Reasons: r.reasons, Nodes: r.nodes, Sample: r.sample})
	}
	sort.SliceStable(records, func(i, j int) bool { return records[i].Nodes > records[j].Nodes })
	return records
}

// records returns the scores as they are served.
func (s *scores) records() []NodeScores {
	var records []NodeScores
	width := 2 * len(s.plugins)
	for i, node := range s.nodes {
		scores := NodeScores{Node: node.name, Total: node.total, Extenders: node.total}
		for j, plugin := range s.plugins {
			raw, weighted := s.values[i*width+2*j], s.values[i*width+2*j+1]
			scores.Extenders -= weighted
			scores.Plugins = append(scores.Plugins, PluginScore{
				Name: plugin.Name, Raw: raw, Normalized: weighted / plugin.Weight, Weight: plugin.Weight, Weighted: weighted,
			})
		}
		if width == 0 {
			scores.Extenders = 0
		}
		records = append(records, scores)
	}
	return records
}

func (a *Attempt) record() AttemptRecord {
	seconds := func(from, to time.Time) float64 {
		if from.IsZero() || to.Before(from) {
			return 0
		}
		return to.Sub(from).Seconds()
	}
	return AttemptRecord{
		Time: a.began, Attempt: a.number, Profile: a.profile,
		QueuedSeconds: seconds(a.queued, a.began), SinceFirstSeconds: seconds(a.first, a.began),
		CycleSeconds: a.took.Seconds(), ToEndSeconds: seconds(a.began, a.ended),
		Result: a.result(), Summary: a.summary(), Error: a.message,
		WokenBy: a.wokenBy, Steps: a.trail.records(), Decision: a.Decision(),
	}
}
