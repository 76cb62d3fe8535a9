// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"encoding/json"
	"fmt"
	"io/ioutil"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	v1 "k8s.io/api/core/v1"
)

// fill sets all fields of a struct: texts to one text, numbers to 3, lists to two elements.
func fill(value reflect.Value, text string) {
	if value.Type() == reflect.TypeOf(time.Time{}) {
		value.Set(reflect.ValueOf(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)))
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := 0; i < value.NumField(); i++ {
			fill(value.Field(i), text)
		}
	case reflect.Ptr:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), text)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		fill(value.Index(0), text)
		fill(value.Index(1), text)
	case reflect.String:
		value.SetString(text)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Float64:
		value.SetFloat(3)
	default:
		value.SetInt(3)
	}
}

// kinds returns an empty answer of each kind.
func kinds() []interface{} {
	kinds := []interface{}{problem{}}
	for _, a := range answers {
		kinds = append(kinds, a.answer)
	}
	return kinds
}

func filled(answer interface{}, text string) interface{} {
	value := reflect.New(reflect.TypeOf(answer)).Elem()
	fill(value, text)
	return value.Interface()
}

// page renders an answer and fails unless it is well-formed: each element that needs an end tag has one.
func page(t *testing.T, answer interface{}, request *http.Request) (string, *html.Node) {
	t.Helper()
	var b strings.Builder
	if err := render(&b, answer, request); err != nil {
		t.Fatalf("%T: %v", answer, err)
	}
	var open []string
	void := map[string]bool{"meta": true, "input": true}
	for tokens := html.NewTokenizer(strings.NewReader(b.String())); ; {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		name, _ := tokens.TagName()
		switch {
		case kind == html.StartTagToken && !void[string(name)]:
			open = append(open, string(name))
		case kind == html.EndTagToken:
			if last := len(open) - 1; last < 0 || open[last] != string(name) {
				t.Fatalf("%T: </%s> ends %v in\n%s", answer, name, open, b.String())
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%T: no end of %v", answer, open)
	}
	root, err := html.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), root
}

// elements calls a function with each element.
func elements(node *html.Node, do func(*html.Node)) {
	if node.Type == html.ElementNode {
		do(node)
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		elements(child, do)
	}
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestPagesOfAllAnswers(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, PodsPath+"?search=x", nil)
	for _, empty := range kinds() {
		for name, answer := range map[string]interface{}{"empty": empty, "filled": filled(empty, "text")} {
			t.Run(fmt.Sprintf("%T, %s", empty, name), func(t *testing.T) {
				_, root := page(t, answer, request)
				count, ids, labels := map[string]int{}, map[string]bool{}, map[string]bool{}
				var inputs []string
				elements(root, func(node *html.Node) {
					count[node.Data]++
					if id := attribute(node, "id"); id != "" {
						if ids[id] {
							t.Errorf("two elements have the id %s", id)
						}
						ids[id] = true
					}
					switch node.Data {
					case "label":
						labels[attribute(node, "for")] = true
					case "input", "textarea":
						inputs = append(inputs, attribute(node, "id"))
					case "th":
						if attribute(node, "scope") == "" {
							t.Error("a th has no scope")
						}
					case "table":
						if region := node.Parent; attribute(region, "class") == "" || attribute(region, "tabindex") != "0" || attribute(region, "aria-label") == "" {
							t.Error("a table is not in a region that scrolls")
						}
					case "svg":
						if attribute(node, "aria-hidden") == "" && (attribute(node, "role") != "img" || node.FirstChild == nil || node.FirstChild.Data != "title") {
							t.Error("a picture has no words")
						}
					case "script", "img", "link", "base", "iframe":
						t.Errorf("it has the element %s", node.Data)
					case "html":
						if attribute(node, "lang") != "en" {
							t.Error("it has no language")
						}
					}
					for _, a := range node.Attr {
						if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
							t.Errorf("<%s %s=%q> is refused by its own policy", node.Data, a.Key, a.Val)
						}
					}
				})
				if count["h1"] != 1 || count["main"] != 1 || count["title"] == 0 {
					t.Errorf("it has %d h1, %d main and %d title", count["h1"], count["main"], count["title"])
				}
				for _, id := range inputs {
					if !labels[id] {
						t.Errorf("the input %q has no label", id)
					}
				}
			})
		}
	}
}

