// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// metricsAPI returns an API server that has only the metrics API, and a client for it.
func metricsAPI(t *testing.T, do http.HandlerFunc) (*MetricsServer, *server) {
	t.Helper()
	s := serve(t, do)
	kube, err := kubernetes.NewForConfig(&rest.Config{
		Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := NewMetricsServer(kube.Discovery().RESTClient(), time.Minute)
	m.now = func() time.Time { return time.Date(2024, 5, 6, 7, 8, 30, 0, time.UTC) }
	return m, s
}

func nodeMetricsList(window string) string {
	return fmt.Sprintf(`{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[
		{"metadata":{"name":"a"},"timestamp":"2024-05-06T07:08:09Z","window":%q,
			"usage":{"cpu":"1500m","memory":"2Gi"}},
		{"metadata":{"name":"b"},"timestamp":"2024-05-06T07:08:10Z","window":"15.2s","usage":{"cpu":"250000000n"}}]}`, window)
}

func askMetrics(m *MetricsServer) (Result, error) {
	return m.Ask(context.Background(), []Query{MetricsQuery("memory"), MetricsQuery("cpu")})
}

func TestMetricsServerAsk(t *testing.T) {
	m, s := metricsAPI(t, answers(200, nodeMetricsList("20s")))
	result, err := askMetrics(m)
	if err != nil {
		t.Fatal(err)
	}
	at := float64(time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC).Unix())
	want := []Row{
		{0, Value, "a", 2 << 30}, {0, Timestamp, "a", at}, {1, Value, "a", 1.5}, {1, Timestamp, "a", at},
		{1, Value, "b", 0.25}, {1, Timestamp, "b", at + 1},
	}
	if diff := cmp.Diff(want, result.Rows); diff != "" {
		t.Error(diff)
	}
	if result.Evaluated != at+21 || !result.Asked.Equal(m.now()) || result.Received.IsZero() || result.Requests != 1 ||
		result.Bytes < 100 || result.Failed != nil || result.Warnings != nil ||
		result.Endpoint != "metrics.k8s.io" {
		t.Errorf("got %+v", result)
	}
	saw := s.requests()
	if len(saw) != 1 || saw[0].method != http.MethodGet || saw[0].path != metricsPath ||
		saw[0].header.Get("Accept") != "application/json" {
		t.Errorf("the server saw %+v", saw)
	}
}

func TestMetricsServerLongWindow(t *testing.T) {
	m, _ := metricsAPI(t, answers(200, nodeMetricsList("90s")))
	result, err := askMetrics(m)
	if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "1m30s") || result.Partial {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestMetricsServerErrors(t *testing.T) {
	for name, test := range map[string]struct {
		do   http.HandlerFunc
		says string
	}{
		"not installed": {answers(404, "404 page not found"), "could not find the requested resource"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answers(403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
				`"message":"nodes.metrics.k8s.io is forbidden: User \"system:kube-scheduler\" cannot list"}`)(w, nil)
		}, "nodes.metrics.k8s.io is forbidden"},
		"not available": {answers(503, "service unavailable"), "unable to handle the request"},
		"garbage":       {answers(200, "<html>"), "not a NodeMetricsList"},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := metricsAPI(t, test.do)
			result, err := askMetrics(m)
			if text := fmt.Sprint(err); !strings.Contains(text, test.says) || !strings.Contains(text, "next: ") || len(result.Rows) > 0 {
				t.Errorf("got %+v, %v, want %q", result, err, test.says)
			}
			s.becomes(answers(200, nodeMetricsList("20s")))
			if result, err := askMetrics(m); err != nil || len(result.Rows) != 6 {
				t.Errorf("after recovery: got %+v, %v", result, err)
			}
		})
	}
}
