// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/test/cluster"
)

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ruleGroups is a rule file of Prometheus, and the spec of a PrometheusRule.
type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

// all returns the rules of all groups.
func (g ruleGroups) all() (rules []rule) {
	for _, group := range g.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// rules reads the PrometheusRule of a subject. A field that is unknown to Prometheus, or not used here, is an error.
func rules(t *testing.T, subject string) ruleGroups {
	t.Helper()
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec ruleGroups `json:"spec"`
	}
	err := yaml.UnmarshalStrict([]byte(cluster.Read(t, ruleFile(subject))), &object)
	if err != nil || object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" || len(object.Spec.all()) == 0 {
		t.Fatalf("%s is not a PrometheusRule of monitoring.coreos.com/v1 with alerts: %v", ruleFile(subject), err)
	}
	return object.Spec
}

// expression is a Prometheus query of a dashboard panel.
type expression struct{ panel, promQL string }

// labelValues matches the query of a variable: a metric and a label.
var labelValues = regexp.MustCompile(`label_values\((\w+), (\w+)\)`)

// expressions returns the expressions of the Grafana dashboard of a subject, and for each variable an expression with its
// values. In the others, variables are replaced as Grafana does for all schedulers, with a rate interval of a minute.
func expressions(t *testing.T, subject string) (expressions []expression) {
	t.Helper()
	var dashboard struct {
		Templating struct {
			List []struct {
				Name, Type, AllValue string
				Query                any
			}
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	file := dashboardFile(subject)
	if err := json.Unmarshal([]byte(cluster.Read(t, file)), &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%s has %d panels: %v", file, len(dashboard.Panels), err)
	}
	replacements := []string{"$__rate_interval", "1m"}
	for _, variable := range dashboard.Templating.List {
		if variable.Type != "query" {
			continue
		}
		replacements = append(replacements, "$"+variable.Name, variable.AllValue)
		values := labelValues.FindStringSubmatch(fmt.Sprint(variable.Query))
		if values == nil {
			t.Fatalf("%s: the variable %s asks for no label's values: %v", file, variable.Name, variable.Query)
		}
		expressions = append(expressions, expression{"variable " + variable.Name, fmt.Sprintf(`%s{%s!=""}`, values[1], values[2])})
	}
	replace := strings.NewReplacer(replacements...)
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%s: the panel %q asks nothing", file, panel.Title)
		}
		for _, target := range panel.Targets {
			promQL := replace.Replace(target.Expr)
			if strings.Contains(promQL, "$") {
				t.Errorf("%s: the panel %q uses a variable that does not exist: %s", file, panel.Title, target.Expr)
			}
			expressions = append(expressions, expression{panel.Title, promQL})
		}
	}
	return expressions
}

var metric = regexp.MustCompile(`\b(scheduler|leader_election|process|rest_client)_[a-z0-9_]+`)

// metricsIn returns the names of the scheduler's metrics in an expression, each once.
func metricsIn(promQL string) []string {
	names := metric.FindAllString(promQL, -1)
	slices.Sort(names)
	return slices.Compact(names)
}