// Each text in each answer is hostile markup.
func TestNothingIsTakenForMarkup(t *testing.T) {
	for _, hostile := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onfocus='alert(1)' autofocus='`,
		`javascript:alert(1)`, `</title></textarea></style><svg onload=alert(1)>`, `{{.}}`, "\x00\xff<b>", `../../..?x=y#z`,
	} {
		request := httptest.NewRequest(http.MethodPost, WhatIfPath, nil)
		query := request.URL.Query()
		query.Set("search", hostile)
		query.Set("pod", hostile)
		request.URL.RawQuery = query.Encode()
		request.PostForm = map[string][]string{"manifest": {hostile}}
		for _, empty := range kinds() {
			_, plain := page(t, filled(empty, "text"), request)
			content, root := page(t, filled(empty, hostile), request)
			shape := func(root *html.Node) (shape []string) {
				elements(root, func(node *html.Node) {
					text := node.Data
					for _, a := range node.Attr {
						text += " " + a.Key
						if a.Key == "href" && !strings.HasPrefix(a.Val, "/scheduling/") {
							t.Errorf("%T leads to %s", empty, a.Val)
						}
						if a.Key == "href" && (strings.Contains(a.Val, "/../") || strings.Contains(a.Val, "?x") || strings.Contains(a.Val, "#")) {
							t.Errorf("%T leads elsewhere: %s", empty, a.Val)
						}
					}
					shape = append(shape, text)
				})
				return shape
			}
			if got, want := shape(root), shape(plain); !reflect.DeepEqual(got, want) {
				t.Errorf("%q changes the elements of %T:\n%s", hostile, empty, content)
			}
		}
	}
}

