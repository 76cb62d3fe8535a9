// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// resetMetrics removes the values of other tests.
func resetMetrics() {
	for _, reset := range []func(){refreshes.Reset, nodeStates.Reset, sampleAge.Reset, unmatchedSeries.Reset, responseBytes.Reset} {
		reset()
	}
}

// expectMetrics compares the metrics that are not zero with lines of their text form.
func expectMetrics(t *testing.T, want ...string) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		name := strings.TrimPrefix(family.GetName(), "scheduler_node_load_")
		if name == family.GetName() || name == "refresh_duration_seconds" {
			continue
		}
		for _, metric := range family.Metric {
			value, text := metric.GetGauge().GetValue()+metric.GetCounter().GetValue(), name
			if value == 0 {
				continue
			}
			for _, label := range metric.Label {
				if label.GetName() != "source" {
					text += " " + label.GetValue()
				} else if label.GetValue() != "0" {
					t.Errorf("%s is of source %s", name, label.GetValue())
				}
			}
			got[text+" "+trim(value)] = true
		}
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("no metric is %q", line)
		}
		delete(got, line)
	}
	for line := range got {
		t.Errorf("a metric is %q, which is not expected", line)
	}
}

func trim(value float64) string {
	return strings.TrimSuffix(time.Duration(value*float64(time.Second)).String(), "s")
}

func TestMetrics(t *testing.T) {
	resetMetrics()
	refreshDuration.Reset()
	w := newMeasuredWorld(t, spec("cpu", "memory"), makeNodes(4)...)
	w.answerWith(func(*source.Result) { w.clock.Step(2 * time.Second) }, rows(
		measuredRows(0, "node-1", 0.5, 10*time.Second), measuredRows(0, "node-2", 0.5, 30*time.Second),
		measuredRows(0, "node-3", nan, 40*time.Second), measuredRows(0, "stranger", 0.5, 0),
	)...)
	expectMetrics(t, "refresh_total success 1", "unmatched_series cpu 2", "response_bytes 13m20", "sample_age_seconds cpu 32",
		"nodes cpu fresh 2", "nodes cpu not_a_number 1", "nodes cpu no_series 1", "nodes memory no_series 4")
	if count, err := testutil.GetHistogramMetricCount(refreshDuration.WithLabelValues("0")); err != nil || count != 1 {
		t.Errorf("%d durations were observed (%v), want 1", count, err)
	}
	if sum, err := testutil.GetHistogramMetricValue(refreshDuration.WithLabelValues("0")); err != nil || sum != 2 {
		t.Errorf("the durations are %v s together (%v), want 2", sum, err)
	}

	// Without answers the samples age, and one of them becomes too old.
	w.clock.Step(2*time.Minute + 35*time.Second)
	w.fail(errDown)
	expectMetrics(t, "refresh_total success 1", "refresh_total failure 1", "unmatched_series cpu 2", "response_bytes 13m20",
		"sample_age_seconds cpu 3m7", "nodes cpu fresh 1", "nodes cpu too_old 1", "nodes cpu not_a_number 1", "nodes cpu no_series 1",
		"nodes memory no_series 4")

	w.clock.Step(time.Minute)
	w.answerWith(func(result *source.Result) { result.Failed, result.Bytes = map[int]error{1: errors.New("bad")}, 10 })
	expectMetrics(t, "refresh_total success 1", "refresh_total failure 1", "refresh_total partial 1", "response_bytes 10",
		"nodes cpu no_series 4", "nodes memory query_failed 4")
}

// TestMetricsOfTwoProfiles checks that a second query with the name cpu has its own label.
func TestMetricsOfTwoProfiles(t *testing.T) {
	resetMetrics()
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(4)...)
	other := spec("cpu")
	other.Resources[0].Value = "other"
	w.join(other)
	w.answer(measuredRows(1, "node-1", 0.5, 20*time.Second)...)
	expectMetrics(t, "refresh_total success 1", "response_bytes 3m20",
		"nodes cpu no_series 4", "nodes cpu#2 fresh 1", "nodes cpu#2 no_series 3", "sample_age_seconds cpu#2 20")
}

// TestMetricsClockSetBack checks that samples in the future count as too old: their age is unknown.
func TestMetricsClockSetBack(t *testing.T) {
	resetMetrics()
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(1)...)
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	for _, step := range []struct {
		now   time.Duration
		fresh int
		state string
	}{{-10 * time.Second, 1, "fresh"}, {-11 * time.Second, 0, "too_old"}, {-time.Hour, 0, "too_old"}} {
		w.clock.SetTime(start.Add(step.now))
		w.fail(errDown)
		if got := w.state().FreshNodes; got != step.fresh {
			t.Errorf("%v: %d nodes are fresh, want %d", step.now, got, step.fresh)
		}
		if value := plugintest.MetricValue(t, nodeStates.WithLabelValues("0", "cpu", step.state)); value != 1 {
			t.Errorf("%v: %v nodes are %s, want 1", step.now, value, step.state)
		}
	}
}

// TestMetricsWithoutAnswer checks that nodes are counted as not fresh, for alerts.
func TestMetricsWithoutAnswer(t *testing.T) {
	resetMetrics()
	w := newMeasuredWorld(t, spec("cpu"), makeNodes(3)...)
	w.fail(errDown)
	expectMetrics(t, "refresh_total failure 1", "nodes cpu query_failed 3")
	if value := plugintest.MetricValue(t, nodeStates.WithLabelValues("0", "cpu", "fresh")); value != 0 {
		t.Errorf("%v nodes are fresh, want 0", value)
	}
}
