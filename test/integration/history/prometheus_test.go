// SPDX-License-Identifier: Apache-2.0

// Package history tests the histories of clusters against real servers.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-scheduler-fork/build/history"
	"kube-scheduler-fork/test/cluster"
)

// exporter writes the samples that a Prometheus has of kube-state-metrics 2.18: each 30 seconds what is there.
type exporter struct {
	samples map[string][]string
	start   int64
}

// put adds a series with the same value in the scrapes between two times, in seconds since the start.
func (e *exporter) put(metric, labels string, value float64, from, to int) {
	if e.samples == nil {
		e.samples = map[string][]string{}
	}
	for at := (from + 29) / 30 * 30; at <= to; at += 30 {
		e.samples[metric] = append(e.samples[metric], fmt.Sprintf("%s{%s} %v %d\n", metric, labels, value, e.start+int64(at)))
	}
}

// pod adds a pod's series.
func (e *exporter) pod(extra, name, uid, owner, node string, created, scheduled, from, to int) {
	id := fmt.Sprintf(`namespace="shop",pod="%s",uid="%s"%s`, name, uid, extra)
	kind, of, _ := strings.Cut(owner, "/")
	e.put("kube_pod_info", fmt.Sprintf(`%s,node="%s",created_by_kind="%s",created_by_name="%s",priority_class="",host_network="false"`, id, node, kind, of), 1, from, to)
	e.put("kube_pod_created", id, float64(e.start)+float64(created), from, to)
	e.put("kube_pod_status_scheduled_time", id, float64(e.start)+float64(scheduled), from, to)
	e.put("kube_pod_container_resource_requests", id+`,container="app",resource="cpu",unit="core",node="`+node+`"`, 0.25, from, to)
	e.put("kube_pod_container_resource_requests", id+`,container="app",resource="nvidia_com_gpu",unit="integer",node="`+node+`"`, 1, from, to)
}

// cluster adds a cluster with a node.
func (e *exporter) cluster(extra string, created float64, from, to int) {
	e.put("kube_namespace_created", `namespace="kube-system"`+extra, created, from, to)
	e.put("kube_node_info", `node="a"`+extra, 1, from, to)
	e.put("kube_node_created", `node="a"`+extra, float64(e.start)-1000, from, to)
	e.put("kube_node_status_allocatable", `node="a",resource="cpu",unit="core"`+extra, 3.92, from, to)
}

func (e *exporter) text() string {
	text := ""
	for metric, samples := range e.samples {
		text += "# TYPE " + metric + " gauge\n" + strings.Join(samples, "")
	}
	return text
}

// brief returns the lines of a history in short.
func brief(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		e := history.Event{}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		text := time.Duration(e.Time).String()
		switch node, _ := e.Node.(map[string]any); {
		case strings.HasPrefix(line, `{"history"`):
			continue
		case e.Change != "":
			spec, _ := json.Marshal(node["spec"])
			text += fmt.Sprintf(" node %s %s", e.Change, spec)
		case e.Pod != nil:
			metadata := e.Pod.(map[string]any)["metadata"].(map[string]any)
			text += fmt.Sprintf(" pod %s", metadata["name"])
		case e.Like != "":
			text += fmt.Sprintf(" pod %s like %s", e.Name, e.Like)
		case e.Gap != nil:
			text += " gap " + time.Duration(*e.Gap).String()
		case e.Last:
			text += " last"
		default:
			for verb, of := range map[string]string{"bound": e.Bound, "delete": e.Delete, "ended": e.Ended, "use": e.Of} {
				if of != "" {
					text += " " + verb + " " + of
				}
			}
			if e.Use != nil { // Windows begin at any second.
				text = fmt.Sprintf("%v use %s %v", time.Duration(e.Time).Truncate(time.Hour), e.Of, e.Use)
			}
		}
		if e.Age != nil {
			text += " age " + time.Duration(*e.Age).String()
		}
		if e.On != "" {
			text += " on " + e.On
		}
		lines = append(lines, text)
	}
	return lines
}

