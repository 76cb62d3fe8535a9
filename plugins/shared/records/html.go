// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// wantsHTML reports whether the response should be HTML: the request has output=html, or a browser's Accept header.
func wantsHTML(request *http.Request) bool {
	switch request.URL.Query().Get("output") {
	case "html":
		return true
	case "json":
		return false
	}
	const html = "text/html"
	return goautoneg.Negotiate(request.Header.Get("Accept"), []string{"application/json", html}) == html
}

// encode returns an answer as JSON or HTML, as requested, and sets the response headers. The schema is always JSON.
func encode(header http.Header, request *http.Request, answer interface{}) ([]byte, error) {
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	header.Set("X-Content-Type-Options", "nosniff")
	answer = search(answer, request.URL.Query().Get("search"))
	if _, schema := answer.(*spec.Swagger); schema || !wantsHTML(request) {
		header.Set("Content-Type", "application/json")
		content, err := json.Marshal(answer)
		return append(content, '\n'), err
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	var page bytes.Buffer
	err := render(&page, answer, request)
	return page.Bytes(), err
}

// sendError sends an error, as HTML or as text.
func sendError(w http.ResponseWriter, request *http.Request, code int, why string) {
	if wantsHTML(request) {
		if content, err := encode(w.Header(), request, problem{Text: why}); err == nil {
			w.WriteHeader(code)
			_, _ = w.Write(content)
			return
		}
	}
	http.Error(w, why, code)
}

// problem is the content of an error page.
type problem struct{ Text string }

// wantsForm reports whether a request is for the empty dry-run form.
func wantsForm(request *http.Request) bool {
	return request.Method != http.MethodPost && request.URL.Query().Get("pod") == "" && wantsHTML(request)
}

// fromElsewhere reports whether another site made the browser send this request. Reading records is harmless, because
// the site does not get the answer; a dry run costs scheduling time.
func fromElsewhere(request *http.Request) bool {
	site := request.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// manifest returns the manifest in the body of a POST: the whole body, or the form field of that name, which the page
// shows again. The Content-Type is no help: curl sends everything as a form.
func manifest(request *http.Request, body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("manifest=")) {
		return body
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return body
	}
	request.PostForm = form
	return []byte(form.Get("manifest"))
}

// search keeps the pods of a list that contain all words of a text in their names, node, result or summary.
func search(answer interface{}, text string) interface{} {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return answer
	}
	match := func(texts ...string) bool {
		all := strings.ToLower(strings.Join(texts, "\n"))
		for _, word := range words {
			if !strings.Contains(all, word) {
				return false
			}
		}
		return true
	}
	switch list := answer.(type) {
	case PodList:
		items := []PodSummary{}
		for _, p := range list.Items {
			if match(p.Namespace+"/"+p.Name, p.Node, p.NominatedNode, string(p.Result), p.Summary) {
				items = append(items, p)
			}
		}
		list.Items = items
		return list
	case Queue:
		items := []QueuedPod{}
		for _, p := range list.Items {
			if match(append(p.WaitsFor, p.Namespace+"/"+p.Name, p.Profile, p.NominatedNode, string(p.Where), p.Summary)...) {
				items = append(items, p)
			}
		}
		list.Items = items
		return list
	}
	return answer
}

// view is the data of a page.
type view struct {
	Answer
	Title string
	// Page is its name in the navigation.
	Page string
	// Search, Pod and Manifest are the request's inputs.
	Search, Pod, Manifest string
	// JSON is the URL of the same answer as JSON; empty after a POST.
	JSON string
	Now  time.Time
	// Content is the answer.
	Content interface{}
}

