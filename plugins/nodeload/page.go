// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"
	"net/http"
	"sort"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
)

// path is the path of the status.
const path = "/node-load"

// group has the plugins of a scheduler, which share a status.
type group struct {
	mu      sync.Mutex
	plugins []*NodeLoad
}

func (g *group) add(pl *NodeLoad) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plugins = append(g.plugins[:len(g.plugins):len(g.plugins)], pl)
	sort.SliceStable(g.plugins, func(i, j int) bool { return g.plugins[i].profile < g.plugins[j].profile })
}

// all returns the plugins in order of their profiles.
func (g *group) all() []*NodeLoad {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.plugins
}

// Pages serves the status of all profiles as JSON; it is the same for each plugin. With node=NAME it contains one node.
// kubectl scheduling load prints it, and kubectl scheduling nodes shows the effect on a pod.
func (pl *NodeLoad) Pages() map[string]http.Handler {
	return map[string]http.Handler{path: answers.Answer(func(r *http.Request) (interface{}, error) {
		answer := page{Profiles: []profilePage{}}
		for _, pl := range pl.group.all() {
			answer.Profiles = append(answer.Profiles, pl.page(r.URL.Query().Get("node")))
		}
		return answer, nil
	})}
}

// page is the status.
type page struct {
	Profiles []profilePage `json:"profiles"`
}

type profilePage struct {
	Profile string     `json:"profile"`
	Source  sourcePage `json:"source"`
	// Snapshot counts the snapshots of the source; 0 before the first.
	Snapshot         uint64         `json:"snapshot"`
	Taken            *time.Time     `json:"taken,omitempty"`
	UnmatchedSeries  int            `json:"unmatchedSeries"`
	UnmatchedExample string         `json:"unmatchedExample,omitempty"`
	Resources        []resourcePage `json:"resources"`
	Nodes            []nodePage     `json:"nodes"`
}

// sourcePage is the state of the refreshes. Times use the scheduler's clock.
type sourcePage struct {
	Source          string     `json:"source"`
	State           string     `json:"state"`
	Since           *time.Time `json:"since,omitempty"`
	Problem         string     `json:"problem,omitempty"`
	Endpoint        string     `json:"endpoint,omitempty"`
	LastSuccess     *time.Time `json:"lastSuccess,omitempty"`
	LastError       string     `json:"lastError,omitempty"`
	LastErrorTime   *time.Time `json:"lastErrorTime,omitempty"`
	DurationSeconds float64    `json:"durationSeconds"`
	IntervalSeconds float64    `json:"intervalSeconds"`
	Warnings        []string   `json:"warnings,omitempty"`
}

type resourcePage struct {
	Resource string `json:"resource"`
	// Fallback reports whether Fresh, the nodes with a fresh measurement, are too few.
	Fresh     int    `json:"fresh"`
	Nodes     int    `json:"nodes"`
	Fallback  bool   `json:"fallback"`
	Threshold *int64 `json:"thresholdPercent,omitempty"`
}

type nodePage struct {
	Node      string     `json:"node"`
	Resources []loadPage `json:"resources"`
}

// loadPage has the loads of a node in percent of its capacity.
type loadPage struct {
	Resource   string   `json:"resource"`
	Measured   *float64 `json:"measuredPercent,omitempty"`
	Deviation  *float64 `json:"deviationPercent,omitempty"`
	InFlight   *float64 `json:"inFlightPercent,omitempty"`
	Predicted  *float64 `json:"predictedPercent,omitempty"`
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Capacity   *float64 `json:"capacity,omitempty"`
	// Missing is the reason why no measurement counts.
	Missing string `json:"missing,omitempty"`
}

// page returns the status of a profile, with one node or, without a name, all of them.
func (pl *NodeLoad) page(only string) profilePage {
	v, now := pl.current(), pl.clock.Now()
	oldest := v.snapshot.OldestAt(now, pl.maxSampleAge)
	p := profilePage{Profile: pl.profile, Source: pageOfSource(pl.source.Status()), Nodes: []nodePage{}}
	if v.snapshot != nil {
		p.Snapshot, p.Taken = v.snapshot.ID, moment(v.snapshot.Taken)
		p.UnmatchedSeries, p.UnmatchedExample = v.snapshot.Unmatched, v.snapshot.UnmatchedExample
	}
	for r := range v.resources {
		shown := resourcePage{
			Resource: v.resources[r].name, Fresh: v.fresh(r, oldest), Nodes: v.having[r], Fallback: v.blind(r, oldest, int(*pl.args.MinFreshNodesPercent)),
		}
		if v.resources[r].filters {
			shown.Threshold = &v.resources[r].thresholdPercent
		}
		p.Resources = append(p.Resources, shown)
	}
	predictions := map[int]*prediction{}
	for i, node := range v.nodes {
		if only == "" || only == node.Name {
			predictions[i] = v.withoutPods(i, node)
		}
	}
	v.addAll(pl.allPods(), predictions)
	for i, of := range predictions {
		shown := nodePage{Node: v.nodes[i].Name}
		for r := range v.resources {
			shown.Resources = append(shown.Resources, v.pageOfLoad(i, r, &of.loads[r], oldest, now))
		}
		p.Nodes = append(p.Nodes, shown)
	}
	sort.Slice(p.Nodes, func(i, j int) bool { return p.Nodes[i].Node < p.Nodes[j].Node })
	return p
}

// pageOfLoad returns the load of a node for a resource. An old measurement is included, and marked as such.
func (m *measurements) pageOfLoad(node, r int, l *load, oldest int64, now time.Time) loadPage {
	resource := &m.resources[r]
	shown := loadPage{Resource: resource.name}
	capacity, has := resource.capacity.Of(m.nodes[node])
	if has {
		shown.Capacity = number(capacity)
	}
	sample, missing := m.sample(m.nodes[node].Name, r)
	if missing != collector.Present {
		shown.Missing = missing.String()
		return shown
	}
	switch {
	case sample.At < oldest:
		shown.Missing = collector.TooOld.String()
	case l.at == notMeasured:
		shown.Missing = collector.NoCapacity.String()
	}
	shown.AgeSeconds = number(time.Duration(now.UnixNano() - sample.At).Seconds())
	if l.at != notMeasured {
		shown.Measured = number(100 * l.measured)
		shown.InFlight = number(100 * l.inFlight)
		shown.Predicted = number(100 * l.now())
	}
	if share, ok := resource.share(sample.Deviation, capacity); ok && sample.HasDeviation {
		shown.Deviation = number(100 * share)
	}
	return shown
}

// number returns a value rounded to thousandths; nil if JSON has no such number.
func number(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	value = math.Round(1000*value) / 1000
	return &value
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

func pageOfSource(s collector.Status) sourcePage {
	return sourcePage{
		Source: s.Source, State: fmt.Sprint(s.State), Since: moment(s.Since), Problem: s.Problem, Endpoint: s.Endpoint,
		LastSuccess: moment(s.LastSuccess), LastError: s.LastError, LastErrorTime: moment(s.LastErrorTime),
		DurationSeconds: s.Duration.Seconds(), IntervalSeconds: s.Interval.Seconds(), Warnings: s.Warnings,
	}
}
