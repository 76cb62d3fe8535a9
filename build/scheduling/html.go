// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/nextstep"
)

//go:embed templates
var files embed.FS

// style is the style sheet of all pages. It must not contain comments, because html/template removes them, and
// contentPolicy has the hash of the style sheet.
var style = func() string {
	content, err := files.ReadFile("templates/style.css")
	if err != nil {
		panic(err)
	}
	return "\n" + string(content)
}()

// contentPolicy allows a page only its own style sheet, and forms that are sent to its own origin.
var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src 'none'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

// templates are the templates of the pages. html/template escapes all values from the cluster.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ago": ago, "badge": badge, "counted": counted, "join": strings.Join, "lasted": lasted,
	"nodePath": nodePath, "percent": percent, "plugin": plugin, "podPath": podPath, "stamp": stamp, "until": until,
	"live": func() bool { return true }, "style": func() template.CSS { return template.CSS(style) }, "whatIfPath": whatIfPathOf,
}).ParseFS(files, "templates/*.html"))

// saved are the pages for a file: without links, navigation and search, which would lead nowhere.
var saved = template.Must(templates.Clone()).Funcs(template.FuncMap{"live": func() bool { return false }})

// view is the data of a page.
type view struct {
	answer
	Title string
	// Page is its name in the navigation.
	Page string
	// Search, Pod and Manifest are from the request.
	Search, Pod, Manifest string
	// Live is true for a page that is served and can send forms. JSON is then the path of the answer as JSON.
	Live bool
	JSON string
	Now  time.Time
	// Content is the answer.
	Content any
}

// problem is the content of a page without an answer.
type problem struct{ What, Next string }

// newAnswer returns an empty answer of the type that is served at a path; nil if there is none.
func newAnswer(path string) any {
	switch {
	case path == podsPath:
		return new(podList)
	case strings.HasPrefix(path, podsPath+"/"):
		return new(podRecord)
	case path == queuePath:
		return new(queue)
	case path == whatIfPath:
		return new(whatIf)
	}
	return nil
}

// decode parses an answer.
func decode(content []byte, answer any) error {
	if err := json.Unmarshal(content, answer); err != nil {
		return nextstep.With(fmt.Errorf("the scheduler's answer has a format that this version of the plugin does not support: %w", err),
			"use the plugin of the scheduler's release bundle, or the same command with --output json")
	}
	return nil
}

// render writes the page of an answer.
func (v view) render(w io.Writer) error {
	name := ""
	switch content := v.Content.(type) {
	case *podList:
		name, v.answer, v.Page, v.Title = "pods", content.answer, "pods", "Pods"
	case *podRecord:
		name, v.answer, v.Page, v.Title = "pod", content.answer, "pods", content.Namespace+"/"+content.Name
	case *queue:
		name, v.answer, v.Page, v.Title = "queue", content.answer, "queue", "Queue"
	case *whatIf:
		name, v.answer, v.Page, v.Title = "what-if", content.answer, "what-if", "What if"
	case problem:
		name, v.Title, v.JSON = "problem", "No answer", ""
	}
	w = Escaped{w}
	if !v.Live {
		return saved.ExecuteTemplate(w, name, v)
	}
	return templates.ExecuteTemplate(w, name, v)
}

func podPath(namespace, name string) string {
	return podsPath + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// nodePath is the path of the pods whose last result names a node.
func nodePath(name string) string { return podsPath + "?" + url.Values{"search": {name}}.Encode() }

func whatIfPathOf(namespace, name string) string {
	return whatIfPath + "?" + url.Values{"pod": {namespace + "/" + name}}.Encode()
}

// badge returns the CSS class with the colours of a result.
func badge(result string) string {
	switch result {
	case "Bound", "Fits":
		return "good"
	case "Unschedulable", "Error":
		return "bad"
	}
	return "plain"
}

func (p podSummary) waits() bool { return p.Result != "Bound" && p.Result != "Gone" }

// Waiting returns the pending pods.
func (l podList) Waiting() []podSummary {
	return slices.DeleteFunc(slices.Clone(l.Items), func(p podSummary) bool { return !p.waits() })
}

// Others returns the pods that are not pending.
func (l podList) Others() []podSummary {
	return slices.DeleteFunc(slices.Clone(l.Items), podSummary.waits)
}

// HasSamples reports whether any rejection names nodes.
func (d decision) HasSamples() bool {
	return slices.ContainsFunc(d.Rejections, func(r rejection) bool { return len(r.Sample) > 0 })
}

// Highest returns the highest total score.
func (d decision) Highest() (highest int64) {
	for _, node := range d.Scores {
		highest = max(highest, node.Total)
	}
	return highest
}

// Extended reports whether extenders scored any node.
func (d decision) Extended() bool {
	return slices.ContainsFunc(d.Scores, func(s nodeScores) bool { return s.Extenders != 0 })
}

// StepSeconds returns the total duration of all steps.
func (a attempt) StepSeconds() (sum float64) {
	for _, step := range a.Steps {
		sum += step.Seconds
	}
	return sum
}
