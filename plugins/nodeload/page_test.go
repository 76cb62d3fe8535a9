// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
)

// get requests the status.
func get(w *world, method, query string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.plugin.Pages()[path].ServeHTTP(answer, httptest.NewRequest(method, path+query, nil))
	return answer
}

func TestPages(t *testing.T) {
	w := newWorld(t, arguments(cpu(80), network(0)), nodes(3), on(pod("new", "2"), "node-0", 0))
	if body := get(w, http.MethodGet, "").Body.String(); !strings.Contains(body, `"snapshot":0`) {
		t.Errorf("before the first snapshot: %s", body)
	}
	w.measure(map[string][]collector.Sample{
		"node-0": {w.sample(0.5, 10*time.Second), {Missing: collector.Negative}},
		"node-1": {w.sample(0.6, 10*time.Minute), {Missing: collector.Ambiguous}},
	})
	content := func(query string) profilePage {
		var p page
		body := get(w, http.MethodGet, query).Body.Bytes()
		if err := json.Unmarshal(body, &p); err != nil || len(p.Profiles) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		return p.Profiles[0]
	}
	all := content("")
	if r := all.Resources; r[0].Fresh != 1 || r[0].Nodes != 3 || *r[0].Threshold != 80 || !r[0].Fallback || r[1].Fresh != 0 || r[1].Threshold != nil {
		t.Errorf("the resources are %+v", r)
	}
	load := all.Nodes[0].Resources[0]
	if *load.Measured != 50 || *load.InFlight != 20 || *load.Predicted != 70 || *load.AgeSeconds != 10 || *load.Capacity != 10 {
		t.Errorf("node-0 has %+v", load)
	}
	for i, want := range [][]string{{"", "negative"}, {"too_old", "ambiguous"}, {"no_series", "no_series"}} {
		for r, why := range want {
			if got := all.Nodes[i].Resources[r]; got.Missing != why {
				t.Errorf("%s misses %s because of %q, want %q", all.Nodes[i].Node, got.Resource, got.Missing, why)
			}
		}
	}
	one := content("?node=node-1").Nodes
	if len(one) != 1 || one[0].Node != "node-1" || *one[0].Resources[0].Measured != 60 || *one[0].Resources[0].AgeSeconds != 600 {
		t.Errorf("with node=node-1: %+v", one)
	}
	if code := get(w, http.MethodPost, "").Code; code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d", code)
	}
}

// TestPageDeviationWithoutCapacity checks that a deviation is omitted if its share of the capacity is unknown.
func TestPageDeviationWithoutCapacity(t *testing.T) {
	r := cpu(0)
	r.Name, r.Unit, r.Estimator.Resource = "ports", config.NodeLoadAbsolute, "example.com/ports"
	w := newWorld(t, arguments(r), nodes(1))
	old := w.sample(4, time.Hour)
	old.Deviation, old.HasDeviation = 2, true
	w.measure(map[string][]collector.Sample{"node-0": {old}})
	if shown := w.plugin.page("").Nodes[0].Resources[0]; shown.Deviation != nil || shown.Missing != "too_old" {
		t.Errorf("deviation %v, missing %q", shown.Deviation, shown.Missing)
	}
}
