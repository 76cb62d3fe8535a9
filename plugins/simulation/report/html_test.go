// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// day returns a made-up comparison of a day.
func day(nodes, seeds int, names ...string) *result.Comparison {
	c := &result.Comparison{Input: []string{"cluster.yaml", "tuesday.csv"}, NotModelled: "admission", Warnings: []string{"cluster.yaml:17: unused"}}
	for k, name := range names {
		for seed := 0; seed < seeds; seed++ {
			random := rand.New(rand.NewSource(int64(seed*100 + k)))
			quality := 1 + 0.1*float64(k)
			run := result.Run{Configuration: name, Seed: int64(seed), Seconds: 86400, Notes: []string{"Coscheduling uses wall time"}, Figures: []result.Figure{
				{Name: "pods_placed", Title: "placed", Unit: "pods", Better: result.Higher, Value: 99000 + 300*float64(k)},
				{Name: "waiting_p50_seconds", Title: "waiting, p50", Unit: "s", Better: result.Lower, Value: 0.01 + 0.001*random.Float64()},
				{Name: "waiting_p99_seconds", Title: "waiting, p99", Unit: "s", Better: result.Lower, Value: 310/quality + random.Float64()},
				{Name: "hot_node_seconds", Title: "hot", Unit: "nodes·s", Better: result.Lower, Value: 1234567 * quality},
			}}
			for i := 0; i < 1440; i++ {
				load := 0.55 + 0.35*math.Sin(2*math.Pi*(float64(i)/1440-0.2))
				run.Samples = append(run.Samples, result.Sample{Seconds: float64(i) * 60, Values: map[string]float64{
					"cpu allocated, %": math.Min(97, 80*load*quality+random.Float64()), "memory allocated, %": 60*load + random.Float64(),
					"pods pending": math.Max(0, 4000*(load-0.7)/quality), "gpu fragmented, %": 12/quality + 2*load + random.Float64(), "evicted": 0}})
			}
			for i := 0; i < nodes; i++ {
				share := math.Max(0, 0.7+0.1*quality*random.NormFloat64()) * float64(1-random.Intn(20*k+30)/(20*k+29))
				run.Nodes = append(run.Nodes, result.Node{Name: fmt.Sprintf("node-%05d", i), Zone: fmt.Sprintf("zone-%c", 'a'+i%3), Pods: int(30 * share),
					Allocated: map[string]float64{"cpu": share, "memory": 0.8 * share}, Used: map[string]float64{"cpu": share / 2, "memory": share / 2}})
				pod := result.Pod{Name: fmt.Sprintf("default/web-%05d", i), Node: fmt.Sprintf("node-%05d", random.Intn(nodes)), Bound: 3600 * random.Float64()}
				if i%400 == k {
					pod.Node, pod.Reason, pod.Record = "", "0/5000 nodes are available", json.RawMessage(`{"attempts":[{"number":1}]}`)
				}
				run.Pods = append(run.Pods, pod)
				run.Preemptions = append(run.Preemptions, result.Preemption{Seconds: 9 * float64(i), Victim: "batch/a", Preemptor: "web/b", Node: "node-00007"})
			}
			c.Runs = append(c.Runs, run)
		}
	}
	return c
}