func TestAnswersAsTheyAreWanted(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	for _, tt := range []struct {
		accept, query string
		html          bool
	}{
		{"", "", false},
		{"*/*", "", false},
		{browser, "", true},
		{"text/html", "", true},
		{"text/*", "", true},
		{"application/json", "", false},
		{"application/json, */*", "", false},
		{"application/json;q=0.5, text/html", "", true},
		{"text/html;q=0.5, application/json", "", false},
		{browser, "?output=json", false},
		{"*/*", "?output=html", true},
		{"image/png", "", false},
	} {
		request := httptest.NewRequest(http.MethodGet, PodsPath+tt.query, nil)
		request.Header.Set("Accept", tt.accept)
		header := http.Header{}
		content, err := encode(header, request, PodList{Items: []PodSummary{{Name: "pod"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(string(content), "<!DOCTYPE html>"); got != tt.html || got == json.Valid(content) {
			t.Errorf("%q%s: HTML: %v, want %v", tt.accept, tt.query, got, tt.html)
		}
		want, policy := "application/json", ""
		if tt.html {
			want, policy = "text/html; charset=utf-8", contentPolicy
		}
		if header.Get("Content-Type") != want || header.Get("Content-Security-Policy") != policy || header.Get("Vary") != "Accept" ||
			header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q%s: %v", tt.accept, tt.query, header)
		}
	}
}

func TestPagesAreServed(t *testing.T) {
	r := newRecorder(DefaultOptions)
	r.Sources.WhatIf = func(context.Context, *v1.Pod, bool) (*WhatIf, time.Duration, error) { return &WhatIf{}, 0, nil }
	unschedulable(r, podNamed("waits"), []int{3}, rejectedBy("Fit", "<b>Insufficient</b> cpu"))
	server := httptest.NewServer(r.Serve(http.NotFoundHandler(), func() bool { return true }))
	defer server.Close()
	post := func(path, site, body string) (*http.Response, error) {
		request, err := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", site)
		return http.DefaultClient.Do(request)
	}
	for _, tt := range []struct {
		path, want string
		code       int
	}{
		{PodsPath + "?output=html", ">waits</a>", http.StatusOK},
		{PodsPath + "?output=html&search=Default/WAITS+insufficient", ">waits</a>", http.StatusOK},
		{PodsPath + "?output=html&search=waits+memory", "0 pods found", http.StatusOK},
		{PodsPath + "?search=waits+memory", `"items":[]`, http.StatusOK},
		{PodsPath + "/default/waits?output=html", "&lt;b&gt;Insufficient&lt;/b&gt; cpu", http.StatusOK},
		{PodsPath + "/default/none?output=html", "<h1>No answer</h1>", http.StatusNotFound},
		{OpenAPIPath + "?output=html", `"swagger":"2.0"`, http.StatusOK},
		{PodsPath + "/default/none", "no attempt to schedule", http.StatusNotFound},
		{NodesPath + "/node-0-1?output=html", "1 pod rejected here", http.StatusOK},
		{NodesPath + "/node-0-1", `"plugin":"Fit"`, http.StatusOK},
		{NodesPath + "/other?output=html", "0 pods rejected here", http.StatusOK},
		{WhatIfPath + "?output=html", "<textarea", http.StatusOK},
		{WhatIfPath, "pod= is not NAMESPACE/NAME", http.StatusBadRequest},
		{WhatIfPath + "?output=html&pod=%3Cb%3E", "pod=&lt;b&gt; is not NAMESPACE/NAME", http.StatusBadRequest},
		{"cross-site", "another site has sent this", http.StatusForbidden},
		{"same-origin", "kind: &lt;b&gt;</textarea>", http.StatusBadRequest},
	} {
		response, err := http.Get(server.URL + tt.path)
		if !strings.HasPrefix(tt.path, "/") {
			response, err = post(WhatIfPath+"?output=html", tt.path, "manifest=kind%3A+%3Cb%3E")
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := ioutil.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != tt.code || !strings.Contains(string(content), tt.want) {
			t.Errorf("%s: %d (%v), want %d and %q in\n%s", tt.path, response.StatusCode, err, tt.code, tt.want, content)
		}
	}
}

func TestSearchOfTheQueue(t *testing.T) {
	queue := Queue{Items: []QueuedPod{{Namespace: "shop", Name: "web", WaitsFor: []string{"NodeAffinity"}}, {Namespace: "shop", Name: "db"}}}
	for text, want := range map[string]int{"": 2, "shop": 2, "shop/web": 1, "nodeaffinity": 1, "web db": 0} {
		if got := search(queue, text).(Queue); len(got.Items) != want {
			t.Errorf("%q finds %v, want %d", text, got.Items, want)
		}
	}
}

func TestManifestOfAForm(t *testing.T) {
	for _, tt := range []struct{ body, want, shown string }{
		{"kind: Pod\n", "kind: Pod\n", ""},
		{"manifest=kind%3A+Pod%0D%0A&x=y", "kind: Pod\r\n", "kind: Pod\r\n"},
		{"manifest=%", "manifest=%", ""},
	} {
		request := httptest.NewRequest(http.MethodPost, WhatIfPath, nil)
		if got := string(manifest(request, []byte(tt.body))); got != tt.want || request.PostForm.Get("manifest") != tt.shown {
			t.Errorf("%q: %q, and %q is shown again; want %q and %q", tt.body, got, request.PostForm.Get("manifest"), tt.want, tt.shown)
		}
	}
}

func TestRequestsFromOtherSites(t *testing.T) {
	for site, want := range map[string]bool{"": false, "none": false, "same-origin": false, "same-site": true, "cross-site": true} {
		request := httptest.NewRequest(http.MethodPost, WhatIfPath, nil)
		request.Header.Set("Sec-Fetch-Site", site)
		if got := fromElsewhere(request); got != want {
			t.Errorf("%q is from elsewhere: %v, want %v", site, got, want)
		}
	}
}

func TestFunnel(t *testing.T) {
	rejections := []RejectionRecord{{Plugin: "Fit", Nodes: 60}, {Plugin: "Taints", Nodes: 20}, {Plugin: "Fit", Nodes: 10}}
	for _, tt := range []struct {
		name, want string
		decision   Decision
		kept       []string // of the rows of plugins
	}{
		{"nothing", "0 nodes in the cluster; 0 nodes fit", Decision{}, nil},
		{"no node fits", "90 nodes in the cluster; Fit rejects 70; Taints rejects 20; 0 nodes fit",
			Decision{Nodes: 90, Evaluated: 90, Rejections: rejections}, []string{"22.22", "0"}},
		{"some are looked at", "5000 nodes in the cluster; 100 looked at; Fit rejects 70; Taints rejects 20; 10 nodes fit; 10 scored; chosen of 2: node",
			Decision{Nodes: 5000, Evaluated: 100, Feasible: 10, Rejections: rejections, Scores: make([]NodeScores, 10), Ties: 2, Node: "node"}, []string{"0.60", "0.5"}},
		{"one fits", "91 nodes in the cluster; Fit rejects 70; Taints rejects 20; 1 node fits; chosen: node",
			Decision{Nodes: 91, Evaluated: 91, Feasible: 1, Rejections: rejections, Node: "node"}, []string{"23.08", "1.10"}},
		{"all filters see all nodes", "80 nodes in the cluster; Fit rejects 70; Taints rejects 20; 0 nodes fit",
			Decision{Nodes: 80, Evaluated: 80, Rejections: rejections}, []string{"12.50", "75.00"}},
		{"many plugins", "9 nodes in the cluster; a rejects 2; b rejects 1; c rejects 1; d rejects 1; e rejects 1; other plugins reject 3; 0 nodes fit",
			Decision{Nodes: 9, Evaluated: 9, Rejections: []RejectionRecord{{Plugin: "b", Nodes: 1}, {Plugin: "a", Nodes: 2}, {Plugin: "c", Nodes: 1},
				{Plugin: "d", Nodes: 1}, {Plugin: "e", Nodes: 1}, {Plugin: "f", Nodes: 1}, {Plugin: "g", Nodes: 1}, {Nodes: 1}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := funnel(tt.decision)
			if got.Words != tt.want {
				t.Errorf("it says %q, want %q", got.Words, tt.want)
			}
			var kept []string
			for _, stage := range got.Stages {
				if stage.Class == "rejected" {
					kept = append(kept, stage.Kept)
				}
			}
			if tt.kept != nil && !reflect.DeepEqual(kept, tt.kept) {
				t.Errorf("it is %v wide where plugins reject, want %v", kept, tt.kept)
			}
		})
	}
}

func TestChart(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var queue Queue
	for i := 0; i < 360; i++ {
		queue.History = append(queue.History, QueueLengths{Time: start.Add(time.Duration(i) * 10 * time.Second), Active: i % 2, Unschedulable: i})
	}
	got := chart(queue)
	if len(got.Parts) != 4 || len(got.Rows) != 12 || got.Rows[0].Unschedulable != 359 {
		t.Fatalf("%d parts, rows: %v", len(got.Parts), got.Rows)
	}
	waits := got.Parts[2]
	if waits.Words != "0 at 12:00 UTC, at most 359 at 12:59 UTC, 359 at 12:59 UTC" || waits.Now != 359 || waits.Most != 359 {
		t.Errorf("%+v", waits)
	}
	if !strings.HasPrefix(waits.Line, "0,100 0.0,100.0 2.8,99.7 ") || !strings.HasSuffix(waits.Line, " 1000.0,0.0 1000,100") {
		t.Errorf("its line: %s", waits.Line)
	}
	queue.History = queue.History[:1]
	if got := chart(queue); got.Parts[0].Line != "0,100 1000.0,100.0 1000,100" || len(got.Rows) != 1 {
		t.Errorf("one sample: %+v", got)
	}
}

func TestWordsForFigures(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ got, want string }{
		{lasted(0), "0 µs"}, {lasted(0.000042), "42 µs"}, {lasted(0.0032), "3 ms"}, {lasted(0.9996), "1.0 s"}, {lasted(9.97), "10 s"},
		{lasted(119), "119 s"}, {lasted(600), "10 min"}, {lasted(10800), "3 h"}, {lasted(1e6), "12 days"},
		{ago(now, now.Add(-time.Minute)), "60 s ago"}, {ago(now, now), "now"}, {until(now, now.Add(3*time.Second)), "in 3.0 s"}, {until(now, now), "now"},
		{percent(1, 5000), "0.5"}, {percent(-1, 10), "0"}, {percent(3, 0), "0"}, {percent(11, 10), "100"}, {percent(int64(1), 3), "33.33"},
		{cut("kurz", 4), "kurz"}, {cut("länger", 4), "län…"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func BenchmarkListOf1000Pods(b *testing.B) {
	list := PodList{}
	for i := 0; i < 1000; i++ {
		list.Items = append(list.Items, PodSummary{
			Namespace: "default", Name: fmt.Sprint("pod-", i), Result: Unschedulable, Summary: strings.Repeat("4: Insufficient cpu; ", 10),
		})
	}
	request := httptest.NewRequest(http.MethodGet, PodsPath+"?output=html", nil)
	for i := 0; i < b.N; i++ {
		content, err := encode(http.Header{}, request, list)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(content)))
	}
}
