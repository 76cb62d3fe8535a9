// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sort"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// path is where the status page is.
const path = "/node-load"

type sourceStatus = collector.Status

// group are the plugins of a scheduler, which share a status page.
type group struct {
	mu      sync.Mutex
	plugins []*NodeLoad
}

func (g *group) add(pl *NodeLoad) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plugins = append(g.plugins, pl)
}

func (g *group) remove(pl *NodeLoad) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var left []*NodeLoad
	for _, other := range g.plugins {
		if other != pl {
			left = append(left, other)
		}
	}
	g.plugins = left
}

// all returns the plugins in order of their profiles.
func (g *group) all() []*NodeLoad {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := append([]*NodeLoad(nil), g.plugins...)
	sort.SliceStable(all, func(i, j int) bool { return all[i].profile < all[j].profile })
	return all
}

// Pages returns the status page, which shows all profiles whichever plugin is asked for it.
func (pl *NodeLoad) Pages() map[string]http.Handler {
	return map[string]http.Handler{path: pl.group}
}

// ServeHTTP answers with the state of all profiles, as plain text or, if asked for, as JSON. With node=NAME only that
// node is in it.
func (g *group) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "node load: this page can only be read; next: use GET", http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	format := query.Get("format")
	if format == "" && strings.Contains(r.Header.Get("Accept"), "application/json") {
		format = "json"
	}
	if format != "" && format != "json" && format != "text" {
		http.Error(w, "node load: unknown format; next: use format=json or format=text", http.StatusBadRequest)
		return
	}
	page := pageOf(g.all(), query.Get("node"))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	var err error
	if format == "json" {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(page)
	} else {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		err = page.write(w)
	}
	if err != nil {
		klog.V(4).InfoS("Status page was not sent", "plugin", Name, "err", err)
	}
}

// page is what the status page says.
type page struct {
	Profiles []profilePage `json:"profiles"`
}

type profilePage struct {
	Profile string     `json:"profile"`
	Source  sourcePage `json:"source"`
	// Snapshot is the number of the snapshot; 0 before the first.
	Snapshot         uint64         `json:"snapshot"`
	Taken            *time.Time     `json:"taken,omitempty"`
	UnmatchedSeries  int            `json:"unmatchedSeries"`
	UnmatchedExample string         `json:"unmatchedExample,omitempty"`
	Resources        []resourcePage `json:"resources"`
	Nodes            []nodePage     `json:"nodes"`
}

// sourcePage is how the refreshes go. Times are those of the scheduler's clock.
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
	Slow            bool       `json:"slow"`
	Warnings        []string   `json:"warnings,omitempty"`
}

type resourcePage struct {
	Resource string `json:"resource"`
	// Fresh of Nodes have a measurement that is not too old; Fallback says that these are too few.
	Fresh     int    `json:"fresh"`
	Nodes     int    `json:"nodes"`
	Fallback  bool   `json:"fallback"`
	Threshold *int64 `json:"thresholdPercent,omitempty"`
}

type nodePage struct {
	Node      string     `json:"node"`
	Resources []loadPage `json:"resources"`
}

// loadPage has loads in percent of the capacity.
type loadPage struct {
	Resource   string   `json:"resource"`
	Measured   *float64 `json:"measuredPercent,omitempty"`
	Deviation  *float64 `json:"deviationPercent,omitempty"`
	InFlight   *float64 `json:"inFlightPercent,omitempty"`
	Predicted  *float64 `json:"predictedPercent,omitempty"`
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Capacity   *float64 `json:"capacity,omitempty"`
	// Missing says why there is no measurement that counts.
	Missing string `json:"missing,omitempty"`
}

// pageOf makes the page of some plugins, with one node or, if its name is empty, with all.
func pageOf(plugins []*NodeLoad, node string) *page {
	p := &page{Profiles: []profilePage{}}
	for _, pl := range plugins {
		p.Profiles = append(p.Profiles, pl.page(node))
	}
	return p
}

func (pl *NodeLoad) page(only string) profilePage {
	v, now := pl.current(), pl.clock.Now()
	oldest := v.oldestAt(now, pl.maxSampleAge)
	p := profilePage{Profile: pl.profile, Source: pageOfSource(pl.source.status()), Nodes: []nodePage{}}
	if v.snapshot != nil {
		p.Snapshot, p.Taken = v.snapshot.ID, moment(v.snapshot.Taken)
		p.UnmatchedSeries, p.UnmatchedExample = v.snapshot.Unmatched, v.snapshot.UnmatchedExample
	}
	for r := range v.resources {
		shown := resourcePage{
			Resource: v.resources[r].name, Fresh: v.fresh(r, oldest), Nodes: v.having[r], Fallback: v.blind(r, oldest, pl.minFreshPercent),
		}
		if v.resources[r].filters {
			shown.Threshold = &v.resources[r].thresholdPercent
		}
		p.Resources = append(p.Resources, shown)
	}
	inFlight := make([]float64, len(v.nodes)*len(v.resources))
	v.sumInFlight(pl.all(), func(node int) bool { return only == "" || v.nodes[node].Name == only }, inFlight)
	for i, node := range v.nodes {
		if only != "" && node.Name != only {
			continue
		}
		shown := nodePage{Node: node.Name}
		for r := range v.resources {
			shown.Resources = append(shown.Resources, v.pageOfLoad(i, r, inFlight[i*len(v.resources)+r], oldest, now))
		}
		p.Nodes = append(p.Nodes, shown)
	}
	sort.Slice(p.Nodes, func(i, j int) bool { return p.Nodes[i].Node < p.Nodes[j].Node })
	return p
}