func html(t *testing.T, c *result.Comparison) string {
	t.Helper()
	var out strings.Builder
	if err := HTML(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHTML(t *testing.T) {
	c := day(5000, 2, "stock", "mine.yaml", "theirs.yaml")
	page := html(t, c)
	if html(t, c) != page {
		t.Error("a second page differs")
	}
	if len(page) > 2000000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	// To look at it in a browser.
	if name := os.Getenv("REPORT_HTML"); name != "" {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for what, want := range map[string]int{
		`<path d="M\d+ \d+v7"><title>node-\d+, \d+ pods, cpu \d+/\d+, memory \d+/\d+</title>`: 3 * 5000,
		`class="line c0" d="M54.0 [\d. ]+ 554.0 [\d.]+"`:                                      5,
		`<tr><th>default/web-`:        200,
		`<summary>record</summary>`:   39, // 13 of the 5,000 pods by configuration
		`<tr><th>\S+</th><td>batch/a`: 3 * 100,
		`Preemptions of \S+: 5000`:    3,
		`>better \(−`:                 2,
		// All nodes of a view, and its choice, as often as there are configurations and resources.
		`<g class="view v1" stroke-width="7">`: 3,
		`<input type="radio" name="view" id="v\d"( checked)?><label for="v\d">(fullest resource|cpu|memory)</label>`: 3,
		`NaN|Inf|ZgotmplZ`: 0,
	} {
		if got := len(regexp.MustCompile(what).FindAllString(page, -1)); got != want {
			t.Errorf("%s: found %d times, want %d", what, got, want)
		}
	}
	if got := html(t, &result.Comparison{}); !strings.Contains(got, "Fewer than two configurations") {
		t.Error("the page of no run does not say so")
	}
}

// The mean of two seeds is drawn: 1 and 3 at the start, 5 and 7 at the end, on a scale from 0 to 6.
func TestChart(t *testing.T) {
	c := compared(map[string][]float64{"stock": {0, 0}}, "stock")
	for i := range c.Runs {
		x := float64(2 * i)
		c.Runs[i].Seconds = 600
		c.Runs[i].Samples = []result.Sample{{Values: map[string]float64{"pods": 1 + x}}, {Seconds: 600, Values: map[string]float64{"pods": 5 + x}}}
	}
	got := charts(c.Runs, configurations(c))[0]
	// 2 of 6 is 2/3 of 160 below the top at 8.
	if want := "M54.0 114.7 554.0 8.0"; got.Lines[0] != want {
		t.Errorf("got line %s, want %s", got.Lines[0], want)
	}
	if len(got.X) != 3 || got.X[1] != (mark{304, 168, "5m"}) || len(got.Y) != 4 || got.Y[3] != (mark{48, 8, "6"}) {
		t.Errorf("got axes %v, %v", got.X, got.Y)
	}
}

func TestHTMLOfHostileNames(t *testing.T) {
	const name = "\"'><script>alert(1)</script></title></style><img src=http://e onerror=x>\x1b\u202e`{{.}}"
	c := day(2, 1, name, name+"2")
	c.Input, c.NotModelled, c.Warnings = []string{name}, name, []string{name}
	for i := range c.Runs {
		run := &c.Runs[i]
		run.Incomplete, run.Notes, run.Figures[0].Title, run.Figures[0].Unit = name, []string{name}, name, name
		run.Samples[0].Values[name] = 1
		run.Gangs, run.Workloads = []result.Gang{{Name: name}}, []result.Workload{{Name: name, Pods: 2, Zones: map[string]int{name: i + 1}}}
		run.Nodes[0] = result.Node{Name: name, Zone: name, Allocated: map[string]float64{name: 1}, Used: map[string]float64{name: 1}}
		record, _ := json.Marshal(map[string]string{name: name})
		run.Pods[0] = result.Pod{Name: name, Node: []string{"", name}[i], Reason: name, Record: record}
		run.Preemptions[0] = result.Preemption{Victim: name, Preemptor: name, Node: name}
	}
	page := html(t, c)
	if got := strings.Count(page, "&lt;script&gt;"); got < 30 {
		t.Errorf("the name is there %d times", got)
	}
	for _, bad := range []string{"<script", "<img", "\x1b", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if loads := regexp.MustCompile(`<[^>]*(://|url\(|@import|src=|href=|\son\w+=)[^>]*>`).FindString(page); loads != "" {
		t.Errorf("the page loads %q", loads)
	}
}

// TestViews checks that a view of a resource has its own colours, and no nodes without the resource.
func TestViews(t *testing.T) {
	c := compared(map[string][]float64{"stock": {0}}, "stock")
	c.Runs[0].Nodes = []result.Node{{Name: "a", Allocated: map[string]float64{"cpu": 0.15, "gpu": 1}}, {Name: "b", Allocated: map[string]float64{"cpu": 0}}}
	all := configurations(c)
	m := all[0].Map(views(all))
	for i, want := range []string{"0: M24 18v15 10: M8 18v15 (nodes: 2, mean: 50 %)", "0: M24 18v15 2: M8 18v15 (nodes: 2, mean: 8 %)", "10: M8 18v15 (nodes: 1, mean: 100 %)"} {
		got := ""
		for bucket, path := range m.Views[i].Buckets {
			if len(path) > 0 {
				got += fmt.Sprintf("%d: %s ", bucket, path)
			}
		}
		if got += strings.TrimSpace(m.Views[i].Zones[0].Text); got != want {
			t.Errorf("view %d: got %s, want %s", i, got, want)
		}
	}
}