func TestFromPrometheusSeries(t *testing.T) {
	const end = 2 * 3600
	whole := func(e *exporter) { e.cluster("", 5, 0, end) }
	common := "0s node add {}"
	for _, test := range []struct {
		name     string
		make     func(*exporter)
		matchers string
		flags    []string
		// lines are those of the history, and says are parts of what is printed, or of the error if there are no lines.
		lines, says []string
	}{
		{name: "pods that come, wait, run and end", make: func(e *exporter) {
			whole(e)
			e.pod("", "early", "u0", "ReplicaSet/a", "a", -600, -590, 0, end)
			e.pod("", "deleted", "u1", "ReplicaSet/a", "a", 3601, 3603, 3605, 4205)
			e.put("kube_pod_deletion_timestamp", `namespace="shop",pod="deleted",uid="u1"`, float64(e.start)+4210, 4190, 4205)
			e.pod("", "complete", "u2", "Job/j", "a", 100, 101, 101, 1000)
			e.put("kube_pod_status_phase", `namespace="shop",pod="complete",uid="u2",phase="Succeeded"`, 1, 700, 1000)
			e.put("kube_pod_completion_time", `namespace="shop",pod="complete",uid="u2"`, float64(e.start)+682, 690, 1000)
			e.pod("", "once", "u3", "Job/k", "a", 5000, 5001, 5001, 5010)
		}, lines: []string{common, "0s pod early age 10m0s on a", "1m40s pod complete like shop/early", "1m41s bound shop/complete on a", "11m22s ended shop/complete",
			"1h0m1s pod deleted like shop/early", "1h0m3s bound shop/deleted on a", "1h9m40s delete shop/deleted", "1h10m15s ended shop/deleted",
			"1h23m20s pod once like shop/early", "1h23m21s bound shop/once on a", "1h23m45s ended shop/once", "2h0m0s last"},
			says: []string{"4 pod(s), of which 3 were bound", "1 pod(s) were seen in one scrape", "1 resource(s) have the name unknown.history"}},
		{name: "a gap", make: func(e *exporter) {
			e.cluster("", 5, 0, 3000)
			e.cluster("", 5, 4200, end)
			e.pod("", "over", "u0", "ReplicaSet/a", "a", -600, -590, 0, 3000)
			e.pod("", "over", "u0", "ReplicaSet/a", "a", -600, -590, 4200, end)
			e.pod("", "in", "u1", "ReplicaSet/a", "a", -60, -59, 0, 3000)
		}, lines: []string{common, "0s pod over age 10m0s on a", "0s pod in like shop/over age 1m0s on a", "50m0s gap 20m0s", "1h0m0s delete shop/in", "1h0m0s ended shop/in", "2h0m0s last"},
			says: []string{"1 gap(s), of 20m0s in all", "1 pod(s) ended in a gap"}},
		{name: "series that end early", make: func(e *exporter) {
			e.cluster("", 5, 0, 6000)
			e.pod("", "a", "u0", "ReplicaSet/a", "a", -600, -590, 0, 6000)
		}, lines: []string{common, "0s pod a age 10m0s on a", "1h40m0s last"}, says: []string{"the history ends with the last scrape"}},
		{name: "pods that ended before the start", make: func(e *exporter) {
			e.cluster("", 5, -9000, end)
			e.pod("", "before", "u0", "Job/a", "a", -3900, -3890, -3900, -3690)
			e.pod("", "complete", "u1", "Job/a", "a", -3900, -3890, -3900, -3000)
			e.put("kube_pod_status_phase", `namespace="shop",pod="complete",uid="u1",phase="Failed"`, 1, -3800, -3000)
		}, lines: []string{common}, says: []string{"0 pod(s), of which 0 were bound", "1 pod(s) ended before the start"}},
		{name: "two clusters", make: func(e *exporter) {
			e.cluster(`,cluster="x"`, 5, 0, end)
			e.cluster(`,cluster="y"`, 6, 0, end)
		}, says: []string{"two clusters", "different creation times", `--matchers 'cluster="x"'`}},
		{name: "one of two clusters", matchers: `cluster="x"`, make: func(e *exporter) {
			e.cluster(`,cluster="x"`, 5, 0, end)
			e.cluster(`,cluster="y"`, 6, 0, end)
			e.pod(`,cluster="x"`, "a", "u0", "ReplicaSet/a", "a", -600, -590, 0, end)
			e.pod(`,cluster="y"`, "b", "u1", "ReplicaSet/a", "a", -600, -590, 0, end)
		}, lines: []string{common, "0s pod a age 10m0s on a", "2h0m0s last"}},
		{name: "replicas", make: func(e *exporter) {
			for _, instance := range []string{`,instance="1"`, `,instance="2"`} {
				e.cluster(instance, 5, 0, end)
				e.pod(instance, "a", "u0", "ReplicaSet/a", "a", -600, -590, 0, end)
			}
			e.put("kube_pod_completion_time", `namespace="shop",pod="a",uid="u0"`, float64(e.start)+100, 120, 150) // A container began again.
		}, lines: []string{common, "0s pod a age 10m0s on a", "2h0m0s last"}, says: []string{"1 more target(s) of kube-state-metrics"}},
		{name: "labels renamed", make: func(e *exporter) {
			id := `namespace="kube-system",pod="kube-state-metrics",uid="u0",exported_namespace="shop",exported_pod="a"`
			e.cluster(`,exported_namespace="kube-system"`, 5, 0, end)
			e.put("kube_namespace_created", `namespace="kube-system",exported_namespace="shop"`, 77, 0, end)
			e.put("kube_pod_info", id+`,node="a"`, 1, 0, end)
			e.put("kube_pod_created", id, float64(e.start)-600, 0, end)
			e.put("kube_pod_status_scheduled_time", id, float64(e.start)-590, 0, end)
			waits := strings.NewReplacer("u0", "u1", `"a"`, `"waits"`).Replace(id) // The scrape gives it the node of kube-state-metrics.
			e.put("kube_pod_info", waits+`,node="a"`, 1, 120, end)
			e.put("kube_pod_created", waits, float64(e.start)+100, 120, end)
		}, lines: []string{common, "0s pod a age 10m0s on a", "1m40s pod waits like shop/a", "2h0m0s last"}, says: []string{"7 series have labels such as exported_pod", "0 series kube_pod_container_resource_requests"}},
		{name: "a name that is used again, and clocks that run backwards", make: func(e *exporter) {
			whole(e)
			e.pod("", "a-0", "u0", "StatefulSet/a", "a", 100, 90, 120, 660)
			e.pod("", "a-0", "u1", "StatefulSet/a", "a", 605, 606, 630, end)
			e.pod("", "b-0", "u3", "StatefulSet/a", "a", 200, 900, 220, 660)
			e.pod("", "b-0", "u4", "StatefulSet/a", "a", 605, 906, 630, end)
			e.pod("", "..", "u2", "", "a", 605, 606, 630, end)
		}, lines: []string{common, "1m40s pod a-0", "1m40s bound shop/a-0 on a", "3m20s pod b-0", "10m5s delete shop/a-0", "10m5s ended shop/a-0",
			"10m5s bound shop/b-0 on a", "10m5s delete shop/b-0", "10m5s ended shop/b-0", "10m5s pod a-0 like shop/a-0", "10m5s pod b-0 like shop/a-0", "10m6s bound shop/a-0 on a", "15m6s bound shop/b-0 on a", "2h0m0s last"},
			says: []string{"2 pod(s) have no time of their creation or binding, or times that cannot be", "2 pod(s) ended, as far as is known, after", "1 pod(s) are left out: their names are not valid"}},
		{name: "nodes that come and go, and use", make: func(e *exporter) {
			e.cluster("", 5, 0, end)
			e.put("kube_node_info", `node="b"`, 1, 3000, 3300)
			e.put("kube_node_created", `node="b"`, float64(e.start)+2990, 3000, 3300)
			e.put("kube_node_info", `node="c"`, 1, 0, end)
			e.put("kube_node_created", `node="c"`, float64(e.start)-50, 0, 3900)
			e.put("kube_node_created", `node="c"`, float64(e.start)+3990, 4000, end)
			e.pod("", "a", "", "ReplicaSet/a", "a", -600, -590, 0, end)
			e.put("container_memory_working_set_bytes", `namespace="shop",pod="a",container="app"`, 1000, 0, 3600)
			e.put("container_memory_working_set_bytes", `namespace="shop",pod="a",container="app",service="twice"`, 1000, 0, 3600)
			e.put("container_memory_working_set_bytes", `namespace="shop",pod="a",container="app"`, 5000, 3900, end)
		}, lines: []string{common, common, "0s pod a age 10m0s on a", "0s use shop/a map[memory:1000]", "49m50s node add {}", "55m15s node remove", "1h0m0s use shop/a", "1h6m30s node add {}"},
			says: []string{"3 node(s)", "1 node(s) were made anew", "1 pod(s) have no uid"}},
		{name: "a Prometheus that allows few samples", flags: []string{"--query.max-samples=2000"}, make: func(e *exporter) {
			whole(e)
			for i := range 50 {
				e.pod("", fmt.Sprint("a-", i), fmt.Sprint("u", i), "ReplicaSet/a", "a", 60*i+1, 60*i+3, 60*i+5, 60*i+600)
			}
		}, says: []string{"50 pod(s), of which 50 were bound"}, lines: []string{common, "1s pod a-0"}},
		{name: "no series", make: func(e *exporter) { e.put("up", "", 1, 0, end) }, says: []string{"no series kube_namespace_created", "curl -G"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			now := time.Now().Unix()
			e := &exporter{start: now - end - now%30}
			test.make(e)
			prometheus := cluster.NewPrometheus(t)
			prometheus.Flags = test.flags
			prometheus.StartWith(t, e.text())
			var said bytes.Buffer
			out := filepath.Join(t.TempDir(), "history.jsonl")
			err := history.FromPrometheusSeries(t.Context(), history.PrometheusOptions{URL: prometheus.URL(), Since: 3 * time.Hour, Out: out, By: "test", Progress: &said, Matchers: test.matchers})
			text := fmt.Sprint(err, "\n", said.String())
			for _, part := range test.says {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in:\n%s", part, text)
				}
			}
			if test.lines == nil {
				if _, failed := os.Stat(out); err == nil || failed == nil {
					t.Errorf("%v, and a file is there: %v", err, failed == nil)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if lines := brief(t, out); !slices.EqualFunc(lines[:min(len(lines), len(test.lines))], test.lines, strings.HasPrefix) {
				t.Errorf("%s\nwant:\n%s\n%s", strings.Join(lines, "\n"), strings.Join(test.lines, "\n"), text)
			}
		})
	}
}

// skip skips a byte.
func skip(r io.Reader) io.Reader {
	_, _ = r.Read(make([]byte, 1))
	return r
}

// stopping cancels when it has sent a number of requests.
type stopping struct {
	left   int
	cancel func()
	// partial is whether answers are as of a VictoriaMetrics that lacks a store.
	partial bool
}

func (s *stopping) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.left--; s.left == 0 {
		s.cancel()
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && s.partial {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(`{"isPartial":true,`), skip(response.Body)), response.Body}
	}
	return response, err
}