// pageOfLoad shows a resource of a node, without any pod that is to come. An old measurement is shown, and said to be.
func (v *view) pageOfLoad(node, r int, inFlight float64, oldest int64, now time.Time) loadPage {
	resource := &v.resources[r]
	known := v.measured(node, r, v.nodes[node])
	shown := loadPage{Resource: resource.name}
	if known.perUnit > 0 {
		shown.Capacity = number(1 / known.perUnit)
	}
	missing := v.missing(node, r, oldest)
	if missing == measured.Present && known.at == notMeasured {
		missing = measured.NoCapacity
	}
	shown.Missing = missing.String()
	if missing != measured.Present && missing != measured.TooOld {
		return shown
	}
	sample, _ := resource.of(v.samples[node])
	shown.AgeSeconds = number(age(sample.At, now).Seconds())
	if known.at != notMeasured {
		shown.Measured = number(100 * known.measured)
		shown.InFlight = number(100 * inFlight * known.perUnit)
		shown.Predicted = number(100 * known.with(inFlight))
	}
	if sample.HasDeviation {
		capacity := 0.0
		if known.perUnit > 0 {
			capacity = 1 / known.perUnit
		}
		if share, ok := resource.share(sample.Deviation, capacity); ok {
			shown.Deviation = number(100 * share)
		}
	}
	return shown
}

// number rounds to thousandths, and leaves out what JSON cannot say.
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

func pageOfSource(s sourceStatus) sourcePage {
	return sourcePage{
		Source: s.Source, State: fmt.Sprint(s.State), Since: moment(s.Since), Problem: s.Problem, Endpoint: s.Endpoint,
		LastSuccess: moment(s.LastSuccess), LastError: s.LastError, LastErrorTime: moment(s.LastErrorTime),
		DurationSeconds: s.Duration.Seconds(), IntervalSeconds: s.Interval.Seconds(), Slow: s.Slow, Warnings: s.Warnings,
	}
}

// write writes the page for people.
func (p *page) write(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	if len(p.Profiles) == 0 {
		fmt.Fprintln(w, "No profile enables NodeLoad.")
	}
	for i := range p.Profiles {
		p.Profiles[i].write(w)
	}
	return w.Flush()
}

func (p *profilePage) write(w io.Writer) {
	fmt.Fprintf(w, "Profile %s, source %s: %s", p.Profile, p.Source.Source, p.Source.State)
	if p.Source.Since != nil {
		fmt.Fprintf(w, " since %s", p.Source.Since.Format(time.RFC3339))
	}
	fmt.Fprintln(w)
	if p.Source.Problem != "" {
		fmt.Fprintf(w, "Problem: %s\n", p.Source.Problem)
	}
	fmt.Fprintf(w, "Endpoint %s, a refresh every %gs", word(p.Source.Endpoint), p.Source.IntervalSeconds)
	if p.Source.Slow {
		fmt.Fprint(w, " (slowed down: no scheduling cycle needs them)")
	}
	fmt.Fprintln(w)
	if p.Taken != nil {
		fmt.Fprintf(w, "Snapshot %d of %s, asked for in %.3fs\n", p.Snapshot, p.Taken.Format(time.RFC3339), p.Source.DurationSeconds)
	} else {
		fmt.Fprintln(w, "No snapshot yet")
	}
	if p.Source.LastErrorTime != nil {
		fmt.Fprintf(w, "Last error at %s: %s\n", p.Source.LastErrorTime.Format(time.RFC3339), p.Source.LastError)
	}
	for _, warning := range p.Source.Warnings {
		fmt.Fprintf(w, "Warning: %s\n", warning)
	}
	if p.UnmatchedSeries > 0 {
		fmt.Fprintf(w, "%d series are about no node, such as %q\n", p.UnmatchedSeries, p.UnmatchedExample)
	}
	fmt.Fprintln(w, "\nRESOURCE\tFRESH\tNODES\tTHRESHOLD\tUSED")
	for _, r := range p.Resources {
		threshold, used := "-", "yes"
		if r.Threshold != nil {
			threshold = fmt.Sprintf("%d %%", *r.Threshold)
		}
		if r.Fallback {
			used = "no: too few are fresh"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", r.Resource, r.Fresh, r.Nodes, threshold, used)
	}
	fmt.Fprintln(w, "\nNODE\tRESOURCE\tMEASURED\tIN FLIGHT\tPREDICTED\tAGE\tMISSING")
	for _, node := range p.Nodes {
		for _, l := range node.Resources {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", node.Node, l.Resource, percent(l.Measured), percent(l.InFlight), percent(l.Predicted),
				seconds(l.AgeSeconds), word(l.Missing))
		}
	}
	fmt.Fprintln(w)
}

func percent(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", *value)
}

func seconds(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.0fs", *value)
}

func word(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
