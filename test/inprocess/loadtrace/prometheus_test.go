// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// window is the time over which loads are averaged: many scrapes, but short enough for a test.
const window = 10 * time.Second

// prometheus is a real Prometheus that scrapes the nodes of a reality each second.
type prometheus struct {
	url   string
	nodes int
	api   prometheusv1.API
}

// program returns the Prometheus to run. The test fails without one, because a test that is skipped looks like success.
func program(t *testing.T) string {
	t.Helper()
	const variable = "PROMETHEUS"
	file := os.Getenv(variable)
	if !filepath.IsAbs(file) {
		t.Fatalf("the environment variable %s is %q, not the absolute path of a program; next: make test TESTS=load-trace",
			variable, file)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s: %v; next: give the absolute path of a prometheus", variable, err)
	}
	return file
}

// listening matches the line of Prometheus' log with its port.
var listening = regexp.MustCompile(`msg="Listening on" .*address=(\S+)`)

// newPrometheus starts a Prometheus. It is stopped at the end of the test.
func newPrometheus(t *testing.T, reality *reality) *prometheus {
	t.Helper()
	exporter := httptest.NewServer(reality)
	t.Cleanup(exporter.Close)
	var targets []string
	for _, node := range reality.nodes {
		targets = append(targets, address(node))
	}
	type object = map[string]any
	config, err := json.Marshal(object{
		"global": object{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": []object{{
			"job_name":       "node",
			"static_configs": []object{{"targets": targets}},
			"relabel_configs": []object{
				{"source_labels": []string{"__address__"}, "target_label": "instance"},
				{"source_labels": []string{"__address__"}, "target_label": "__param_node"},
				{"target_label": "__address__", "replacement": exporter.Listener.Addr().String()},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program(t), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address=127.0.0.1:0")
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	// The log is stored for a failed start, and read to the end, because a full pipe would block Prometheus.
	addresses := make(chan string, 1)
	go func() {
		var log strings.Builder
		defer close(addresses)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				addresses <- found[1]
				_, _ = io.Copy(io.Discard, output)
				return
			}
			log.WriteString(lines.Text() + "\n")
		}
		fmt.Fprintf(os.Stderr, "Prometheus ended before it listened:\n%s", log.String())
	}()
	listens, ok := <-addresses
	if !ok {
		t.Fatalf("Prometheus does not start; next: read what it says")
	}
	client, err := newClient("http://" + listens)
	if err != nil {
		t.Fatal(err)
	}
	return &prometheus{url: "http://" + listens, nodes: len(targets), api: client}
}

func newClient(url string) (prometheusv1.API, error) {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return nil, err
	}
	return prometheusv1.NewAPI(client), nil
}

// warm reports whether each node has half a window of measurements. On a slow, busy machine some are always missing.
func (p *prometheus) warm(ctx context.Context) bool {
	query := fmt.Sprintf(`count(count_over_time(node_cpu_seconds_total{mode="idle",cpu="0"}[%s]) >= 5)`, model.Duration(window))
	answer, _, err := p.api.Query(ctx, query, time.Time{})
	if err != nil {
		return false
	}
	vector, ok := answer.(model.Vector)
	return ok && len(vector) == 1 && int(vector[0].Value) == p.nodes
}

// queries returns the number of queries that Prometheus has answered so far, by its own metrics.
func (p *prometheus) queries(t *testing.T) int {
	t.Helper()
	answer, err := http.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if !strings.HasPrefix(series, "prometheus_http_requests_total{") || !strings.Contains(series, `handler="/api/v1/query"`) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return int(sum)
}
