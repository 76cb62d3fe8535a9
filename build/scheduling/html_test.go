// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
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

// kinds are the contents of pages.
var kinds = []any{problem{}, podList{}, podRecord{}, queue{}, whatIf{}}

// filled returns content of a kind with a text in all its fields, as newAnswer returns it.
func filled(kind any, text string) any {
	value := reflect.New(reflect.TypeOf(kind))
	if text != "" {
		fill(value.Elem(), text)
	}
	if _, is := kind.(problem); is {
		return value.Elem().Interface()
	}
	return value.Interface()
}

// rendered returns a page, and fails unless it is well-formed: each element that has an end, ends.
func rendered(t *testing.T, v view) (string, *html.Node) {
	t.Helper()
	var b strings.Builder
	answer := v.Content
	if err := v.render(&b); err != nil {
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
	for _, kind := range kinds {
		for name, text := range map[string]string{"empty": "", "filled": "text"} {
			t.Run(fmt.Sprintf("%T, %s", kind, name), func(t *testing.T) {
				_, root := rendered(t, view{Live: true, Search: "x", Page: "what-if", Content: filled(kind, text)})
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

// TestSavedPagesHaveNoLinks renders pages as --output html does.
func TestSavedPagesHaveNoLinks(t *testing.T) {
	for _, kind := range kinds {
		_, root := rendered(t, view{Search: "x", Content: filled(kind, "text")})
		elements(root, func(node *html.Node) {
			if _, is := kind.(problem); !is && (node.Data == "a" || node.Data == "form") {
				t.Errorf("%T has <%s href=%q>", kind, node.Data, attribute(node, "href"))
			}
		})
	}
}

// TestNothingIsTakenForMarkup renders answers in which each text would do harm as markup.
func TestNothingIsTakenForMarkup(t *testing.T) {
	for _, hostile := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onfocus='alert(1)' autofocus='`,
		`javascript:alert(1)`, `</title></textarea></style><svg onload=alert(1)>`, `{{.}}`, "\x00\xff<b>", `../../..?x=y#z`,
	} {
		for _, kind := range kinds {
			v := view{Live: true, Search: hostile, Pod: hostile, Manifest: hostile, Page: "what-if"}
			v.Content = filled(kind, "text")
			_, plain := rendered(t, v)
			v.Content = filled(kind, hostile)
			content, root := rendered(t, v)
			shape := func(root *html.Node) (shape []string) {
				elements(root, func(node *html.Node) {
					text := node.Data
					for _, a := range node.Attr {
						text += " " + a.Key
						if a.Key == "href" && !strings.HasPrefix(a.Val, "/scheduling/") {
							t.Errorf("%T leads to %s", kind, a.Val)
						}
						if a.Key == "href" && (strings.Contains(a.Val, "/../") || strings.Contains(a.Val, "?x") || strings.Contains(a.Val, "#")) {
							t.Errorf("%T leads elsewhere: %s", kind, a.Val)
						}
					}
					shape = append(shape, text)
				})
				return shape
			}
			if got, want := shape(root), shape(plain); !reflect.DeepEqual(got, want) {
				t.Errorf("%q changes the elements of %T:\n%s", hostile, kind, content)
			}
		}
	}
}

func TestFunnel(t *testing.T) {
	rejections := []rejection{{Plugin: "Fit", Nodes: 60}, {Plugin: "Taints", Nodes: 20}, {Plugin: "Fit", Nodes: 10}}
	for _, tt := range []struct {
		name, want string
		decision   decision
		kept       []string // of the rows of plugins
	}{
		{"nothing", "0 nodes in the cluster; 0 nodes fit", decision{}, nil},
		{"no node fits", "90 nodes in the cluster; Fit rejects 70; Taints rejects 20; 0 nodes fit",
			decision{Nodes: 90, Evaluated: 90, Rejections: rejections}, []string{"22.22", "0"}},
		{"some are evaluated", "5000 nodes in the cluster; 100 evaluated; Fit rejects 70; Taints rejects 20; 10 nodes fit; 10 scored; chosen of 2: node",
			decision{Nodes: 5000, Evaluated: 100, Feasible: 10, Rejections: rejections, Scores: make([]nodeScores, 10), Ties: 2, Node: "node"}, []string{"0.60", "0.5"}},
		{"one fits", "91 nodes in the cluster; Fit rejects 70; Taints rejects 20; 1 node fits; chosen: node",
			decision{Nodes: 91, Evaluated: 91, Feasible: 1, Rejections: rejections, Node: "node"}, []string{"23.08", "1.10"}},
		{"all filters see all nodes", "80 nodes in the cluster; Fit rejects 70; Taints rejects 20; 0 nodes fit",
			decision{Nodes: 80, Evaluated: 80, Rejections: rejections}, []string{"12.50", "75.00"}},
		{"many plugins", "9 nodes in the cluster; a rejects 2; b rejects 1; c rejects 1; d rejects 1; e rejects 1; other plugins reject 3; 0 nodes fit",
			decision{Nodes: 9, Evaluated: 9, Rejections: []rejection{{Plugin: "b", Nodes: 1}, {Plugin: "a", Nodes: 2}, {Plugin: "c", Nodes: 1},
				{Plugin: "d", Nodes: 1}, {Plugin: "e", Nodes: 1}, {Plugin: "f", Nodes: 1}, {Plugin: "g", Nodes: 1}, {Nodes: 1}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.decision.Funnel()
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

func TestWordsForFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{lasted(0), "0s"}, {lasted(0.000042), "42µs"}, {lasted(0.0032), "3.2ms"}, {lasted(119), "119s"}, {lasted(1e6), "11d"},
		{ago(now, now.Add(-time.Minute)), "60s ago"}, {ago(now, now.Add(time.Second)), "0s ago"}, {until(now, now.Add(3*time.Second)), "in 3s"},
		{percent(1, 5000), "0.5"}, {percent(-1, 10), "0"}, {percent(3, 0), "0"}, {percent(11, 10), "100"}, {percent(int64(1), 3), "33.33"},
		{cut("kurz", 4), "kurz"}, {cut("länger", 4), "län…"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