// render writes an answer as HTML.
func render(w io.Writer, answer interface{}, request *http.Request) error {
	query := request.URL.Query()
	v := view{Search: query.Get("search"), Pod: query.Get("pod"), Manifest: request.PostForm.Get("manifest"), Now: time.Now(), Content: answer}
	if request.Method != http.MethodPost {
		query.Set("output", "json")
		v.JSON = request.URL.EscapedPath() + "?" + query.Encode()
	}
	name := ""
	switch answer := answer.(type) {
	case PodList:
		name, v.Answer, v.Page, v.Title = "pods", answer.Answer, "pods", "Pods"
	case PodRecord:
		name, v.Answer, v.Page, v.Title = "pod", answer.Answer, "pods", answer.Namespace+"/"+answer.Name
	case NodeRecord:
		name, v.Answer, v.Title = "node", answer.Answer, "Node "+answer.Name
	case Queue:
		name, v.Answer, v.Page, v.Title = "queue", answer.Answer, "queue", "Queue"
	case WhatIf:
		name, v.Answer, v.Page, v.Title = "what-if", answer.Answer, "what-if", "What if"
		if answer.Result == "" {
			v.JSON = ""
		}
	case problem:
		name, v.JSON, v.Title = "problem", "", "No answer"
		if request.URL.Path == WhatIfPath {
			v.Page = "what-if"
		}
	default:
		return fmt.Errorf("there is no page for a %T", answer)
	}
	return pages.ExecuteTemplate(w, name, v)
}

