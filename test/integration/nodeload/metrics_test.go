// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kube-scheduler-fork/build/localcluster"
)

// metric is a line of /metrics.
type metric struct {
	name   string
	labels map[string]string
	value  float64
}

// metrics are all metrics of a scheduler.
type metrics []metric

var (
	metricLine  = regexp.MustCompile(`(?m)^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$`)
	metricLabel = regexp.MustCompile(`([a-z0-9_]+)="((?:[^"\\]|\\.)*)"`)
)

func (s *stand) metrics(scheduler *localcluster.Scheduler) (metrics, error) {
	content, err := s.Get(context.Background(), scheduler.URL()+"/metrics")
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

// mustMetrics returns the metrics of a running scheduler.
func (s *stand) mustMetrics(t *testing.T, scheduler *localcluster.Scheduler) metrics {
	t.Helper()
	var all metrics
	s.await(t, "the metrics", func() (err error) {
		all, err = s.metrics(scheduler)
		return err
	})
	return all
}

// sum returns the sum of a metric of the plugin over all series with some
// labels, each in the form name=value. The name is without the plugin's prefix.
func (m metrics) sum(name string, labels ...string) float64 {
	return m.sumOf("scheduler_node_load_"+name, labels...)
}

// sumOf is sum for any metric.
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
