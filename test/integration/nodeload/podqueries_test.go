// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"kube-scheduler-fork/test/cluster"
)

// cadvisor has the series of a kubelet for a pod with two containers. The third series is that of the whole pod.
const cadvisor = `container_cpu_usage_seconds_total{namespace="team",pod="a",container="one"} %[1]f
container_cpu_usage_seconds_total{namespace="team",pod="a",container="two"} %[1]f
container_cpu_usage_seconds_total{namespace="team",pod="a",container=""} %[1]f
container_memory_working_set_bytes{namespace="team",pod="a",container="one"} 1e6
container_memory_working_set_bytes{namespace="team",pod="a",container="two"} 2e6
container_memory_working_set_bytes{namespace="team",pod="a",container=""} 3e6
`

// TestPodQueries sends the queries for pods that the page has to a real Prometheus.
func TestPodQueries(t *testing.T) {
	t.Parallel()
	began := time.Now()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// Each container uses half a core.
		fmt.Fprintf(w, cadvisor, time.Since(began).Seconds()/2)
	}))
	t.Cleanup(exporter.Close)
	p := cluster.NewPrometheus(t)
	p.Configure(t, object{
		"global": object{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": []object{{"job_name": "kubelet", "static_configs": []object{
			{"targets": []string{strings.TrimPrefix(exporter.URL, "http://")}},
		}}},
	})
	p.Start(t)
	queries := regexp.MustCompile(`(?m)^ +pod(?:Timestamp)?Query: (.*)$`).FindAllStringSubmatch(
		cluster.Read(t, "../../../docs/node-load.md"), -1)
	if len(queries) != 4 {
		t.Fatalf("the page has %d queries for pods, want 4", len(queries))
	}
	cluster.Await(t, "the use of the pod", func() error {
		now := seconds(time.Now())
		for i, within := range [][2]float64{{0.9, 1.1}, {now - 2, now}, {3e6, 3e6}, {now - 2, now}} {
			got := p.Query(t, strings.ReplaceAll(queries[i][1], "[5m]", "[10s]"), now)
			if len(got) != 1 || !maps.Equal(got[0].Metric, map[string]string{"namespace": "team", "pod": "a"}) {
				return fmt.Errorf("%s: got %v", queries[i][1], got)
			}
			if value := got[0].Value.Number(); value < within[0] || value > within[1] {
				return fmt.Errorf("%s: got %v, want %v", queries[i][1], value, within)
			}
		}
		return nil
	}, p.LogFile())
}
