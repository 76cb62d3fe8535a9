// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// Text writes the comparison as a table for a terminal.
func Text(w io.Writer, c *result.Comparison) error {
	all := configurations(c)
	var text strings.Builder
	if c.Method != "" {
		text.WriteString(Escape(c.Method) + "\n")
	}
	out := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprint(out, "FIGURE")
	for i, configuration := range all {
		fmt.Fprint(out, "\t", Escape(configuration.Heading), verdictColumn(i, "VERDICT"))
	}
	for _, r := range table(all) {
		fmt.Fprint(out, "\n", Escape(r.Heading()))
		for i, cell := range r.Cells {
			fmt.Fprint(out, "\t", cell, verdictColumn(i, cell.Judgement()))
		}
	}
	for _, d := range details(all) {
		fmt.Fprint(out, "\n")
		for _, r := range d {
			fmt.Fprint(out, "\n")
			for _, text := range r {
				fmt.Fprint(out, Escape(text), "\t")
			}
		}
	}
	out.Flush()
	text.WriteString("\n\n")
	lines := func(title string, items ...string) {
		for _, item := range items {
			text.WriteString(Escape(title+item) + "\n")
		}
	}
	lines("", explanation(all))
	lines("Input: ", c.Input...)
	lines("", fmt.Sprint("Warnings: ", len(c.Warnings)))
	lines("  ", c.Warnings[:first(10, len(c.Warnings))]...)
	for _, configuration := range all {
		lines(configuration.Name+": ", configuration.Notes.List()...)
	}
	lines("Not modelled:", "")
	lines("  ", strings.Split(c.NotModelled, "; ")...)
	_, err := io.WriteString(w, text.String())
	return err
}

// verdictColumn returns a column that the first configuration does not have.
func verdictColumn(configuration int, text string) string {
	if configuration == 0 {
		return ""
	}
	return "\t" + text
}

// explanation returns the meaning of the verdicts.
func explanation(all []configuration) string {
	switch {
	case len(all) < 2:
		return "Fewer than two configurations, so no verdicts. ± is half of the 95 % interval over the seeds."
	case len(all[0].Runs) == 1:
		return "One seed cannot tell a difference from chance: verdicts compare with " + all[0].Name +
			" and ignore differences up to 1 %."
	}
	return fmt.Sprintf("± is half of the 95 %% interval over %d seeds. Verdicts compare with %s, seed by seed, at a level of "+
		"95 %%: of 20 rows without a real difference, chance gives one a verdict.", len(all[0].Runs), all[0].Name)
}

// Heading returns the title with the unit.
func (r row) Heading() string {
	if r.Unit == "" {
		return r.Title
	}
	return r.Title + " (" + r.Unit + ")"
}

// String returns the mean and half of its interval, which has two significant digits.
func (c cell) String() string {
	switch {
	case c.Mean == nil:
		return "–"
	case c.Interval == nil:
		return number(*c.Mean, decimals(*c.Mean, 4))
	}
	places := decimals(*c.Mean, 4)
	if *c.Interval > 0 {
		places = decimals(*c.Interval, 2)
	}
	return number(*c.Mean, places) + " ± " + number(*c.Interval, places)
}

// Judgement returns the verdict with the change in percent.
func (c cell) Judgement() string {
	if c.Change == nil {
		return c.Verdict
	}
	text := number(100**c.Change, decimals(100**c.Change, 2))
	if *c.Change > 0 {
		text = "+" + text
	}
	return c.Verdict + " (" + text + " %)"
}

// decimals returns the decimal places with which a number has so many significant digits. Whole numbers have none.
func decimals(x float64, digits int) int {
	if x = math.Abs(x); x == math.Trunc(x) {
		return 0
	}
	return int(math.Max(0, math.Min(6, float64(digits-1)-math.Floor(math.Log10(x)))))
}

// number formats a number with so many decimal places, and a comma between thousands.
func number(x float64, places int) string {
	text := strconv.FormatFloat(math.Abs(x), 'f', places, 64)
	for i := strings.IndexByte(text+".", '.') - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if x < 0 && strings.Trim(text, "0.") != "" {
		return "−" + text
	}
	return text
}

// JSON writes the comparison with its table.
func JSON(w io.Writer, c *result.Comparison) error {
	content, err := json.MarshalIndent(struct {
		Table []*row `json:"table"`
		*result.Comparison
	}{table(configurations(c)), c}, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, EscapeLines(string(content))+"\n")
	}
	return err
}

// CSV writes a line for each figure, configuration and seed, and a line with the seed "mean" that has the interval and
// the verdict.
func CSV(w io.Writer, c *result.Comparison) error {
	lines := [][]string{{"figure", "unit", "configuration", "seed", "value", "interval95", "verdict"}}
	exact := func(x *float64) string {
		if x == nil {
			return ""
		}
		return fmt.Sprint(*x)
	}
	for _, r := range table(configurations(c)) {
		for _, c := range r.Cells {
			line := []string{Escape(r.Name), Escape(r.Unit), Escape(c.Configuration)}
			for i, v := range c.Values {
				lines = append(lines, append(line[:3:3], fmt.Sprint(v.Seed), exact(&c.Values[i].Value), "", ""))
			}
			lines = append(lines, append(line, "mean", exact(c.Mean), exact(c.Interval), c.Verdict))
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// Escape replaces characters that a terminal would interpret or hide: control characters, and those that change the text
// direction.
func Escape(text string) string { return strings.ReplaceAll(EscapeLines(text), "\n", "�") }

// EscapeLines escapes a text of several lines, and keeps their ends.
func EscapeLines(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsGraphic(r) || r == '\n' {
			return r
		}
		return '�'
	}, text)
}

// first returns the limit, or the number of items if it is lower.
func first(limit, items int) int { return int(math.Min(float64(limit), float64(items))) }
