// SPDX-License-Identifier: Apache-2.0

// Package report compares the outcomes of simulated configurations: as a table, as JSON, as CSV, as a page, and with a
// condition.
package report

import (
	"math"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// configuration is a configuration with its runs, ordered by seed.
type configuration struct {
	// Heading is the name with a mark if a run ended early. Incomplete is then the reason.
	Name, Heading, Incomplete string
	Notes                     sets.String
	Runs                      []result.Run
}

// configurations returns the configurations of a comparison in its order.
func configurations(c *result.Comparison) []configuration {
	var all []configuration
	for _, run := range c.Runs {
		if n := len(all); n == 0 || all[n-1].Name != run.Configuration {
			all = append(all, configuration{Name: run.Configuration, Heading: run.Configuration, Notes: sets.NewString()})
		}
		last := &all[len(all)-1]
		last.Runs = append(last.Runs, run)
		last.Notes.Insert(run.Notes...)
		if run.Incomplete != "" {
			last.Heading, last.Incomplete = run.Configuration+" (incomplete)", run.Incomplete
			last.Notes.Insert("incomplete, and not judged: " + run.Incomplete)
		}
	}
	return all
}

// row is a figure of all configurations.
type row struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Unit   string `json:"unit,omitempty"`
	Better string `json:"better,omitempty"`
	// Cells are in the order of the configurations.
	Cells []cell `json:"configurations"`
}

// cell is a figure of a configuration.
type cell struct {
	Configuration string  `json:"configuration"`
	Values        []value `json:"values"`
	// Mean is nil if the configuration does not have the figure.
	Mean *float64 `json:"mean"`
	// Interval is half of the 95 % interval of the mean; nil if there are fewer than two values.
	Interval *float64 `json:"interval95,omitempty"`
	// Verdict compares with the first configuration. A figure without a direction is higher or lower instead of better
	// or worse. Change is relative, and nil if there is no difference.
	Verdict string   `json:"verdict,omitempty"`
	Change  *float64 `json:"change,omitempty"`
}

type value struct {
	Seed  int64   `json:"seed"`
	Value float64 `json:"value"`
}

// table returns the figures in the order of the runs.
func table(all []configuration) []*row {
	var rows []*row
	known := map[string]*row{}
	for i, c := range all {
		for _, run := range c.Runs {
			for _, f := range run.Figures {
				r := known[f.Name]
				if r == nil {
					r = &row{f.Name, f.Title, f.Unit, f.Better, make([]cell, len(all))}
					known[f.Name], rows = r, append(rows, r)
				}
				r.Cells[i].Values = append(r.Cells[i].Values, value{run.Seed, f.Value})
			}
		}
	}
	for _, r := range rows {
		for i := range r.Cells {
			c := &r.Cells[i]
			c.Configuration = all[i].Name
			c.Mean, c.Interval = estimate(c.Values)
			if all[0].Incomplete != "" || all[i].Incomplete != "" {
				c.Verdict = "incomplete"
			} else if i > 0 && c.Mean != nil && r.Cells[0].Mean != nil {
				c.judge(r.Better, r.Cells[0])
			}
		}
	}
	return rows
}

// judge compares a cell with that of the first configuration. Several seeds are compared in pairs, because a seed has the
// same workload in each configuration: the 95 % interval of the mean difference must exclude 0. With one common seed the
// difference must exceed 1 %.
func (c *cell) judge(direction string, first cell) {
	var differences []value
	for _, v := range c.Values {
		for _, w := range first.Values {
			if v.Seed == w.Seed {
				differences = append(differences, value{v.Seed, v.Value - w.Value})
			}
		}
	}
	difference, interval := estimate(differences)
	margin := 0.01 * math.Abs(*first.Mean)
	if interval != nil {
		// Equal values may differ by the rounding of sums.
		margin = math.Max(*interval, 1e-9*math.Abs(*first.Mean))
	}
	switch {
	case difference == nil:
		return
	case math.Abs(*difference) <= margin:
		c.Verdict = "no difference"
		return
	case direction == "" && *difference > 0:
		c.Verdict = result.Higher
	case direction == "":
		c.Verdict = result.Lower
	case (*difference > 0) == (direction == result.Higher):
		c.Verdict = "better"
	default:
		c.Verdict = "worse"
	}
	if *first.Mean != 0 {
		change := (*c.Mean - *first.Mean) / math.Abs(*first.Mean)
		c.Change = &change
	}
}

// estimate returns the mean and half of its 95 % interval by Student's t distribution. They are nil if there are too few
// values.
func estimate(values []value) (mean, interval *float64) {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v.Value / n
	}
	for _, v := range values {
		squares += (v.Value - sum) * (v.Value - sum)
	}
	if n > 0 {
		mean = &sum
	}
	if n > 1 {
		half := student(len(values)-1) * math.Sqrt(squares/(n-1)/n)
		interval = &half
	}
	return mean, interval
}

// students are the 97.5th percentiles of Student's t distribution with 1, 2, … degrees of freedom.
var students = []float64{12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814}

// student returns the 97.5th percentile of Student's t distribution. From 11 degrees of freedom it is expanded around the
// normal distribution's (Cornish and Fisher), with an error below 0.0002.
func student(freedom int) float64 {
	if freedom <= len(students) {
		return students[freedom-1]
	}
	z, v := 1.959964, float64(freedom)
	z3, z5 := math.Pow(z, 3), math.Pow(z, 5)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*z5+17*z3-15*z)/(384*v*v*v)
}
