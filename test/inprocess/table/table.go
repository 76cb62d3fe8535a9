// SPDX-License-Identifier: Apache-2.0

// Package table prints the results of comparisons.
package table

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
)

// Log prints rows of cells to a test's log, under a title and the names of the columns.
func Log(tb testing.TB, title string, columns []string, rows func(row func(cells ...any))) {
	tb.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\t\n", strings.Join(columns, "\t"))
	rows(func(cells ...any) {
		for _, cell := range cells {
			fmt.Fprintf(w, "%v\t", cell)
		}
		fmt.Fprintln(w)
	})
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%s\n%s", title, text.String())
}
