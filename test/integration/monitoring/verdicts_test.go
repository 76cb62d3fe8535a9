// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// nodeLoads are the CPU loads of four nodes with one CPU each, as node_exporter has them.
var nodeLoads = []float64{0.9, 0.2, 0.2, 0.2}

// serveNodeLoads is node_exporter on these nodes. Samples have times, so that rates are exact.
func serveNodeLoads(w http.ResponseWriter, _ *http.Request) {
	now := time.Now().UnixMilli()
	for i, load := range nodeLoads {
		for mode, share := range map[string]float64{"idle": 1 - load, "user": load} {
			fmt.Fprintf(w, "node_cpu_seconds_total{instance=\"node-%d\",cpu=\"0\",mode=%q} %f %d\n", i+1, mode, share*float64(now)/1e3, now)
		}
		fmt.Fprintf(w, "node_memory_MemTotal_bytes{instance=\"node-%d\"} 1e9 %d\n", i+1, now)
	}
}

// verdicts are the results of queries on the page, by the beginning of their row.
var verdicts = map[string]float64{
	"nodes":                  4,
	"node-time above 80 %":   0.25,
	"the mean load":          0.375,
	"differences between":    math.Sqrt((0.525*0.525 + 3*0.175*0.175) / 4),
	"CPU that is requested":  (0.3 - 1.5) / 4,
	"requested memory":       3 * 128 * 1024 * 1024 / 4e9,
	"CPU of workloads":       0.2,
	"schedulers that":        4, // pods of one scheduler
	"preemptions in a week":  0,
	"attempts of a pod that": 1,
}

// Each query of docs/does-it-help.md has an answer with the released stock scheduler, and the right one where verdicts has it.
func TestQueriesOfThePageHaveAnswersWithStock(t *testing.T) {
	s := &stand{Cluster: shared.Get(t), prometheus: cluster.NewPrometheus(t)}
	s.AddNodes(t, len(nodeLoads))
	scheduler := s.StartScheduler(t, cluster.Program(t, "STOCK_SCHEDULER"), cluster.WriteConfig(t, ""),
		localcluster.SchedulerOptions{LeaderElection: true})
	exporter := httptest.NewServer(http.HandlerFunc(serveNodeLoads))
	t.Cleanup(exporter.Close)
	scrape := func(job, path string) map[string]any {
		return map[string]any{
			"job_name": job, "metrics_path": path, "honor_labels": true, "scheme": "https", "static_configs": static(t, scheduler.URL()),
			"tls_config": map[string]any{"ca_file": "ca.crt", "cert_file": "client.crt", "key_file": "client.key"},
		}
	}
	s.startPrometheus(t, "scheduler", scrape("kube-scheduler", "/metrics"), scrape("requests", "/metrics/resources"),
		map[string]any{"job_name": "node", "honor_labels": true, "static_configs": static(t, exporter.URL)})
	waits := localcluster.NewPod("train-3", "")
	waits.Spec.NodeSelector = map[string]string{"no": "node"}
	s.CreatePod(t, waits)
	s.awaitData(t, `count(node_cpu_seconds_total{mode="idle"}) == 4 and on () scheduler_pending_pods{queue="unschedulable"} == 1`)
	// A rate needs a sample before it.
	for i, name := range []string{"alone", "train-1", "train-2"} {
		s.AwaitBound(t, s.CreatePod(t, localcluster.NewPod(name, "")))
		s.awaitData(t, fmt.Sprintf(`scheduler_schedule_attempts_total{result="scheduled"} == %d and on () kube_pod_resource_request{pod=%q,node!=""}`, i+1, name))
	}

	unseen := maps.Clone(verdicts)
	for line := range strings.Lines(cluster.Read(t, "../../../docs/does-it-help.md")) {
		name, query, isQuery := strings.Cut(strings.Split(line, " | ")[0], ": `")
		if !isQuery || !strings.HasPrefix(name, "| ") || strings.HasPrefix(query, "kubectl ") {
			continue
		}
		// The test is shorter than the steps on the page. A rate divides by its whole range, so that of a node's load must be
		// shorter than the test.
		query = strings.ReplaceAll(strings.TrimSuffix(query, "`"), ":5m]", ":1s]")
		if strings.Contains(query, "node_cpu") {
			query = regexp.MustCompile(`\[\w+]`).ReplaceAllString(regexp.MustCompile(`\[\w+:`).ReplaceAllString(query, "[5s:"), "[4s]")
		}
		for begin, want := range verdicts {
			if strings.HasPrefix(name, "| "+begin) {
				query = fmt.Sprintf("(%s) and abs((%[1]s) - %v) < 1e-3", query, want)
				delete(unseen, begin)
			}
		}
		t.Run(name[2:], func(t *testing.T) { s.awaitData(t, query) })
	}
	if len(unseen) > 0 {
		t.Errorf("no row of the page begins with one of these, want a query with this result: %v", unseen)
	}
}
