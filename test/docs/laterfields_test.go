// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

// TestThePageHasTheLaterFieldsThatTheSchedulerKnows compares the table of the package with that of the page, both ways.
func TestThePageHasTheLaterFieldsThatTheSchedulerKnows(t *testing.T) {
	source := cluster.Read(t, filepath.Join(root, "plugins/shared/laterfields/fields.go"))
	page := cluster.Read(t, filepath.Join(root, "docs/leaving-1.23.md"))
	_, section, _ := strings.Cut(page, "\n## Fields of later releases\n")
	rows := func(pattern, text string) (rows []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			rows = append(rows, found[1]+" since 1."+found[2]+": "+found[3])
		}
		slices.Sort(rows)
		return rows
	}
	known := rows(`(?m)^\t\{"([^"]+)", (\d+), "(\w+)", `, source)
	listed := rows("(?m)^\\| `([^`]+)` \\| 1\\.(\\d+) \\| (counted|honoured|waits) \\|", section)
	if len(known) == 0 || !slices.Equal(known, listed) {
		t.Errorf("docs/leaving-1.23.md lists\n%s\nand laterfields.Fields has\n%s", strings.Join(listed, "\n"), strings.Join(known, "\n"))
	}
}