var (
	pages = template.Must(template.New("").Funcs(template.FuncMap{
		"ago": ago, "badge": badge, "chart": chart, "clock": clock, "funnel": funnel, "join": strings.Join,
		"lasted": lasted, "named": named, "nodePath": nodePath, "percent": percent, "podPath": podPath, "samples": samples,
		"scoreTable": scoreTable, "stamp": stamp, "stepSeconds": stepSeconds, "until": until, "style": func() template.CSS { return style },
		"counted": counted, "thatWait": thatWait, "whatIfPath": whatIfPath,
	}).Parse(pageTemplates))
	// contentPolicy allows a page only its own style, and forms only to this server.
	contentPolicy = "default-src 'none'; style-src 'sha256-" + hash(style) + "'; img-src 'none'; form-action 'self'; " +
		"frame-ancestors 'none'; base-uri 'none'"
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func podPath(namespace, name string) string {
	return PodsPath + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

func nodePath(name string) string { return NodesPath + "/" + url.PathEscape(name) }

func whatIfPath(namespace, name string) string {
	return WhatIfPath + "?" + url.Values{"pod": {namespace + "/" + name}}.Encode()
}

// thatWait returns the pending pods, or all others.
func thatWait(items []PodSummary, wait bool) []PodSummary {
	var some []PodSummary
	for _, item := range items {
		if wait == (item.Result != Bound && item.Result != Gone) {
			some = append(some, item)
		}
	}
	return some
}

// badge returns the CSS class for a result.
func badge(result Result) string {
	switch result {
	case Bound, Fits:
		return "good"
	case Unschedulable, Failed:
		return "bad"
	}
	return "plain"
}

// named returns the display name of a plugin.
func named(plugin string) string {
	switch plugin {
	case "":
		return "an extender"
	case otherPlugins:
		return "other plugins"
	}
	return plugin
}

// lasted formats seconds in a suitable unit.
func lasted(seconds float64) string {
	for _, unit := range []struct {
		below, factor float64
		format        string
	}{
		{0.0005, 1e6, "%.0f µs"}, {0.9995, 1e3, "%.0f ms"}, {9.95, 1, "%.1f s"}, {120, 1, "%.0f s"}, {2 * 3600, 1.0 / 60, "%.0f min"},
		{48 * 3600, 1.0 / 3600, "%.0f h"},
	} {
		if seconds < unit.below {
			return fmt.Sprintf(unit.format, seconds*unit.factor)
		}
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}

// ago formats the time since then.
func ago(now, then time.Time) string {
	if !then.Before(now) {
		return "now"
	}
	return lasted(now.Sub(then).Seconds()) + " ago"
}

// until formats the time until then.
func until(now, then time.Time) string {
	if !then.After(now) {
		return "now"
	}
	return "in " + lasted(then.Sub(now).Seconds())
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }
func clock(t time.Time) string { return t.UTC().Format("15:04") + " UTC" }

// percent formats a number as a percentage of another one, from 0 to 100. It does not round nonzero numbers to 0.
func percent(number, of interface{}) string {
	n, err := strconv.ParseFloat(fmt.Sprint(number), 64)
	all, _ := strconv.ParseFloat(fmt.Sprint(of), 64)
	switch {
	case err != nil || n <= 0 || all <= 0:
		return "0"
	case n >= all:
		return "100"
	case n < all/200:
		return "0.5"
	}
	return strconv.FormatFloat(100*n/all, 'f', 2, 64)
}

// samples reports whether any rejection names nodes.
func samples(rejections []RejectionRecord) bool {
	for _, rejection := range rejections {
		if len(rejection.Sample) > 0 {
			return true
		}
	}
	return false
}

// stepSeconds returns the total duration of all steps.
func stepSeconds(steps []StepRecord) float64 {
	sum := 0.0
	for _, step := range steps {
		sum += step.Seconds
	}
	return sum
}

// stage is a row of the funnel: a text above a bar, whose edges may be the rejected part.
type stage struct {
	Text, Class string
	// From and Width describe the bar, KeptFrom and Kept its middle, in percent; Top and Base are the positions of the
	// bar and the text, in em.
	From, Width, KeptFrom, Kept string
	Top, Base                   float64
}

// picture is the funnel of a decision, from all nodes to the chosen one.
type picture struct {
	Stages []stage
	Height float64
	// Words describe the same in text.
	Words string
}

// rejectingPlugins is the number of plugins with their own row in the funnel.
const rejectingPlugins = 6

func funnel(d Decision) picture {
	var p picture
	var words []string
	add := func(class, text string, bar, kept int) {
		middle := func(n int) (string, string) {
			width := percent(n, d.Nodes)
			w, _ := strconv.ParseFloat(width, 64)
			return strconv.FormatFloat((100-w)/2, 'f', 2, 64), width
		}
		s := stage{Text: cut(text, 44), Class: class, Top: p.Height + 1.35, Base: p.Height + 1}
		s.From, s.Width = middle(bar)
		s.KeptFrom, s.Kept = middle(kept)
		p.Stages, p.Height = append(p.Stages, s), p.Height+2.5
		words = append(words, text)
	}
	add("kept", counted(d.Nodes, "node")+" in the cluster", d.Nodes, d.Nodes)
	if d.Evaluated < d.Nodes {
		add("kept", fmt.Sprint(d.Evaluated)+" looked at", d.Evaluated, d.Evaluated)
	}

	// One row per plugin, in descending order of rejections.
	var plugins []RejectionRecord
	rejected := 0
	for _, rejection := range d.Rejections {
		rejected += rejection.Nodes
		at := 0
		for at < len(plugins) && plugins[at].Plugin != rejection.Plugin {
			at++
		}
		if at == len(plugins) {
			plugins = append(plugins, RejectionRecord{Plugin: rejection.Plugin})
		}
		plugins[at].Nodes += rejection.Nodes
	}
	sort.SliceStable(plugins, func(i, j int) bool { return plugins[i].Nodes > plugins[j].Nodes })
	for len(plugins) > rejectingPlugins {
		last := len(plugins) - 1
		plugins[last-1] = RejectionRecord{Plugin: otherPlugins, Nodes: plugins[last-1].Nodes + plugins[last].Nodes}
		plugins = plugins[:last]
	}
	// If each node is rejected only once, each row begins with the nodes that the row above leaves.
	once, left := rejected+d.Feasible <= d.Evaluated, d.Evaluated
	for _, plugin := range plugins {
		text := fmt.Sprint(cut(named(plugin.Plugin), 28), " rejects ", plugin.Nodes)
		if plugin.Plugin == otherPlugins {
			text = fmt.Sprint("other plugins reject ", plugin.Nodes)
		}
		add("rejected", text, left, left-plugin.Nodes)
		if once {
			left -= plugin.Nodes
		}
	}

	fit := " nodes fit"
	if d.Feasible == 1 {
		fit = " node fits"
	}
	add("kept", fmt.Sprint(d.Feasible)+fit, d.Feasible, d.Feasible)
	if d.Feasible > 1 && len(d.Scores) > 0 {
		add("kept", fmt.Sprint(d.Feasible)+" scored", d.Feasible, d.Feasible)
	}
	if d.Node != "" {
		text := "chosen: " + d.Node
		if d.Ties > 1 {
			text = fmt.Sprintf("chosen of %d: %s", d.Ties, d.Node)
		}
		add("chosen", text, 1, 1)
	}
	p.Words = strings.Join(words, "; ")
	return p
}

// cut shortens a text for a picture; the full text is next to it.
func cut(text string, length int) string {
	if letters := []rune(text); len(letters) > length {
		return string(letters[:length-1]) + "…"
	}
	return text
}

// scoresOfNodes has the scores of the best nodes, and the maximum for the bars of their table.
type scoresOfNodes struct {
	Decision
	Highest   int64
	Extenders bool
}

func scoreTable(d Decision) scoresOfNodes {
	table := scoresOfNodes{Decision: d}
	for _, node := range d.Scores {
		if node.Total > table.Highest {
			table.Highest = node.Total
		}
		table.Extenders = table.Extenders || node.Extenders != 0
	}
	return table
}

// lengths is the history of one part of the queue.
type lengths struct {
	Where Where
	// About describes what its pods wait for.
	About     string
	Now, Most int
	Words     string
	// Line has the points of its curve, in a picture of 1,000 by 100.
	Line string
}

// history is the queue's history. Rows are some of its lengths, as numbers.
type history struct {
	From, To time.Time
	Parts    []lengths
	Rows     []QueueLengths
}

// historyRows is the approximate number of rows of numbers.
const historyRows = 12

func chart(q Queue) history {
	var h history
	if !q.Lengths.Time.IsZero() {
		q.History = append(q.History[:len(q.History):len(q.History)], q.Lengths)
	}
	if len(q.History) == 0 {
		return h
	}
	last := len(q.History) - 1
	h.From, h.To = q.History[0].Time, q.History[last].Time
	for i := last; i >= 0; i -= 1 + last/historyRows {
		h.Rows = append(h.Rows, q.History[i])
	}
	for _, part := range []struct {
		where Where
		about string
		of    func(QueueLengths) int
	}{
		{InActive, "are tried next", func(l QueueLengths) int { return l.Active }},
		{InBackoff, "failed not long ago, and are tried again when their backoff ends", func(l QueueLengths) int { return l.Backoff }},
		{InUnschedulable, "wait for an event that may help, or for some minutes", func(l QueueLengths) int { return l.Unschedulable }},
		{InPermit, "have a node, and wait for Permit plugins", func(l QueueLengths) int { return l.Permit }},
	} {
		p := lengths{Where: part.where, About: part.about, Now: part.of(q.History[last])}
		most := h.From
		for _, l := range q.History {
			if n := part.of(l); n > p.Most {
				p.Most, most = n, l.Time
			}
		}
		points := make([]string, 0, len(q.History)+3)
		points = append(points, "0,100")
		for i, l := range q.History {
			x, y := 0.0, 100.0
			if span := h.To.Sub(h.From); span > 0 {
				x = 1000 * float64(l.Time.Sub(h.From)) / float64(span)
			} else if i == last {
				x = 1000
			}
			if p.Most > 0 {
				y = 100 - 100*float64(part.of(l))/float64(p.Most)
			}
			points = append(points, strconv.FormatFloat(x, 'f', 1, 64)+","+strconv.FormatFloat(y, 'f', 1, 64))
		}
		p.Line = strings.Join(append(points, "1000,100"), " ")
		p.Words = fmt.Sprintf("%d at %s, at most %d at %s, %d at %s", part.of(q.History[0]), clock(h.From), p.Most, clock(most), p.Now, clock(h.To))
		h.Parts = append(h.Parts, p)
	}
	return h
}
