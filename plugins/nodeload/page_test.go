// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/utils/pointer"
)

// get asks for the status page.
func get(w *world, method, query, accept string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path+query, nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	w.plugin.Pages()[path].ServeHTTP(answer, request)
	return answer
}

func pageWorld(t *testing.T) *world {
	running := []*v1.Pod{on(pod("new", "2"), "node-0", 0)}
	w := newWorld(t, arguments(cpu(80), network(0)), nodes(3), running...)
	w.measure(map[string][]measured.Sample{
		"node-0": {w.sample(0.5, 10*time.Second), {Missing: measured.Negative}},
		"node-1": {w.sample(0.6, 10*time.Minute), {Missing: measured.Ambiguous}},
	})
	return w
}

func TestThePageForPeople(t *testing.T) {
	w := pageWorld(t)
	text := get(w, http.MethodGet, "", "text/html").Body.String()
	words := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	for _, want := range []string{
		"cpu 1 3 80 % no: too few are fresh",
		"network 0 3 - no: too few are fresh",
		"node-0 cpu 50.0 % 20.0 % 70.0 % 10s -",
		"node-0 network - - - - negative",
		"node-1 cpu 60.0 % 0.0 % 60.0 % 600s too_old",
		"node-1 network - - - - ambiguous",
		"node-2 cpu - - - - no_series",
	} {
		found := false
		for _, line := range strings.Split(text, "\n") {
			found = found || words(line) == want
		}
		if !found {
			t.Errorf("there is no line %q in\n%s", want, text)
		}
	}
}

func TestThePageForTools(t *testing.T) {
	w := pageWorld(t)
	for _, answer := range []*httptest.ResponseRecorder{
		get(w, http.MethodGet, "?node=node-0&format=json", ""), get(w, http.MethodGet, "?node=node-0", "application/json"),
	} {
		var p page
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Profiles) != 1 || len(p.Profiles[0].Nodes) != 1 {
			t.Fatalf("got %s", answer.Body)
		}
		load := p.Profiles[0].Nodes[0].Resources[0]
		if *load.Measured != 50 || *load.InFlight != 20 || *load.Predicted != 70 || *load.AgeSeconds != 10 || *load.Capacity != 10 {
			t.Errorf("got %s", answer.Body)
		}
	}
}

func TestThePageIsOnlyRead(t *testing.T) {
	w := pageWorld(t)
	if code := get(w, http.MethodPost, "", "").Code; code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d", code)
	}
	if code := get(w, http.MethodGet, "?format=xml", "").Code; code != http.StatusBadRequest {
		t.Errorf("an unknown format is answered with %d", code)
	}
}

// TestThePageBeforeTheFirstSnapshot is shown on a standby that has just started.
func TestThePageBeforeTheFirstSnapshot(t *testing.T) {
	w := newWorld(t, arguments(cpu(80)), nodes(1))
	if text := get(w, http.MethodGet, "", "").Body.String(); !strings.Contains(text, "No snapshot yet") {
		t.Errorf("got %s", text)
	}
}

// TestADeviationWithoutACapacity is not shown: it is not known of what it is a share.
func TestADeviationWithoutACapacity(t *testing.T) {
	r := cpu(0)
	r.Name, r.Unit, r.Estimator.Resource = "ports", config.NodeLoadAbsolute, "example.com/ports"
	w := newWorld(t, arguments(r), nodes(1))
	old := w.sample(4, time.Hour)
	old.Deviation, old.HasDeviation = 2, true
	w.measure(map[string][]measured.Sample{"node-0": {old}})
	if shown := w.plugin.page("", nil).Nodes[0].Resources[0]; shown.Deviation != nil || shown.Missing != "too_old" {
		t.Errorf("deviation %v, missing %q", shown.Deviation, shown.Missing)
	}
}

// TestThePageOfAPod says of each node what a scheduling cycle would.
func TestThePageOfAPod(t *testing.T) {
	running := []*v1.Pod{on(pod("new", "2"), "node-0", 0), pod("waiting", "1"), pod("critical", "1"), pod("stranger", "1")}
	for _, p := range running {
		p.Spec.SchedulerName = t.Name()
	}
	running[2].Spec.Priority = pointer.Int32(2000000000)
	running[3].Spec.SchedulerName = "other"
	running[1].Annotations = map[string]string{"example.com/bandwidth": "200M"}
	w := newWorld(t, arguments(cpu(80), network(0)), nodes(4), running...)
	w.measure(map[string][]measured.Sample{
		"node-0": {w.sample(0.5, 10*time.Second), {}}, "node-1": {w.sample(0.9, 0), {}}, "node-2": {w.sample(0.3, 0), {}}, "node-3": {{Missing: measured.NoSeries}, {}},
	})
	answer := get(w, http.MethodGet, "?format=json&pod=test/waiting", "")
	var p page
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	shown := p.Profiles[0]
	if shown.Pod == nil || shown.Pod.Pod != "test/waiting" || shown.Pod.Exempt || shown.Pod.Estimates["cpu"] != 1 {
		t.Errorf("the pod is %+v", shown.Pod)
	}
	decided := w.cycle(t, running[1])
	for i, n := range shown.Nodes {
		if want := decided.rejected[n.Node]; n.Rejected != want {
			t.Errorf("%s is rejected by %q, and on the page by %q", n.Node, want, n.Rejected)
		}
		if want := decided.scores[n.Node]; n.Rejected == "" && *n.Score != want {
			t.Errorf("%s scores %d, and on the page %d", n.Node, want, *n.Score)
		}
		if want := []float64{80, 100, 40, 0}[i]; want > 0 && *n.Resources[0].WithPod != want {
			t.Errorf("%s has %v %% with the pod, want %v", n.Node, *n.Resources[0].WithPod, want)
		}
	}
	if len(decided.rejected) != 1 || len(shown.Nodes) != 4 {
		t.Errorf("rejected: %v of %d nodes, want node-1 alone", decided.rejected, len(shown.Nodes))
	}
	text := get(w, http.MethodGet, "?pod=test/waiting&node=node-1", "").Body.String()
	for _, want := range []string{"Pod test/waiting is expected to use cpu 1 network 200000000\n", "100.0 %", "node(s) had cpu above 80 % of capacity\n"} {
		if !strings.Contains(text, want) || strings.Contains(text, "node-0") {
			t.Errorf("there is no %q, or another node, in\n%s", want, text)
		}
	}
	if text := get(w, http.MethodGet, "?pod=test/critical", "").Body.String(); !strings.Contains(text, "passes the filter whatever is measured") {
		t.Errorf("a critical pod: %s", text)
	}
	for query, want := range map[string]int{
		"?pod=waiting": http.StatusBadRequest, "?pod=a/b/c": http.StatusBadRequest, "?pod=test/none": http.StatusNotFound,
		"?pod=test/new": http.StatusConflict, "?pod=test/stranger": http.StatusNotFound,
	} {
		if answer := get(w, http.MethodGet, query, ""); answer.Code != want || !strings.Contains(answer.Body.String(), "; next: ") {
			t.Errorf("%s is answered with %d, want %d: %s", query, answer.Code, want, answer.Body)
		}
	}
	if touches, blind := w.measurements.touches, count(t, w.plugin.counters.blind[0]); touches != 1 || blind != 0 {
		t.Errorf("%d touches and %d blind cycles, want those of the one cycle", touches, blind)
	}
}
