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
		if _, value, keyed := strings.Cut(string(part), "="); keyed {
			text += ", " + value
		} else if part[0] == '/' {
			text += string(part)
		}
	}
	if text == "" {
		return string(base)
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "/"), ", ")
}

// median returns the median of the values of a unit.
func (m measured) median(name, unit string) float64 {
	sorted := slices.Sorted(slices.Values(m.values[name][unit]))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// table prints the medians of two files, in columns "TITLE: UNIT DIVISOR DECIMALS", each with "ratio" after that for the ratio
// of both files. With -changed, it prints only rows with a ratio that is over 1.1 or under 0.9.
func table(arguments []string) error {
	onlyChanged := arguments[0] == "-changed"
	if onlyChanged {
		arguments = arguments[1:]
	}
	a, err := readBenchmarks(arguments[1])
	if err != nil {
		return err
	}
	b, err := readBenchmarks(arguments[2])
	if err != nil {
		return err
	}
	header, rows, changed := "| "+arguments[0]+" |", map[string]string{}, map[string]bool{}
	for _, column := range arguments[3:] {
		title, rest, _ := strings.Cut(column, ": ")
		rest, ratio := strings.CutSuffix(rest, " ratio")
		var unit string
		var divisor float64
		var decimals int
		if _, err := fmt.Sscan(rest, &unit, &divisor, &decimals); err != nil {
			return fmt.Errorf("the column %q is not TITLE: UNIT DIVISOR DECIMALS [ratio]: %w; next: correct it in scripts/bench.sh", column, err)
		}
		header += fmt.Sprintf(" %s: %s | %s |", title, nameOf(arguments[1]), nameOf(arguments[2]))
		if ratio {
			header += " ratio |"
		}
		for _, name := range a.labels {
			before, after := a.median(name, unit), b.median(name, unit)
			rows[name] += fmt.Sprintf(" %.*f | %.*f |", decimals, before/divisor, decimals, after/divisor)
			if ratio && after == 0 {
				rows[name] += " – |"
			} else if ratio {
				rows[name] += fmt.Sprintf(" %.2f |", before/after)
				changed[name] = changed[name] || before/after > 1.1 || before/after < 0.9
			}
		}
	}
	fmt.Printf("\n%s\n|---|%s\n", header, strings.Repeat("---:|", strings.Count(header, "|")-2))
	for _, name := range a.labels {
		if changed[name] || !onlyChanged {
			fmt.Println("| " + name + " |" + rows[name])
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
		// The number of nodes in an operation is its time per operation divided by its time per node.
		if perNode := m.median(name, "ns/node"); perNode > 0 {
			fmt.Printf("| %s | %s | %.1f | %.2f |\n", arguments[0], name, perNode, m.median(name, "allocs/op")*perNode/m.median(name, "ns/op"))
		}
	}
	return nil
}
