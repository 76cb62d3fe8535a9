// SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/localcluster"
)

// get asks the scheduler itself for a page, as an administrator.
func (s *stand) get(scheduler *localcluster.Scheduler, path string) ([]byte, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Timeout = 10 * time.Second // it is asked again if it does not answer
	response, err := client.Get(scheduler.URL() + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, content)
	}
	return content, err
}

// metric is a line of /metrics.
type metric struct {
	name   string
	labels map[string]string
	value  float64
}

// metrics are all of a scheduler's.
type metrics []metric

var (
	metricLine  = regexp.MustCompile(`(?m)^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$`)
	metricLabel = regexp.MustCompile(`([a-z0-9_]+)="((?:[^"\\]|\\.)*)"`)
)

func (s *stand) metrics(scheduler *localcluster.Scheduler) (metrics, error) {
	content, err := s.get(scheduler, "/metrics")
	if err != nil {
		return nil, err
	}
	var all metrics
	for _, line := range metricLine.FindAllStringSubmatch(string(content), -1) {
		value, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line[0], err)
		}
		labels := map[string]string{}
		for _, label := range metricLabel.FindAllStringSubmatch(line[2], -1) {
			labels[label[1]] = label[2]
		}
		all = append(all, metric{line[1], labels, value})
	}
	return all, nil
}

// mustMetrics reads the metrics of a scheduler that is there.
func (s *stand) mustMetrics(t *testing.T, scheduler *localcluster.Scheduler) metrics {
	t.Helper()
	var all metrics
	s.await(t, "the metrics", func() (_ string, err error) {
		all, err = s.metrics(scheduler)
		return "", err
	})
	return all
}

// sum adds up a metric of the plugin over all series that have some labels, each given as name=value. The plugin's prefix is
// left out of the name.
func (m metrics) sum(name string, labels ...string) float64 {
	return m.sumOf("scheduler_node_load_"+name, labels...)
}

// sumOf is sum for a metric of any name.
func (m metrics) sumOf(name string, labels ...string) float64 {
	var sum float64
series:
	for _, metric := range m {
		if metric.name != name {
			continue
		}
		for _, label := range labels {
			if key, value, _ := strings.Cut(label, "="); metric.labels[key] != value {
				continue series
			}
		}
		sum += metric.value
	}
	return sum
}

// refreshes counts the refreshes that got an answer to all queries, and the others.
func (m metrics) refreshes() (good, bad float64) {
	good = m.sum("refresh_total", "result=success")
	return good, m.sum("refresh_total") - good
}
