// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Trimaran's plugins query a load-watcher every 30 seconds; this cannot be configured. This load-watcher averages over
// the same window as the other ways here, instead of its usual 15 minutes, and its data is as of the request.
func init() {
	watcher := httptest.NewUnstartedServer(nil)
	// The request contains the address of the Prometheus.
	watcher.Config.Handler = http.HandlerFunc(serveLoads)
	watcher.Start()
	for _, name := range []string{"TargetLoadPacking", "LoadVariationRiskBalancing"} {
		others = append(others, way{
			name: name, measures: true, refreshes: true,
			config: func(url string) string {
				return profile(name, fmt.Sprintf(`
  pluginConfig:
  - name: %s
    args: {watcherAddress: "%s/%s"}
`, name, watcher.URL, strings.TrimPrefix(url, "http://")))
			},
		})
	}
}

// serveLoads responds like a load-watcher: with the mean and the deviation of each node's CPU.
func serveLoads(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	p, err := newClient("http://" + host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	type object = map[string]any
	now := time.Now()
	nodes := map[string][]object{}
	for operator, function := range map[string]string{"AVG": "avg_over_time", "STD": "stddev_over_time"} {
		// This is the recording rule of kube-prometheus, from one scrape to the next.
		query := fmt.Sprintf(`100 * %s((1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[3s])))[%s:1s])`,
			function, model.Duration(window))
		answer, _, err := p.Query(r.Context(), query, now)
		vector, ok := answer.(model.Vector)
		if err != nil || !ok {
			http.Error(w, fmt.Sprint(answer, err), http.StatusBadGateway)
			return
		}
		for _, sample := range vector {
			node, _, _ := strings.Cut(string(sample.Metric["instance"]), ":")
			nodes[node] = append(nodes[node], object{"name": "cpu", "type": "CPU", "operator": operator, "value": float64(sample.Value)})
		}
	}
	metrics := object{}
	for node, of := range nodes {
		metrics[node] = object{"metrics": of}
	}
	_ = json.NewEncoder(w).Encode(object{
		"timestamp": now.Unix(), "source": "Prometheus", "data": object{"NodeMetricsMap": metrics},
		"window": object{"duration": window.String(), "start": now.Add(-window).Unix(), "end": now.Unix()},
	})
}