// TestFromPrometheusSeriesGoesOn stops a command, cuts the last line of its journal, and begins it again.
func TestFromPrometheusSeriesGoesOn(t *testing.T) {
	now := time.Now().Unix()
	e := &exporter{start: now - 7200 - now%30}
	e.cluster("", 5, 0, 7200)
	for i := range 20 {
		e.pod("", fmt.Sprint("a-", i), fmt.Sprint("u", i), "ReplicaSet/a", "a", 300*i+1, 300*i+3, 300*i+5, 300*i+600)
	}
	prometheus := cluster.NewPrometheus(t)
	prometheus.StartWith(t, e.text())
	out := filepath.Join(t.TempDir(), "history.jsonl")
	all := 0
	run := func(out, matchers string, requests int) (string, int, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var said bytes.Buffer
		transport := &stopping{left: requests, cancel: cancel, partial: requests == all*3/4}
		err := history.FromPrometheusSeries(ctx, history.PrometheusOptions{URL: prometheus.URL(), Since: 3 * time.Hour, Out: out, Progress: &said, Matchers: matchers, Transport: transport})
		return said.String(), requests - transport.left, err
	}
	whole, requests, err := run(out+"2", "", 1e6)
	if all = requests; err != nil || strings.Contains(whole, "partial") {
		t.Fatal(whole, err)
	}
	if said, _, err := run(out, "", all*3/4); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "goes on where this one stopped") {
		t.Fatalf("%v\n%s", err, said)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a history that is not complete is there")
	}
	journal, err := os.OpenFile(out+".journal", os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = journal.WriteString(`{"q":"kube_pod_cre`)
		err = errors.Join(err, journal.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if said, _, err := run(out, `namespace="other"`, all/2); err == nil || !strings.Contains(said, "of another command, and begun anew") {
		t.Errorf("another command: %v\n%s", err, said)
	}
	if said, _, err := run(out, "", all*3/4); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v\n%s", err, said)
	}
	said, requests, err := run(out, "", 1e6)
	if err != nil || !strings.Contains(said, "goes on at") || !strings.Contains(said, "partial") || requests > all/2 {
		t.Errorf("%v after %d of %d requests\n%s", err, requests, all, said)
	}
	if a, b := brief(t, out), brief(t, out+"2"); !slices.Equal(a, b) {
		t.Errorf("%s\n\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	if left, _ := filepath.Glob(out + ".*"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestFromPrometheusSeriesTakesTemplates takes what the series lack from the objects of the cluster.
func TestFromPrometheusSeriesTakesTemplates(t *testing.T) {
	now := time.Now().Unix()
	e := &exporter{start: now - 3600 - now%30}
	e.cluster("", float64(e.start), 0, 3600)
	e.put("kube_node_info", `node="gone"`, 1, 0, 600)
	e.put("kube_node_labels", `node="gone",label_example_com_pool="x",label_other="y"`, 1, 0, 600)
	e.pod("", "web-1", "u0", "ReplicaSet/web-old", "a", 1, 2, 5, 3600)
	e.put("kube_replicaset_owner", `namespace="shop",replicaset="web-old",owner_kind="Deployment",owner_name="web"`, 1, 0, 3600)
	e.pod("", "log-1", "u1", "DaemonSet/log", "a", 1, 2, 5, 3600)
	e.put("kube_pod_resource_request", `namespace="shop",pod="log-1",resource="cpu",scheduler="mine",priority="7"`, 0.5, 5, 3600)
	id := `namespace="shop",pod="log-1",uid="u1",container="proxy"`
	e.put("kube_pod_init_container_info", id+`,restart_policy="Always"`, 1, 5, 3600)
	e.put("kube_pod_init_container_resource_requests", id+`,resource="cpu",unit="core"`, 0.1, 5, 3600)
	e.pod("", "lost-1", "u2", "Job/lost", "a", 1, 2, 5, 3600)
	prometheus := cluster.NewPrometheus(t)
	prometheus.StartWith(t, e.text())
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{
		"nodeSelector": map[string]any{"example.com/pool": "x"}, "initContainers": []any{map[string]any{"name": "proxy"}}, "containers": []any{map[string]any{"name": "app", "image": "i",
			"resources": map[string]any{"requests": map[string]any{"cpu": "9", "memory": "1Gi", "nvidia.com/gpu": "1"}, "limits": map[string]any{"memory": "1Gi"}}}}}}
	objects := map[string]map[string]any{
		"namespaces": {"metadata": map[string]any{"name": "kube-system", "uid": "c", "creationTimestamp": time.Unix(e.start, 0).UTC().Format(time.RFC3339)}},
		"nodes": {"metadata": map[string]any{"name": "a", "creationTimestamp": time.Unix(e.start-1000, 0).UTC().Format(time.RFC3339)},
			"spec": map[string]any{"taints": []any{map[string]any{"key": "k", "effect": "NoSchedule"}, map[string]any{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}}}},
		"deployments": {"metadata": map[string]any{"namespace": "shop", "name": "web"}, "spec": map[string]any{"template": template}},
		"daemonsets":  {"metadata": map[string]any{"namespace": "shop", "name": "log"}, "spec": map[string]any{"template": template}},
	}
	live := func(_ context.Context, _, resource string, visit func(map[string]any) error) error {
		if objects[resource] == nil {
			return nil
		}
		return visit(objects[resource])
	}
	out, said := filepath.Join(t.TempDir(), "history.jsonl"), bytes.Buffer{}
	options := history.PrometheusOptions{URL: prometheus.URL(), Since: 2 * time.Hour, Out: out, Progress: &said, Live: live}
	if err := history.FromPrometheusSeries(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v: %v", info.Mode(), err)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"cluster":"c"`, `"example.com/pool":"x","kubernetes.io/hostname":"gone"`,
		`"pod":{"metadata":{"labels":{"app":"web"},"name":"web-1","namespace":"shop"},"spec":{"containers":[{"image":"i","name":"app","resources":{"requests":{"cpu":"250m","nvidia.com/gpu":"1"}}}],"initContainers":[{"name":"proxy","resources":{}}],` +
			`"nodeSelector":{"example.com/pool":"x"}}},"owner":"ReplicaSet/web-old","workload":"Deployment/web"`,
		`"matchFields":[{"key":"metadata.name","operator":"In","values":["a"]}]`, `"priority":7,"schedulerName":"mine"`,
		`"taints":[{"effect":"NoSchedule","key":"k"}]`, `,{"name":"proxy","resources":{"requests":{"cpu":"100m"}}}]`} {
		if !strings.Contains(string(content), part) {
			t.Errorf("%s is not in\n%s", part, content)
		}
	}
	for _, part := range []string{`1 pod(s) have no template: their owner is gone, or has none ("Job")`, "1 pod(s) have the template of what made their owner",
		"1 label(s) of nodes without an object are left out"} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("%q is not in\n%s", part, said.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.Live = func(context.Context, string, string, func(map[string]any) error) error { cancel(); return nil }
	if err := history.FromPrometheusSeries(ctx, options); err == nil || !strings.Contains(err.Error(), "goes on where this one stopped") {
		t.Errorf("stopped when all is read: %v", err)
	}
	options.Live = live
	objects["namespaces"]["metadata"].(map[string]any)["creationTimestamp"] = "2001-01-01T00:00:00Z"
	if err := history.FromPrometheusSeries(t.Context(), options); err == nil || !strings.Contains(err.Error(), "of another cluster") {
		t.Errorf("objects of another cluster: %v", err)
	}
}
