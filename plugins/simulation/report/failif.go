// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// Condition compares a figure with a number, or with the same figure of another configuration.
type Condition struct {
	text, figure, operator string
	// number is the right side, or the factor of the configuration's figure.
	number        float64
	configuration string
}

// conditionSyntax has a name that may have labels, an operator, and the right side.
var conditionSyntax = regexp.MustCompile(`^\s*([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{(?:"(?:[^"\\]|\\.)*"|[^"}])*\})?)` +
	`\s*(>=|<=|>|<)\s*([^=<>\s](?:.*[^*\s])?)\s*$`)

// unitSuffix may be left out of a figure's name.
var unitSuffix = regexp.MustCompile(`_((core|gpu|node|byte)_)?(seconds|percent|ratio|bytes|cores|pods|nodes)($|\{)`)

// ParseFailIf reads a condition such as "waiting_p99 > 1.1 * stock" or "pods_pending > 0".
func ParseFailIf(text string) (Condition, error) {
	parts := conditionSyntax.FindStringSubmatch(text)
	if parts == nil {
		return Condition{}, fmt.Errorf("the condition %q does not have the form FIGURE OPERATOR NUMBER or FIGURE OPERATOR "+
			"[NUMBER *] CONFIGURATION, with one of the operators > >= < <=", text)
	}
	c := Condition{text, parts[1], parts[2], 1, parts[3]}
	sides := strings.SplitN(parts[3], "*", 2)
	x, err := strconv.ParseFloat(strings.TrimSpace(sides[0]), 64)
	if err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		c.number, c.configuration = x, strings.TrimSpace(append(sides, "")[1])
	}
	return c, nil
}

// Check returns a line for each configuration whose mean fulfils the condition. It fails if a configuration or figure
// of the condition is unknown, or if the value of a configuration is missing or incomplete.
func (c Condition) Check(comparison *result.Comparison) ([]string, error) {
	all := configurations(comparison)
	r, err := c.find(table(all))
	if err != nil {
		return nil, err
	}
	var names []string
	limit, limitText, reference := c.number, fmt.Sprintf("%.6g", c.number), -1
	for i, cell := range r.Cells {
		if names = append(names, all[i].Name); all[i].Name == c.configuration {
			reference = i
		}
		if all[i].Incomplete != "" || cell.Mean == nil {
			return nil, fmt.Errorf("the condition %q cannot be checked: %s is incomplete or has no %s", c.text, all[i].Name, r.Name)
		}
	}
	if reference >= 0 {
		limit *= *r.Cells[reference].Mean
		limitText = fmt.Sprintf("%.6g (%s * %s)", limit, limitText, c.configuration)
	}
	if c.configuration != "" && (reference < 0 || len(all) == 1) {
		return nil, fmt.Errorf("the condition %q compares with the configuration %q; there are only: %s",
			c.text, c.configuration, strings.Join(names, ", "))
	}
	var failures []string
	for i, cell := range r.Cells {
		x := *cell.Mean
		holds := x > limit && c.operator[0] == '>' || x < limit && c.operator[0] == '<' || x == limit && len(c.operator) == 2
		if holds && i != reference {
			failures = append(failures, fmt.Sprintf("%s of %s is %.6g %s %s", r.Name, all[i].Name, x, c.operator, limitText))
		}
	}
	return failures, nil
}

// find returns the figure of the condition.
func (c Condition) find(rows []*row) (*row, error) {
	var found []*row
	var similar, names []string
	for _, r := range rows {
		if r.Name == c.figure {
			return r, nil
		}
		if unitSuffix.ReplaceAllString(r.Name, "$4") == c.figure {
			found = append(found, r)
		}
		if names = append(names, r.Name); strings.HasPrefix(r.Name, strings.Split(c.figure, "_")[0]) {
			similar = append(similar, r.Name)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(similar) > 0 {
		names = similar
	}
	return nil, fmt.Errorf("the condition %q has the figure %s; there are: %s", c.text, c.figure, strings.Join(names, ", "))
}
