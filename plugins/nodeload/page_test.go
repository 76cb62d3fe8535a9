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
	if shown := pageOf([]*NodeLoad{w.plugin}, "").Profiles[0].Nodes[0].Resources[0]; shown.Deviation != nil || shown.Missing != "too_old" {
		t.Errorf("deviation %v, missing %q", shown.Deviation, shown.Missing)
	}
}
