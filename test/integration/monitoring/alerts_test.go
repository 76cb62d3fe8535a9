// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// exported is the data of an exporter for four nodes: the first is hot, the last has no measurement, only one has a
// measurement of its memory, and one is not a node of the cluster.
const exported = `# TYPE test_cpu_ratio gauge
test_cpu_ratio{instance="node-1"} 0.95
test_cpu_ratio{instance="node-2"} 0.2
test_cpu_ratio{instance="node-3"} 0.1
test_cpu_ratio{instance="stranger"} 0.1
# TYPE test_memory_ratio gauge
test_memory_ratio{instance="node-1"} 0.5
# TYPE test_cores gauge
test_cores{instance="node-1"} 6
test_cores{instance="node-2"} 1
test_cores{instance="node-3"} 1
`

// schedulerConfig has a profile for each subject of alerts. %[1]s is Prometheus, and no program answers at %[2]s. A
// failed scrape ends the raw series until the next one, so the queries use the last sample of a minute.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: &plugins
      multiPoint:
        enabled:
          - name: NodeLoad
    pluginConfig:
      - name: NodeLoad
        args:
          prometheus: &prometheus
            endpoints: ["%[1]s"]
          refreshInterval: 1s
          resources:
            - &cpu
              name: cpu
              query: last_over_time(test_cpu_ratio[1m])
              timestampQuery: max_over_time(timestamp(test_cpu_ratio)[1m:1s])
              threshold: 80
            - name: memory
              query: last_over_time(test_memory_ratio[1m])
              timestampQuery: max_over_time(timestamp(test_memory_ratio)[1m:1s])
              threshold: 80
  - schedulerName: bad-query
    plugins: *plugins
    pluginConfig:
      - name: NodeLoad
        args:
          prometheus: *prometheus
          refreshInterval: 1s
          resources:
            - name: pressure
              query: sum by (instance) (test_cpu_ratio
              timestampQuery: timestamp(test_cpu_ratio)
  - schedulerName: wrong-label
    plugins: *plugins
    pluginConfig:
      - name: NodeLoad
        args:
          prometheus: *prometheus
          refreshInterval: 1s
          nodeMatch: {label: job, by: Name}
          resources: [*cpu]
  - schedulerName: no-answer
    plugins: *plugins
    pluginConfig:
      - name: NodeLoad
        args:
          prometheus: {endpoints: ["%[2]s"]}
          refreshInterval: 1s
          resources: [*cpu]
  - schedulerName: overcommit
    plugins:
      multiPoint:
        enabled:
          - name: Overcommit
    pluginConfig:
      - name: Overcommit
        args:
          prometheus: *prometheus
          refreshInterval: 1s
          predictor: NSigma
          queries:
            nodeMean: last_over_time(test_cores[1m])
            nodeDeviation: 0 * last_over_time(test_cores[1m])
            nodeTimestamp: max_over_time(timestamp(test_cores)[1m:1s])
      - name: NodeResourcesFit
        args: {ignoredResourceGroups: [overcommit.scheduler]}
`

func TestAlertsAndDashboardWithRealData(t *testing.T) {
	s := newStand(t)
	s.schedule(t)
	// 6 of its 8 cores are used, so it would not take this pod, which no scheduler places.
	exceeds := localcluster.NewPod("exceeds", "overcommit")
	exceeds.Spec.NodeName = "node-1"
	exceeds.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"overcommit.scheduler/millicpu": resource.MustParse("3000")}
	s.CreatePod(t, exceeds)
	s.awaitPanels(t, "node-load")
	for _, rule := range rules(t, "node-load").all() {
		t.Run("alert "+rule.Alert, func(t *testing.T) { s.awaitState(t, rule.Alert, "pending") })
	}
	named := s.checkMetrics(t, "node-load")

	// Conversely, every metric of the two plugins must be in an alert or the dashboard.
	ours := regexp.MustCompile("^scheduler_(node_load|overcommit)_")
	for _, name := range s.metrics(t) {
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); ours.MatchString(name) &&
			!named[name] && !named[base+"_bucket"] {
			t.Errorf("no panel and no alert has %s", name)
		}
	}
}

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is a scheduler that Prometheus scrapes, and that queries Prometheus.
type stand struct {
	*cluster.Cluster
	prometheus *cluster.Prometheus
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t), prometheus: cluster.NewPrometheus(t)}
	s.AddNodes(t, 4)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, exported) }))
	t.Cleanup(exporter.Close)
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	silent := "http://" + cluster.FreeAddress(t, "127.0.0.1")
	cluster.Write(t, config, fmt.Sprintf(schedulerConfig, s.prometheus.URL(), silent))
	scheduler := s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config)
	s.startPrometheus(t, "node-load", map[string]any{
		"job_name": "node", "honor_labels": true, "static_configs": static(t, exporter.URL),
	}, map[string]any{
		"job_name": "kube-scheduler", "scheme": "https", "static_configs": static(t, scheduler.URL()),
		"tls_config": map[string]any{"ca_file": "ca.crt", "cert_file": "client.crt", "key_file": "client.key"},
	})
	return s
}

// static is the single target of a scrape.
func static(t *testing.T, target string) []any {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return []any{map[string]any{"targets": []string{parsed.Host}}}
}

// startPrometheus starts Prometheus with the alerts of a subject. Next to its
// configuration are its credentials for the scheduler, an administrator's.
func (s *stand) startPrometheus(t *testing.T, subject string, scrapes ...any) {
	t.Helper()
	folder := s.prometheus.Folder
	write(t, folder, rules(t, subject))
	client, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ca.crt": client.CAData, "client.crt": client.CertData, "client.key": client.KeyData} {
		cluster.Write(t, filepath.Join(folder, name), string(content))
	}
	s.prometheus.Configure(t, map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": scrapes,
	})
	s.prometheus.Start(t)
}

// awaitPanels waits until there is data for each panel and each variable of a dashboard. Panels with missing metrics
// have none, but Prometheus must accept their queries.
func (s *stand) awaitPanels(t *testing.T, subject string, missing ...string) {
	t.Helper()
	for _, expression := range expressions(t, subject) {
		t.Run("panel "+expression.panel, func(t *testing.T) {
			if containsAny(metricsIn(expression.promQL), missing) {
				if series := s.query(t, expression.promQL); len(series) > 0 {
					t.Errorf("one of %q is there: %s", missing, series)
				}
				return
			}
			s.Await(t, "data for the panel", func() error {
				if series := s.query(t, expression.promQL); len(series) == 0 {
					return fmt.Errorf("no data for %s", expression.promQL)
				}
				return nil
			}, s.prometheus.LogFile())
		})
	}
}

func containsAny(names, some []string) bool {
	return slices.ContainsFunc(some, func(name string) bool { return slices.Contains(names, name) })
}

// awaitState waits until an alert is inactive, or pending: its
// condition holds, and the rule's `for` duration has begun.
func (s *stand) awaitState(t *testing.T, name, state string) {
	t.Helper()
	s.Await(t, name+" to be "+state, func() error {
		loaded, found := s.alerts(t)[name]
		switch {
		case !found:
			return fmt.Errorf("%s is not loaded", name)
		case loaded.Health != "ok":
			return fmt.Errorf("health %s: %s", loaded.Health, loaded.LastError)
		case loaded.State != state && (state == "inactive" || loaded.State == "inactive"):
			return fmt.Errorf("it is %s: %s", loaded.State, loaded.Query)
		}
		return nil
	}, s.prometheus.LogFile())
	for _, alert := range s.alerts(t)[name].Alerts {
		for annotation, text := range alert.Annotations {
			if strings.Contains(text, "<no value>") || strings.Contains(text, "<error") {
				t.Errorf("%s: %s: %s", name, annotation, text)
			}
		}
	}
}

// checkMetrics returns the metrics used by the alerts and the dashboard of a subject, including those in alternatives
// of `or` and `unless`, where one side is enough for data. The scheduler must have them all, except the missing ones.
func (s *stand) checkMetrics(t *testing.T, subject string, missing ...string) map[string]bool {
	t.Helper()
	named := map[string]bool{}
	for _, expression := range expressions(t, subject) {
		for _, name := range metricsIn(expression.promQL) {
			named[name] = true
		}
	}
	for _, rule := range rules(t, subject).all() {
		for _, name := range metricsIn(rule.Expr) {
			named[name] = true
		}
	}
	scraped := s.metrics(t)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if slices.Contains(scraped, name) == slices.Contains(missing, name) {
			t.Errorf("%s: the scheduler has it: %v", name, slices.Contains(scraped, name))
		}
	}
	return named
}

// schedule waits until NodeLoad has measurements, and makes it place pods:
// most go to nodes that are not hot, and one can only go to the hot one.
func (s *stand) schedule(t *testing.T) {
	t.Helper()
	s.Await(t, "NodeLoad to measure three nodes", func() error {
		if len(s.query(t, `scheduler_node_load_nodes{resource="cpu", state="fresh"} == 3`)) == 0 {
			return fmt.Errorf("three nodes should be measured")
		}
		return nil
	}, s.prometheus.LogFile())
	var pods []*corev1.Pod
	for i := range 8 {
		pods = append(pods, localcluster.NewPod(fmt.Sprintf("pod-%d", i), ""))
	}
	hot := localcluster.NewPod("wants-the-hot-node", "")
	hot.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-1"}
	placements, err := s.Place(t.Context(), append(pods, hot)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, placement := range placements {
		if bound := placement.Node != ""; bound == (placement.Name == hot.Name) || placement.Node == "node-1" {
			t.Errorf("%+v; want it on a node that is not hot, and %s nowhere", placement, hot.Name)
		}
	}
}

// query runs a query that returns a vector. Grafana draws nothing for a value that is not a number.
func (s *stand) query(t *testing.T, promQL string) []json.RawMessage {
	t.Helper()
	var data struct {
		Result []json.RawMessage `json:"result"`
	}
	s.prometheus.Ask(t, "query", url.Values{"query": {promQL}}, &data)
	return slices.DeleteFunc(data.Result, func(series json.RawMessage) bool { return bytes.Contains(series, []byte(`"NaN"`)) })
}

// metrics returns the names of all metrics of the scheduler.
func (s *stand) metrics(t *testing.T) []string {
	t.Helper()
	var names []string
	s.prometheus.Ask(t, "label/__name__/values", url.Values{"match[]": {`{job="kube-scheduler"}`}}, &names)
	return names
}

// alert is an alert as Prometheus reports it.
type alert struct {
	Name, State, Health, LastError, Query string
	Alerts                                []struct{ Annotations map[string]string }
}

func (s *stand) alerts(t *testing.T) map[string]alert {
	t.Helper()
	var data struct{ Groups []struct{ Rules []alert } }
	s.prometheus.Ask(t, "rules", nil, &data)
	alerts := map[string]alert{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			alerts[rule.Name] = rule
		}
	}
	return alerts
}
