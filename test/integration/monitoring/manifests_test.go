// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Rule is an alert.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Group is a group of rules; the field names are those of Prometheus' rule files.
type Group struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Groups is a rule file of Prometheus, and the spec of a PrometheusRule.
type Groups struct {
	Groups []Group `json:"groups"`
}

// Rules returns all rules of all groups.
func (g Groups) Rules() []Rule {
	var rules []Rule
	for _, group := range g.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// ReadRules reads a PrometheusRule. A field that is unknown to Prometheus, or not used here, is an error.
func ReadRules(file string) (Groups, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Groups{}, err
	}
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec Groups `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(content, &object); err != nil {
		return Groups{}, fmt.Errorf("%s: %w", file, err)
	}
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" {
		return Groups{}, fmt.Errorf("%s is a %s of %s, not a PrometheusRule of monitoring.coreos.com/v1", file, object.Kind, object.APIVersion)
	}
	return object.Spec, nil
}

// Expression is a Prometheus query of a dashboard panel.
type Expression struct {
	Panel, PromQL string
}

// ReadDashboard returns the expressions of a Grafana dashboard, and for each variable an expression with its values.
// In the others, variables are replaced as Grafana does for all schedulers, with a rate interval that Grafana would
// choose.
func ReadDashboard(file, rateInterval string) ([]Expression, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
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
	if err := json.Unmarshal(content, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var expressions []Expression
	replacements := []string{"$__rate_interval", rateInterval}
	for _, variable := range dashboard.Templating.List {
		if variable.Type != "query" {
			continue
		}
		replacements = append(replacements, "$"+variable.Name, variable.AllValue)
		values := labelValues.FindStringSubmatch(fmt.Sprint(variable.Query))
		if values == nil {
			return nil, fmt.Errorf("%s: the variable %s asks for no label's values: %v", file, variable.Name, variable.Query)
		}
		expressions = append(expressions, Expression{
			Panel: "variable " + variable.Name, PromQL: fmt.Sprintf(`%s{%s!=""}`, values[1], values[2]),
		})
	}
	replace := strings.NewReplacer(replacements...)
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			return nil, fmt.Errorf("%s: the panel %q asks nothing", file, panel.Title)
		}
		for _, target := range panel.Targets {
			expression := Expression{Panel: panel.Title, PromQL: replace.Replace(target.Expr)}
			if strings.Contains(expression.PromQL, "$") {
				return nil, fmt.Errorf("%s: the panel %q uses a variable that is not there: %s", file, panel.Title, target.Expr)
			}
			expressions = append(expressions, expression)
		}
	}
	if len(dashboard.Panels) == 0 {
		return nil, errors.New(file + " has no panels")
	}
	return expressions, nil
}

// labelValues matches the query of a variable: a metric and a label.
var labelValues = regexp.MustCompile(`label_values\((\w+), (\w+)\)`)

var metric = regexp.MustCompile(`\b(scheduler|leader_election|process|rest_client)_[a-z0-9_]+`)

// Metrics returns the names of the scheduler's metrics in an expression, each once.
func Metrics(promQL string) []string {
	names := metric.FindAllString(promQL, -1)
	slices.Sort(names)
	return slices.Compact(names)
}
