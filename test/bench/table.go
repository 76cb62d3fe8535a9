// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// column is a figure of the table: the values of a unit, divided for the reader.
type column struct {
	title, unit string
	divisor     float64
	decimals    int
	ratio       bool
}

// parseColumn reads "TITLE: UNIT DIVISOR DECIMALS", and "ratio" after that for a column with the ratio of both files.
func parseColumn(text string) (c column, err error) {
	title, rest, _ := strings.Cut(text, ": ")
	rest, c.ratio = strings.CutSuffix(rest, " ratio")
	c.title = title
	if _, err = fmt.Sscan(rest, &c.unit, &c.divisor, &c.decimals); err != nil {
		err = fmt.Errorf("the column %q is not TITLE: UNIT DIVISOR DECIMALS [ratio]: %w; next: correct it in scripts/bench.sh", text, err)
	}
	return c, err
}

// measured has the values of a file's benchmarks by label and unit, and the labels in their order.
type measured struct {
	labels []string
	values map[string]map[string][]float64
}

// readBenchmarks reads the benchmark lines of a file, and no other lines.
func readBenchmarks(file string) (m measured, err error) {
	content, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer content.Close()
	m.values = map[string]map[string][]float64{}
	reader := benchfmt.NewReader(content, file)
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name := label(result.Name)
		if m.values[name] == nil {
			m.labels, m.values[name] = append(m.labels, name), map[string][]float64{}
		}
		for _, value := range result.Values {
			// The reader converts times to seconds, among others.
			if value.OrigUnit != "" {
				value.Unit, value.Value = value.OrigUnit, value.OrigValue
			}
			m.values[name][value.Unit] = append(m.values[name][value.Unit], value.Value)
		}
	}
	if err = reader.Err(); err == nil && len(m.labels) == 0 {
		err = fmt.Errorf("%s has no benchmark lines; next: read it, and the log next to it", file)
	}
	return m, err
}

// label returns the parts of a benchmark's name after the first, without keys and the number of processors.
func label(name benchfmt.Name) (text string) {
	base, parts := name.Parts()
	for _, part := range parts {
		part := string(part)
		if strings.HasPrefix(part, "-") {
			continue
		}
		_, value, keyed := strings.Cut(part, "=")
		switch {
		case !keyed:
			text += part
		default:
			text += ", " + value
		}
	}
	if text == "" {
		return string(base)
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "/"), ", ")
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// table prints the medians of two files. With -changed, it prints only rows with a ratio that is over 1.1 or under 0.9.
func table(arguments []string) error {
	onlyChanged := arguments[0] == "-changed"
	if onlyChanged {
		arguments = arguments[1:]
	}
	files, header := [2]measured{}, "| "+arguments[0]+" |"
	var err error
	for i, file := range arguments[1:3] {
		if files[i], err = readBenchmarks(file); err != nil {
			return err
		}
	}
	var columns []column
	for _, text := range arguments[3:] {
		c, err := parseColumn(text)
		if err != nil {
			return err
		}
		columns = append(columns, c)
		header += fmt.Sprintf(" %s: %s | %s |", c.title, nameOf(arguments[1]), nameOf(arguments[2]))
		if c.ratio {
			header += " ratio |"
		}
	}
	fmt.Printf("\n%s\n|---|%s\n", header, strings.Repeat("---:|", strings.Count(header, "|")-2))
	for _, name := range files[0].labels {
		row, changed := "| "+name+" |", false
		for _, c := range columns {
			a, b := median(files[0].values[name][c.unit]), median(files[1].values[name][c.unit])
			row += fmt.Sprintf(" %.*f | %.*f |", c.decimals, a/c.divisor, c.decimals, b/c.divisor)
			if c.ratio && b == 0 {
				row += " – |"
			} else if c.ratio {
				row += fmt.Sprintf(" %.2f |", a/b)
				changed = changed || a/b > 1.1 || a/b < 0.9
			}
		}
		if changed || !onlyChanged {
			fmt.Println(row)
		}
	}
	return nil
}

// nameOf returns the name of a column from that of a file.
func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txt") }

// calls prints, for each benchmark of a plugin that reports ns/node, that time and the allocations per node.
func calls(arguments []string) error {
	m, err := readBenchmarks(arguments[1])
	if err != nil {
		return err
	}
	for _, name := range m.labels {
		of := func(unit string) float64 { return median(m.values[name][unit]) }
		// The number of nodes in an operation is its time per operation divided by its time per node.
		if perNode := of("ns/node"); perNode > 0 {
			fmt.Printf("| %s | %s | %.1f | %.2f |\n", arguments[0], name, perNode, of("allocs/op")*perNode/of("ns/op"))
		}
	}
	return nil
}
