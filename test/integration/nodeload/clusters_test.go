// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"math"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// clusters are two clusters whose nodes have the same addresses. The nodes of west are busy.
func clusters(t *testing.T) *stand {
	t.Helper()
	var targets []target
	for i := range 3 {
		for _, name := range []string{"east", "west"} {
			targets = append(targets, target{fmt.Sprintf("%s-%d", name, i), map[string]string{
				"instance": fmt.Sprintf("10.0.0.%d:9100", i+1), "cluster": name,
			}})
		}
	}
	s := newTargetsStand(t, &shared, newNodes(3), targets...)
	s.exporters.load(0.9, "west-0", "west-1", "west-2")
	return s
}

// jobs are two scrape jobs for each exporter: one names it by its address, the other by its node.
func jobs(t *testing.T) *stand {
	t.Helper()
	var targets []target
	for i := range 3 {
		for job, instance := range map[string]string{"addresses": fmt.Sprintf("10.0.0.%d:9100", i+1), "nodes": fmt.Sprintf("worker-%03d", i+1)} {
			targets = append(targets, target{fmt.Sprint("node-", i), map[string]string{"instance": instance, "job": job}})
		}
	}
	return newTargetsStand(t, &shared, newNodes(3), targets...)
}

// scenario is the configuration of the page's section about several clusters, and matcher what is not in it before.
// The path is relative to root.
const (
	root     = "../../../"
	scenario = "manifests/examples/scenarios/many-clusters/scheduler.yaml"
	matcher  = `            matchers:
              - {label: cluster, operator: "=", value: east}
`
)

// severalTargets tests nodes that have several scrape targets each, as the page describes it.
func severalTargets(t *testing.T) {
	_, section, _ := strings.Cut(cluster.Read(t, root+"docs/scenarios.md"), "\n## One Prometheus for many clusters\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var loads struct{ cpu, memory [3]float64 } // those of the nodes, and those measured before and after
	for resource, of := range map[string]*[3]float64{"cpu": &loads.cpu, "memory": &loads.memory} {
		_, row, _ := strings.Cut(section, "\n    "+resource+" ")
		if _, err := fmt.Sscanf(row, "%f %% %f %% %f %%", &of[0], &of[1], &of[2]); err != nil {
			t.Fatalf("the section has no loads of %s: %v", resource, err)
		}
	}
	file := cluster.Read(t, root+scenario)
	before := strings.Replace(file, matcher, "", 1)
	if before == file || !strings.Contains(section, "kube-scheduler-swap check --config "+scenario+"\n") {
		t.Fatalf("%s has another matcher, or the section another command", scenario)
	}
	for _, tt := range []struct {
		name   string
		stand  func(t *testing.T) *stand
		config string
		// cpu and memory are the expected loads in percent.
		cpu, memory float64
		// warns is the label in a warning of --validate-config; without one, there is none.
		warns string
	}{
		{"two clusters are mixed without a matcher", clusters, before, loads.cpu[1], loads.memory[1], "cluster"},
		{"the cluster of the matcher is measured", clusters, file, loads.cpu[2], loads.memory[2], ""},
		{"two jobs that scrape one exporter count as one", jobs, before, loads.cpu[0], loads.memory[0], "job"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.stand(t)
			// The file has intervals for a cluster.
			quick := strings.NewReplacer("http://127.0.0.1:9090", s.prometheus.URL(), "5m", "10s", "30s", "1s",
				"/etc/kubernetes/scheduler.conf", s.Kubeconfig())
			s.write(t, "scheduler.yaml", quick.Replace(tt.config))
			scheduler := s.startScheduler(t, "kube-scheduler", s.file("scheduler.yaml"))
			s.awaitLoads(t, scheduler, map[string]float64{"cpu": tt.cpu, "memory": tt.memory})

			checked := s.check(t, s.file("scheduler.yaml"))
			const several = " match several scrape targets, which the label "
			if !strings.Contains(checked, "cpu: measured on 3 of 3 nodes") || strings.Contains(checked, several) != (tt.warns != "") {
				t.Fatalf("--validate-config says\n%s", checked)
			}
			for line := range strings.Lines(checked) {
				if !strings.Contains(line, several) {
					continue
				}
				if !strings.Contains(line, several+tt.warns+" tells apart") {
					t.Errorf("the warning is about another label than %s: %s", tt.warns, line)
				}
				// The page wraps the line.
				shown := strings.Join(strings.Fields(section), " ")
				if tt.warns == "cluster" && !strings.Contains(shown, strings.TrimSpace(line)) {
					t.Errorf("the section does not show %s", line)
				}
			}
		})
	}
}

// awaitLoads waits until each node has these loads, in percent.
func (s *stand) awaitLoads(t *testing.T, scheduler *localcluster.Scheduler, loads map[string]float64) {
	t.Helper()
	s.await(t, "the loads of the nodes", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		for _, node := range s.nodes {
			measured := page.of[corev1.DefaultSchedulerName][node]
			for resource, want := range loads {
				got := measured[resource]
				if got.missing != "" || math.Abs(got.percent-want) > 1 {
					return fmt.Errorf("%s: %s is at %.1f %% (%q), want %v", node, resource, got.percent, got.missing, want)
				}
			}
		}
		return nil
	})
}

// check returns the output of --validate-config.
func (s *stand) check(t *testing.T, config string) string {
	t.Helper()
	program := cluster.Program(t, "KUBE_SCHEDULER")
	output, err := exec.CommandContext(t.Context(), program, "--config="+config, "--validate-config").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}

// TestMatchers lets Prometheus' own parser read the built-in queries with matchers, and compares the matchers that it
// finds in each selector.
func TestMatchers(t *testing.T) {
	t.Parallel()
	matchers := []object{
		{"label": "cluster", "operator": "=", "value": "a \"quoted\" \\value\n\t\u00e9\u200b{}, WINDOW"},
		{"label": "zone", "operator": "!=", "value": ""},
		{"label": "job", "operator": "=~", "value": `node-exporter|dcgm\.exporter|(?i)x{1,2}"`},
		{"label": "replica", "operator": "!~", "value": "b.*'`"},
	}
	p := cluster.NewPrometheus(t)
	p.Configure(t, object{})
	p.Start(t)
	for _, query := range sentQueries(t, append(exported, "gpu"), matchers) {
		var parsed any
		p.Ask(t, "parse_query", url.Values{"query": {query}}, &parsed)
		// A value, its time, the last one before a failed scrape, and a deviation.
		if found := checkSelectors(t, parsed, matchers); found < 4 {
			t.Errorf("Prometheus finds only %d selectors in %s", found, query)
		}
	}
}

// checkSelectors checks that each selector in a parsed query begins with the matchers, and returns their number.
func checkSelectors(t *testing.T, node any, matchers []object) (selectors int) {
	t.Helper()
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			selectors += checkSelectors(t, child, matchers)
		}
	case map[string]any:
		if found, is := node["matchers"].([]any); is {
			selectors++
			for i, want := range matchers {
				got := found[i].(map[string]any)
				if got["name"] != want["label"] || got["type"] != want["operator"] || got["value"] != want["value"] {
					t.Errorf("matcher %d of %v is %v, want %v", i, node["name"], got, want)
				}
			}
		}
		for _, child := range node {
			selectors += checkSelectors(t, child, matchers)
		}
	}
	return selectors
}
