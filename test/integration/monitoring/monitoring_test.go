// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests manifests/monitoring for Prometheus and Grafana: with
// promtool, and with a real Prometheus that scrapes real schedulers with problems,
// stock and ours. The plugin NodeLoad of one of them queries the same Prometheus.
package monitoring

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/test/cluster"
)

const folder = "../../../manifests/monitoring"

// subjects are the topics that have alerts with unit tests, and a dashboard.
var subjects = []string{"node-load", "scheduler"}

func ruleFile(subject string) string      { return folder + "/" + subject + "-prometheus-rule.yaml" }
func dashboardFile(subject string) string { return folder + "/" + subject + "-dashboard.json" }
func unitTestFile(subject string) string  { return "testdata/" + subject + "-alerts.yaml" }

func forEachSubject(t *testing.T, test func(t *testing.T, subject string)) {
	for _, subject := range subjects {
		t.Run(subject, func(t *testing.T) { test(t, subject) })
	}
}

func TestEachFileIsAboutASubject(t *testing.T) {
	files, err := filepath.Glob(folder + "/*")
	if err != nil || len(files) < 2*len(subjects) {
		t.Fatalf("%s: %q, %v", folder, files, err)
	}
	for _, file := range files {
		known := func(subject string) bool { return file == ruleFile(subject) || file == dashboardFile(subject) }
		if !slices.ContainsFunc(subjects, known) {
			t.Errorf("no test looks at %s; next: name its subject here", file)
		}
	}
}

// The unit tests define when each alert fires, and each fires in at least one.
func TestEachAlertFiresForWhatItIsAbout(t *testing.T) { forEachSubject(t, testAlertsFire) }

func testAlertsFire(t *testing.T, subject string) {
	content := cluster.Read(t, unitTestFile(subject))
	var unitTests struct {
		Tests []struct {
			AlertRuleTest []struct {
				AlertName string     `json:"alertname"`
				ExpAlerts []struct{} `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(content), &unitTests); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range unitTests.Tests {
		for _, expected := range test.AlertRuleTest {
			fires[expected.AlertName] = fires[expected.AlertName] || len(expected.ExpAlerts) > 0
			silent[expected.AlertName] = silent[expected.AlertName] || len(expected.ExpAlerts) == 0
		}
	}
	groups := rules(t, subject)
	for _, rule := range groups.all() {
		if !fires[rule.Alert] || !silent[rule.Alert] {
			t.Errorf("%s: %s fires in a test: %v; keeps silent in one: %v; want both",
				unitTestFile(subject), rule.Alert, fires[rule.Alert], silent[rule.Alert])
		}
		delete(fires, rule.Alert)
	}
	for alert := range fires {
		t.Errorf("%s tests %s, which is not in %s; promtool would say that it does not fire",
			unitTestFile(subject), alert, ruleFile(subject))
	}

	for _, group := range groups.Groups {
		for i := range group.Rules {
			group.Rules[i].Annotations = nil
		}
	}
	work := t.TempDir()
	write(t, work, groups)
	cluster.Write(t, filepath.Join(work, "alerts.yaml"), content)
	promtool(t, "test", "rules", filepath.Join(work, "alerts.yaml"))
}

func TestEachAlertSaysWhatToDoNext(t *testing.T) {
	forEachSubject(t, func(t *testing.T, subject string) {
		for _, rule := range rules(t, subject).all() {
			if rule.Labels["severity"] == "" || rule.For == "" {
				t.Errorf("%s has the severity %q, and fires after %q; want both", rule.Alert, rule.Labels["severity"], rule.For)
			}
			if rule.Annotations["summary"] == "" || !strings.Contains(rule.Annotations["description"], "Next: ") {
				t.Errorf("%s: want a summary, and a description that says what to do next; have %v", rule.Alert, rule.Annotations)
			}
		}
	})
}

// NodeLoad's configurations are meant to be copied, and no test runs
// them with a Prometheus that would parse their queries.
func TestPrometheusParsesTheQueriesOfTheConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../../manifests/config/node-load*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("configurations: %v, %v", files, err)
	}
	var promQL []string
	for _, file := range files {
		var config struct {
			Profiles []struct {
				PluginConfig []struct {
					Args struct {
						Resources []struct{ Query, TimestampQuery, DeviationQuery string }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(cluster.Read(t, file)), &config); err != nil {
			t.Fatal(err)
		}
		for _, profile := range config.Profiles {
			for _, plugin := range profile.PluginConfig {
				for _, resource := range plugin.Args.Resources {
					promQL = append(promQL, resource.Query, resource.TimestampQuery, resource.DeviationQuery)
				}
			}
		}
	}
	parse(t, slices.DeleteFunc(promQL, func(query string) bool { return query == "" }))
}

func TestPrometheusParsesTheRecordingRulesAndQueriesOfOvercommit(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(groups:\n.*?)```.*?```yaml\n(queries:\n.*?)```").
		FindStringSubmatch(cluster.Read(t, "../../../docs/overcommit.md"))
	if blocks == nil {
		t.Fatal("the page has no rules and queries")
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	cluster.Write(t, file, blocks[1])
	promtool(t, "check", "rules", file)
	var args struct{ Queries map[string]string }
	if err := yaml.Unmarshal([]byte(blocks[2]), &args); err != nil {
		t.Fatal(err)
	}
	parse(t, slices.Collect(maps.Values(args.Queries)))
}

// parse runs promtool on each expression as a recording rule.
func parse(t *testing.T, promQL []string) {
	t.Helper()
	if len(promQL) == 0 {
		t.Fatal("there is nothing to parse")
	}
	var recording strings.Builder
	recording.WriteString("groups:\n  - name: parsed\n    rules:\n")
	for i, expression := range promQL {
		fmt.Fprintf(&recording, "      - {record: expression_%d, expr: %q}\n", i, expression)
	}
	file := filepath.Join(t.TempDir(), "parsed.yaml")
	cluster.Write(t, file, recording.String())
	promtool(t, "check", "rules", file)
}

// write writes a rule file and returns its path.
func write(t *testing.T, work string, groups ruleGroups) string {
	t.Helper()
	content, err := yaml.Marshal(groups)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(work, "rules.yaml")
	cluster.Write(t, file, string(content))
	return file
}

func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), cluster.Program(t, "PROMTOOL"), arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}
