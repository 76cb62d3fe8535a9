// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"
)

const (
	// studySeeds and recordedSeeds are how many seeds are simulated with generated and with recorded use.
	studySeeds, recordedSeeds = 10, 5
	studyNodes, studyLength   = 6, 24 * time.Hour
	// chart is the variable with the file to write the chart to.
	chart = "CHART"
)

// groups are the lines of the chart.
var groups = []string{"Maximum", "NSigma", "Percentile", "Requests", fixedFactor, koordinator}

// student has the quantiles of Student's distribution for intervals of 95 %, for one degree of freedom and more.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// mean returns the mean of values, and half of its interval of 95 %.
func mean(of []float64) (float64, float64) {
	sum, squares, n := 0.0, 0.0, float64(len(of))
	for _, value := range of {
		sum, squares = sum+value, squares+value*value
	}
	deviation := math.Sqrt(max(0, squares-sum*sum/n) / (n - 1))
	return sum / n, student[len(of)-2] * deviation / math.Sqrt(n)
}

// figures returns a figure of each seed.
func figures(of []outcome, figure func(seed int, o outcome) float64) (values []float64) {
	for seed, o := range of {
		values = append(values, figure(seed, o))
	}
	return values
}

func gained(_ int, o outcome) float64   { return o.Gained }
func violated(_ int, o outcome) float64 { return o.Violated }
func excess(_ int, o outcome) float64   { return o.Excess }

// runsOfStudy are the runs to compare. A factor of 1 is the same as Requests without headroom.
func runsOfStudy(workload string) (runs []run) {
	for _, predictor := range groups[:4] {
		for _, headroom := range []int{0, 10, 20} {
			runs = append(runs, predicted(predictor, headroom))
		}
	}
	runs = append(runs, formulas(fixedFactor, 1.1, 1.2, 1.3, 1.4)...)
	runs = append(runs, formulas(koordinator, 0.6, 0.7, 0.8, 0.9, 1)...)
	runs = append(runs, formulas(koordinatorMost, 1)...)
	for i := range runs {
		runs[i].Workload, runs[i].Nodes, runs[i].Length = workload, studyNodes, studyLength
	}
	return runs
}

// study has the outcomes of all runs.
type study struct {
	runs     []run
	outcomes map[string][]outcome
}

// gainOf returns what a formula would gain with so many violations, for one seed: between two of its shares, or between
// the lowest one and nothing.
func (s study) gainOf(formula string, seed int, violations float64) float64 {
	below := outcome{}
	for _, r := range s.runs {
		if r.Group != formula && (formula != fixedFactor || r.Name != "Requests, headroom 0 %") {
			continue
		}
		above := s.outcomes[r.Name][seed]
		if above.Violated > violations {
			return below.Gained + (above.Gained-below.Gained)*(violations-below.Violated)/(above.Violated-below.Violated)
		}
		below = above
	}
	return below.Gained
}

