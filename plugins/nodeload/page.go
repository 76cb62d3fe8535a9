// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// path is where the status page is.
const path = "/node-load"

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
// node is in it, and with pod=NAMESPACE/NAME what becomes of a pod that waits, in the profile that it asks for.
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
	page, code, err := g.page(query.Get("node"), query.Get("pod"))
	if err != nil {
		http.Error(w, "node load: "+err.Error(), code)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
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

// page makes the page: of one node if it is named, and of a pod that waits, NAMESPACE/NAME, in the profile that it asks
// for. With an error it returns the code of the answer.
func (g *group) page(node, key string) (p *page, code int, err error) {
	p = &page{Profiles: []profilePage{}}
	var pod *v1.Pod
	var profiles []string
	for _, pl := range g.all() {
		if key != "" && pod == nil {
			if pod, code, err = pl.waiting(key); err != nil {
				return nil, code, err
			}
		}
		profiles = append(profiles, pl.profile)
		if pod == nil || pod.Spec.SchedulerName == pl.profile {
			p.Profiles = append(p.Profiles, pl.page(node, pod))
		}
	}
	if key != "" && len(p.Profiles) == 0 {
		return nil, http.StatusNotFound, fmt.Errorf("%s is not of a profile with NodeLoad, which are here: %s; next: see the pod's spec.schedulerName",
			key, strings.Join(profiles, ", "))
	}
	return p, 0, nil
}

// waiting returns a pod that waits for a node.
func (pl *NodeLoad) waiting(key string) (pod *v1.Pod, code int, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil || namespace == "" {
		return nil, http.StatusBadRequest, fmt.Errorf("%q is no pod; next: use pod=NAMESPACE/NAME", key)
	}
	pod, err = pl.pods.Pods(namespace).Get(name)
	switch {
	case err != nil:
		return nil, http.StatusNotFound, fmt.Errorf("the scheduler knows no pod %s; next: kubectl get pod --namespace %s %s", key, namespace, name)
	case pod.Spec.NodeName != "":
		return nil, http.StatusConflict, fmt.Errorf("%s is on %s, and this page is about pods that wait; next: use node=%s",
			key, pod.Spec.NodeName, pod.Spec.NodeName)
	}
	return pod, 0, nil
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
	Pod              *podPage       `json:"pod,omitempty"`
	Nodes            []nodePage     `json:"nodes"`
}

// podPage is what is expected of a pod.
type podPage struct {
	Pod string `json:"pod"`
	// Exempt says that it passes the filter whatever is measured.
	Exempt bool `json:"exempt"`
	// Estimates are in the resources' units, such as cores and bytes.
	Estimates map[string]float64 `json:"estimates"`
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
	// Rejected says why the node is rejected for the pod; Score is that of a node that is not.
	Rejected string `json:"rejected,omitempty"`
	Score    *int64 `json:"score,omitempty"`
}

// loadPage has loads in percent of the capacity.
type loadPage struct {
	Resource   string   `json:"resource"`
	Measured   *float64 `json:"measuredPercent,omitempty"`
	Deviation  *float64 `json:"deviationPercent,omitempty"`
	InFlight   *float64 `json:"inFlightPercent,omitempty"`
	Predicted  *float64 `json:"predictedPercent,omitempty"`
	WithPod    *float64 `json:"withPodPercent,omitempty"`
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Capacity   *float64 `json:"capacity,omitempty"`
	// Missing says why there is no measurement that counts.
	Missing string `json:"missing,omitempty"`
}

// page makes the page of a profile, with one node or all of them, and with what becomes of a pod, if there is one.
func (pl *NodeLoad) page(only string, pod *v1.Pod) profilePage {
	v, now := pl.current(), pl.clock.Now()
	oldest := v.oldestAt(now, pl.maxSampleAge)
	p := profilePage{Profile: pl.profile, Source: pageOfSource(pl.source.Status()), Nodes: []nodePage{}}
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
	pods, loads := pl.all(), map[int][]load{}
	for i, node := range v.nodes {
		loads[i] = v.loadsWithout(i, node)
	}
	v.addAll(pods, loads)
	for i, node := range v.nodes {
		shown := nodePage{Node: node.Name}
		for r := range v.resources {
			shown.Resources = append(shown.Resources, v.pageOfLoad(i, r, &loads[i][r], oldest, now))
		}
		p.Nodes = append(p.Nodes, shown)
	}
	if pod != nil {
		pl.decide(&p, v, pod, pods, loads)
	}
	if only != "" {
		shown := p.Nodes
		p.Nodes = []nodePage{}
		for i := range shown {
			if shown[i].Node == only {
				p.Nodes = append(p.Nodes, shown[i])
			}
		}
	}
	sort.Slice(p.Nodes, func(i, j int) bool { return p.Nodes[i].Node < p.Nodes[j].Node })
	return p
}

// decide adds to the page what becomes of a pod, exactly as in a scheduling cycle. The nodes on it are those of the
// view, in order.
func (pl *NodeLoad) decide(p *profilePage, v *view, pod *v1.Pod, pods []*v1.Pod, loads map[int][]load) {
	c := pl.cycleOf(pod, v)
	p.Pod = &podPage{Pod: pod.Namespace + "/" + pod.Name, Exempt: c.exempt, Estimates: map[string]float64{}}
	for r := range v.resources {
		p.Pod.Estimates[v.resources[r].name] = math.Round(1000*c.estimates[r]) / 1000
	}
	infos := make([]*framework.NodeInfo, len(v.nodes))
	for i, node := range v.nodes {
		infos[i] = framework.NewNodeInfo()
		infos[i].SetNode(node)
	}
	for _, other := range pods {
		if i := v.find(other.Spec.NodeName); i >= 0 {
			infos[i].AddPod(other)
		}
	}
	var passing []*nodePage
	var scores framework.NodeScoreList
	for i := range v.nodes {
		shown := &p.Nodes[i]
		for r := range v.resources {
			if shown.Resources[r].Predicted != nil {
				shown.Resources[r].WithPod = number(100 * loads[i][r].with(c.estimates[r]))
			}
		}
		if _, shown.Rejected = pl.verdict(c, loads[i]); shown.Rejected == "" {
			passing = append(passing, shown)
			scores = append(scores, framework.NodeScore{Score: pl.score(c, infos[i], loads[i])})
		}
	}
	round(scores, pl.shifts(c))
	for i, shown := range passing {
		shown.Score = &scores[i].Score
	}
}

// pageOfLoad shows a resource of a node, without any pod that is to come. An old measurement is shown, and said to be.
func (v *view) pageOfLoad(node, r int, known *load, oldest int64, now time.Time) loadPage {
	resource := &v.resources[r]
	shown := loadPage{Resource: resource.name}
	capacity, has := resource.capacityOf(v.nodes[node])
	if has {
		shown.Capacity = number(capacity)
	}
	sample, missing := v.sample(v.nodes[node].Name, r)
	if missing != measured.Present {
		shown.Missing = missing.String()
		return shown
	}
	switch {
	case sample.At < oldest:
		shown.Missing = measured.TooOld.String()
	case known.at == notMeasured:
		shown.Missing = measured.NoCapacity.String()
	}
	shown.AgeSeconds = number(time.Duration(now.UnixNano() - sample.At).Seconds())
	if known.at != notMeasured {
		shown.Measured = number(100 * known.measured)
		shown.InFlight = number(100 * known.inFlight)
		shown.Predicted = number(100 * known.now())
	}
	if share, ok := resource.share(sample.Deviation, capacity); ok && sample.HasDeviation {
		shown.Deviation = number(100 * share)
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

func pageOfSource(s collector.Status) sourcePage {
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
	columns := "\nNODE\tRESOURCE\tMEASURED\tIN FLIGHT\tPREDICTED\tAGE\tMISSING"
	if p.Pod != nil {
		fmt.Fprintf(w, "\nPod %s is expected to use", p.Pod.Pod)
		for _, r := range p.Resources {
			fmt.Fprintf(w, " %s %s", r.Resource, strconv.FormatFloat(p.Pod.Estimates[r.Resource], 'f', -1, 64))
		}
		if p.Pod.Exempt {
			fmt.Fprint(w, ", and passes the filter whatever is measured")
		}
		fmt.Fprintln(w)
		columns += "\tWITH POD\tVERDICT"
	}
	fmt.Fprintln(w, columns)
	for _, node := range p.Nodes {
		for _, l := range node.Resources {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s", node.Node, l.Resource, percent(l.Measured), percent(l.InFlight), percent(l.Predicted),
				seconds(l.AgeSeconds), word(l.Missing))
			switch {
			case node.Score != nil:
				fmt.Fprintf(w, "\t%s\tscore %d", percent(l.WithPod), *node.Score)
			case p.Pod != nil:
				fmt.Fprintf(w, "\t%s\t%s", percent(l.WithPod), node.Rejected)
			}
			fmt.Fprintln(w)
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
