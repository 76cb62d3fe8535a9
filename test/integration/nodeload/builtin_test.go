// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

// exported are the built-in resources that node_exporter has series for.
var exported = []string{"cpu", "memory", "network", "diskIO"}

// TestBuiltInQueries sends the scheduler's built-in queries to a Prometheus that scrapes two real node_exporters: one
// reads files that the test writes, from which it computes the loads, and one reads this host.
func TestBuiltInQueries(t *testing.T) {
	t.Parallel()
	queries, p := strings.Join(sentQueries(t, exported, nil), "\nor\n"), cluster.NewPrometheus(t)
	var targets []object
	for instance, address := range map[string]string{"files": newFiles(t), "host": startExporter(t)} {
		targets = append(targets, object{"targets": []string{address}, "labels": object{"instance": instance}})
	}
	p.Configure(t, object{
		"global":         object{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": []object{{"job_name": "node", "static_configs": targets}},
	})
	p.Start(t)
	for up, what := range []string{"loads of the files after a failed scrape", "loads of the files"} {
		cluster.Await(t, what, func() error {
			scrapes := p.Query(t, fmt.Sprintf(`timestamp(up{instance="files"} == %d)`, up), seconds(time.Now()))
			if len(scrapes) == 0 {
				return fmt.Errorf("the last scrape is another one")
			}
			at := scrapes[0].Value.Number()
			// After a late scrape the clock seems too fast, and the queries do not use it.
			late := p.Query(t, "rate("+clockSeries+"[10s]) > 1.1 or max_over_time(rate("+clockSeries+"[10s])[10s:1s]) > 1.1", at)
			if len(late) > 0 {
				return fmt.Errorf("a scrape was late: %v", late)
			}
			return compare(t, p, at, answersAt(t, p, queries, at))
		}, p.LogFile())
	}
	cluster.Await(t, "plausible loads of this host", func() error {
		var total, free, available float64
		_, err := fmt.Sscanf(cluster.Read(t, "/proc/meminfo"), "MemTotal: %f kB\nMemFree: %f kB\nMemAvailable: %f kB",
			&total, &free, &available)
		got := answersAt(t, p, queries, seconds(time.Now()))
		cpu, measured := got[answer{"cpu", "v", "host"}]
		memory, used := got[answer{"memory", "v", "host"}], 1-available/total
		t.Logf("this host: cpu %.4f, memory %.4f, by /proc/meminfo now %.4f", cpu, memory, used)
		// The query returns the mean over ten seconds.
		return cluster.Unless(measured && cpu >= 0 && cpu <= 1 && math.Abs(memory-used) < 0.05, "%v, %v", got, err)
	}, p.LogFile())
}

// compare compares the answers for the files with the loads that follow from the work that the node has done, and from
// the times of the samples. It returns an error if there are too few samples.
func compare(t *testing.T, p *cluster.Prometheus, at float64, got map[answer]float64) error {
	t.Helper()
	works, clocks := p.Query(t, workSeries+"[10s]", at), p.Query(t, clockSeries+"[10s]", at)
	if len(works) == 0 || len(works[0].Values) < 5 {
		return fmt.Errorf("there are too few samples")
	}
	work, clock, last, mean := works[0].Values, clocks[0].Values, len(works[0].Values)-1, 0.0
	for _, sample := range work {
		mean += (sample.Number() - workBefore) / float64(len(work))
	}
	rate := (work[last].Number() - work[0].Number()) / (clock[last].Number() - clock[0].Number())
	rates := "(rate(" + workSeries + "[10s]) / rate(" + clockSeries + "[10s]))[10s:1s]"
	deviation := p.Query(t, "stddev_over_time("+rates+")", at)[0].Value.Number()
	memoryDeviation := memoryOfWork * p.Query(t, "stddev_over_time("+workSeries+"[10s])", at)[0].Value.Number()
	for of, want := range map[answer]float64{
		{"cpu", "v", "files"}: 1 - idleOfWork*rate, {"cpu", "d", "files"}: idleOfWork * deviation,
		{"network", "v", "files"}: networkOfWork * rate, {"network", "d", "files"}: networkOfWork * deviation,
		{"diskIO", "v", "files"}: diskOfWork * rate, {"diskIO", "d", "files"}: diskOfWork * deviation,
		{"memory", "v", "files"}: memoryBefore + memoryOfWork*mean, {"memory", "d", "files"}: memoryDeviation,
	} {
		value, found := got[of]
		if t.Logf("%v: %.6f, want %.6f", of, value, want); !found || math.Abs(value-want) > 1e-6 {
			t.Errorf("%v is %v (%v), want %v", of, value, found, want)
		}
		// After a failed scrape, the time may be that of the sample before.
		when := got[answer{of.resource, "t", "files"}]
		if newest := work[last].Seconds(); when != newest && (newest == at || when != work[last-1].Seconds()) {
			t.Errorf("%s is measured at %.3f, want %.3f", of.resource, when, newest)
		}
	}
	return nil
}

// sentQueries returns the queries that the scheduler sends for the loads of some resources, one for each.
func sentQueries(t *testing.T, names []string, matchers []object) []string {
	t.Helper()
	var (
		mutex sync.Mutex
		sent  []string
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if query := r.FormValue("query"); strings.Contains(query, "nodeload_term") {
			sent = append(sent, query)
		}
		fmt.Fprint(w, `{"status": "success", "data": {"resultType": "vector", "result": []}}`)
	}))
	defer server.Close()
	var resources []object
	for _, name := range names {
		resources = append(resources, object{"name": name, "window": "10s", "strategy": "Risk"}) // Risk needs the deviation
	}
	config := (&stand{folder: t.TempDir()}).configuration(t, "queries", profile(corev1.DefaultSchedulerName,
		object{"prometheus": object{"endpoints": []string{server.URL}, "matchers": matchers}, "resources": resources}))
	output, err := exec.CommandContext(t.Context(), cluster.Program(t, "KUBE_SCHEDULER"), "--config="+config,
		"--validate-config").CombinedOutput()
	if err != nil || len(sent) != len(names) {
		t.Fatalf("%v; want %d queries, got %d; next: see what the scheduler says:\n%s", err, len(names), len(sent), output)
	}
	return sent
}

// answer identifies a number in the answers. term is v for a value, t for its time, d for its deviation.
type answer struct{ resource, term, instance string }

func answersAt(t *testing.T, p *cluster.Prometheus, queries string, at float64) map[answer]float64 {
	t.Helper()
	got, all := map[answer]float64{}, p.Query(t, queries, at)
	for _, series := range all {
		// NodeLoad's label is the index of the resource, and the term.
		label := series.Metric["nodeload_term"]
		got[answer{exported[label[0]-'0'], label[1:], series.Metric["instance"]}] = series.Value.Number()
	}
	if len(got) != len(all) {
		t.Errorf("there are two series for a node: %v", all)
	}
	return got
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