// TestStudy prints a table in Markdown with the gain and the violations of each way, and draws them.
func TestStudy(t *testing.T) {
	if os.Getenv(chart) == "" {
		t.Skip("it takes ten minutes of two cores; next: make bench-overcommit")
	}
	fmt.Printf("%s\n%d nodes, %v, seeds 1 to %d\n", parameters, studyNodes, studyLength, studySeeds)
	generated, memory := study{runs: runsOfStudy("")}, study{runs: runsOfStudy(recorded)}
	generated.outcomes = simulate(t, studySeeds, generated.runs)
	if os.Getenv(traces) == "" {
		fmt.Printf("recorded use: NOT CHECKED: %s is not set; next: %s=DIRECTORY with pod_memory_util_anon.tar.gz\n", traces, traces)
	} else {
		fmt.Printf("recorded use: shapes of recorded memory use, read as CPU; seeds 1 to %d\n", recordedSeeds)
		memory.outcomes = simulate(t, recordedSeeds, memory.runs)
	}
	generated.show(memory)
	if err := os.WriteFile(os.Getenv(chart), []byte(generated.draw()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// show prints means and intervals of 95 %, and how much more often Maximum violates than each of its parts.
func (s study) show(memory study) {
	cell := func(format string, of []outcome, figure func(seed int, o outcome) float64) {
		if of == nil {
			fmt.Print(" | NOT CHECKED")
			return
		}
		value, interval := mean(figures(of, figure))
		fmt.Printf(" | "+format, value, interval)
	}
	fmt.Print("\n| | gained, % | violations, % | by, % | gain above a fixed factor | gain above koordinator | ",
		"recorded: gained, % | violations, % |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range s.runs {
		of := s.outcomes[r.Name]
		fmt.Print("| ", r.Name)
		cell("%.1f ± %.1f", of, gained)
		cell("%.2f ± %.2f", of, violated)
		cell("%.1f ± %.1f", of, excess)
		for _, formula := range []string{fixedFactor, koordinator} {
			if r.Formula == "" {
				cell("%+.1f ± %.1f", of, func(seed int, o outcome) float64 { return o.Gained - s.gainOf(formula, seed, o.Violated) })
			} else {
				fmt.Print(" | ")
			}
		}
		cell("%.1f ± %.1f", memory.outcomes[r.Name], gained)
		cell("%.2f ± %.2f", memory.outcomes[r.Name], violated)
		fmt.Println(" |")
	}
	fmt.Println("\n| violations of Maximum, less those of | headroom 0 % | 10 % | 20 % |\n|---|---:|---:|---:|")
	for _, part := range []string{"NSigma", "Percentile"} {
		fmt.Print("| ", part)
		for _, headroom := range []int{0, 10, 20} {
			than := s.outcomes[predicted(part, headroom).Name]
			cell("%+.2f ± %.2f", s.outcomes[predicted("Maximum", headroom).Name],
				func(seed int, o outcome) float64 { return o.Violated - than[seed].Violated })
		}
		fmt.Println(" |")
	}
}

// colors are those of the lines.
var colors = []string{"#0969da", "#1a7f37", "#9a6700", "#8250df", "#8c959f", "#cf222e"}

// draw returns a chart of the gain against the violations, on a logarithmic axis, with a line for each group.
func (s study) draw() (chart string) {
	const left, right, top, bottom, mostGained, decades = 60.0, 600.0, 40.0, 380.0, 50.0, 4
	at := func(violations, gain float64) (float64, float64) {
		return left + (right-left)*max(0, math.Log10(violations)+2)/decades, bottom - (bottom-top)*gain/mostGained
	}
	text := func(x, y float64, class, content string) string {
		return fmt.Sprintf("  <text x=\"%.0f\" y=\"%.0f\" class=\"%s\">%s</text>\n", x, y, class, content)
	}
	rules, body := "", ""
	for _, mark := range []float64{0.01, 0.1, 1, 10, 100} {
		x, y := at(mark, 0)
		body += fmt.Sprintf("  <path class=\"grid\" d=\"M%.0f %.0fV%.0f\"/>\n", x, top, y) + text(x, y+16, "mark", fmt.Sprint(mark, " %"))
	}
	for mark := 0.0; mark <= mostGained; mark += 10 {
		x, y := at(0, mark)
		body += fmt.Sprintf("  <path class=\"grid\" d=\"M%.0f %.0fH%.0f\"/>\n", x, y, right) + text(x-22, y+4, "mark", fmt.Sprint(mark, " %"))
	}
	body += text((left+right)/2, bottom+36, "mark", "violations: node-time in which ordinary use and overcommitting pods exceed the CPU") +
		text(left, top-14, "", "gained: CPU for overcommitting pods, of what the nodes have")
	for number, group := range groups {
		line, points := "", ""
		for _, r := range s.runs {
			if r.Group == group {
				violations, _ := mean(figures(s.outcomes[r.Name], violated))
				gain, _ := mean(figures(s.outcomes[r.Name], gained))
				x, y := at(violations, gain)
				line += fmt.Sprintf(" %.0f,%.0f", x, y)
				points += fmt.Sprintf("  <circle class=\"of%d\" cx=\"%.0f\" cy=\"%.0f\" r=\"3.5\"/>\n", number, x, y)
			}
		}
		y := top + 24 + 20*float64(number)
		body += fmt.Sprintf("  <polyline class=\"of%d line\" points=\"%s\"/>\n%s", number, line[1:], points) +
			fmt.Sprintf("  <rect class=\"of%d\" x=\"620\" y=\"%.0f\" width=\"12\" height=\"12\"/>\n", number, y-10) + text(638, y, "", group)
		rules += fmt.Sprintf("    .of%d { fill: %s; stroke: %s; }\n", number, colors[number], colors[number])
	}
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 430" role="img" aria-labelledby="title desc">
  <title id="title">CPU gained by overcommitting pods against violations</title>
  <desc id="desc">A line for each predictor and formula of the table in overcommit.md. Higher and further left is better.</desc>
  <style>
    text { font: 12px sans-serif; fill: #1f2328; }
    .mark { fill: #59636e; text-anchor: middle; }
    .page { fill: #ffffff; }
    .grid { stroke: #d1d9e0; }
` + rules + `    .line { fill: none; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .mark { fill: #b1bac4; }
      .page { fill: #0d1117; }
      .grid { stroke: #3d444d; }
    }
  </style>
  <rect class="page" width="740" height="430"/>
` + body + "</svg>\n"
}
