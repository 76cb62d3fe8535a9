// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// prometheus returns series of a known node and of an unknown one.
func prometheus(known, stranger string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := float64(time.Now().UnixNano()) / 1e9
		series := func(instance, term string, value float64) string {
			return fmt.Sprintf(`{"metric":{"instance":%q,"nodeload_term":%q},"value":[%.3f,"%.3f"]}`, instance, term, now, value)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join([]string{
			series(known, "0v", 0.5), series(known, "0t", now-5), series(stranger, "0v", 0.5), series(stranger, "0t", now-5),
		}, ","))
	})
}

// TestCheckSources queries a server as --validate-config does: without a running scheduler.
func TestCheckSources(t *testing.T) {
	server := httptest.NewServer(prometheus("node-0:9100", "elsewhere:9100"))
	defer server.Close()
	args := arguments(cpu(80))
	args.Prometheus.Endpoints = []string{server.URL}
	w := newWorld(t, args, nil)
	var out strings.Builder
	err := w.plugin.CheckSources(context.Background(), nodes(13), &out)
	for _, want := range []string{
		"4 series in 1 requests",
		"cpu: measured on 1 of 13 nodes\n",
		"cpu: missing (no_series) on 12: node-1, node-10, node-11, node-12, node-2, node-3, node-4, node-5, node-6, node-7 and 2 more\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
	if err == nil || !strings.Contains(err.Error(), `match no node, for example the one with instance="elsewhere`) {
		t.Errorf("error: %v", err)
	}
}

// TestCheckSourcesOfPods checks that a query for pods without an answer is a problem although the nodes are measured.
func TestCheckSourcesOfPods(t *testing.T) {
	server := httptest.NewServer(prometheus("node-0", "node-1"))
	defer server.Close()
	resource := cpu(80)
	resource.PodQuery, resource.PodTimestampQuery = "use", "time"
	args := arguments(resource)
	args.Prometheus.Endpoints = []string{server.URL}
	w := newWorld(t, args, nil)
	var out strings.Builder
	// The server's answer is one to the first query only.
	err := w.plugin.CheckSources(context.Background(), nodes(2), &out)
	if want := "cpu: measured for 0 pods\n"; !strings.Contains(out.String(), want) {
		t.Errorf("there is no %q in\n%s", want, out.String())
	}
	if want := "cpu is not measured for any pod; next: check the answers to podQuery"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCheckSourcesErrors(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	args := arguments(cpu(80))
	args.Prometheus.Endpoints = []string{server.URL}
	w := newWorld(t, args, nil)
	if err := w.plugin.CheckSources(context.Background(), nodes(1), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.plugin.CheckSources(ctx, nodes(1), &strings.Builder{}); err == nil {
		t.Error("no error when there is no time")
	}
}

// connected is the handle of a scheduler that has an API server.
type connected struct {
	framework.Handle
	kubeConfig *rest.Config
}

func (c connected) KubeConfig() *rest.Config { return c.kubeConfig }

// TestMetricsServerToView checks the whole path from an API server to the view.
func TestMetricsServerToView(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w,
			`{"items":[{"metadata":{"name":"node-0"},"timestamp":%q,"window":"20s","usage":{"cpu":"500m"}}]}`,
			time.Now().UTC().Format(time.RFC3339))
	}))
	defer server.Close()
	resource := cpu(80)
	resource.Query, resource.TimestampQuery, resource.DeviationQuery = "", "", ""
	resource.Unit = config.NodeLoadAbsolute
	args := arguments(resource)
	args.Source, args.Prometheus = config.NodeLoadSourceMetricsServer, config.NodeLoadPrometheus{}
	w := newWorld(t, args, nodes(2))
	collectors := collector.New()
	if err := w.plugin.join(collectors); err == nil || !strings.Contains(err.Error(), "no API server") {
		t.Errorf("without a client: %v", err)
	}
	// The scheduler's own requests have used up its rate limit.
	exhausted := flowcontrol.NewFakeNeverRateLimiter()
	w.plugin.handle = connected{w.plugin.handle, &rest.Config{Host: server.URL, QPS: 1, RateLimiter: exhausted}}
	if err := w.plugin.join(collectors); err != nil {
		t.Fatal(err)
	}
	defer w.plugin.source.(*collector.Handle).Release()
	plugintest.WaitFor(t, "a snapshot comes", func() bool { return w.plugin.current().snapshot != nil })
	found := w.plugin.current()
	if _, got := found.sample("node-1", 0); got != collector.NoSeries {
		t.Errorf("node-1: %v", got)
	}
	sample := found.snapshot.Nodes["node-0"][0]
	if sample.Missing != collector.Present || sample.Value != 0.5 || time.Since(time.Unix(0, sample.At)) > time.Minute {
		t.Errorf("node-0: %+v, want half a core a moment ago", sample)
	}
	var out strings.Builder
	if err := w.plugin.CheckSources(context.Background(), nodes(2), &out); err != nil || !strings.Contains(out.String(), "next: kubectl top nodes") {
		t.Errorf("the check of the configuration: %v, %s", err, out.String())
	}
}
