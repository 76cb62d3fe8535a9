// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

// cell is in the first row that begins with a text. Its value is multiplied by factor, or divides a negative factor.
type cell struct {
	row    string
	column int
	factor float64
}

// figures are numbers that stand in a sentence, or in another table, too: one for each group of the pattern. The table is
// the first one on its page after a text.
var figures = []struct {
	page, sentence, table, after string
	cells                        []cell
}{
	{"several-schedulers", `take (\S+) ms in stock and (\S+) ms here .* some (\S+) and (\S+) a second`, "performance", "## A decision",
		[]cell{{"basic,", 1, 1e-3}, {"basic,", 2, 1e-3}, {"basic,", 1, -1e6}, {"basic,", 2, -1e6}}},
	{"performance", `basic pods \| (\S+) \| (\S+) \|`, "performance", "## A decision", []cell{{"basic,", 1, -1e6}, {"basic,", 2, -1e6}}},
	{"performance", `decision is \[(\S+) times\]`, "performance", "## A decision", []cell{{"basic,", 3, 1}}},
	{"performance", `are bound (\S+) to (\S+) times as fast`, "performance", "## With an API server",
		[]cell{{"Unschedulable/", 3, 1}, {"SchedulingBasic/5000", 3, 1}}},
	{"performance", "the default \\| (\\S+) \\| (\\S+) \\|", "several-schedulers", "## Throughput", []cell{{"50, 1, no", 1, 1}, {"50, 1, no", 2, 1}}},
	{"performance", `#throughput\) \| (\S+) \| (\S+) \|`, "several-schedulers", "## Throughput", []cell{{"1000, 1, no", 1, 1}, {"1000, 1, no", 2, 1}}},
	{"scenarios", `gpu.yaml \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|`, "simulate", "all 1,523 nodes",
		[]cell{{"gpu.yaml", 5, 1}, {"gpu.yaml", 1, 1}, {"gpu.yaml", 2, 1}, {"gpu.yaml", 6, 1}}},
	{"does-it-help", `below (\S+) cores: .* image, (\S+) a second \| (\S+): (\S+) pods a second became (\S+)\. .* three with 50 bound (\S+) `, "several-schedulers",
		"## Throughput", []cell{{"50, 1, no", 5, 0.01}, {"50, 1, no", 2, 1}, {"1000, 1, no", 5, 0.01}, {"1000, 1, no", 1, 1}, {"1000, 1, no", 2, 1}, {"50, 3, no", 1, 1}}},
	{"does-it-help", `decisions cost (\S+) to (\S+) times`, "performance", "## Clusters that", []cell{{"few-nodes, 1", 3, 1}, {"few-nodes-related", 3, 1}}},
	{"does-it-help", `Stock takes (\S+) to (\S+) ms at .* that fail are (\S+) to (\S+) times`, "performance", "## A decision",
		[]cell{{"host-ports", 1, 1e-3}, {"volumes", 1, 1e-3}, {"unschedulable-with-victims-again", 3, 1}, {"unschedulable-too-large-again", 3, 1}}},
	{"does-it-help", `were bound (\S+) to (\S+) times .* below 0.15 s: (\S+) ms became (\S+) .* room: (\S+) ms became (\S+) `, "performance", "## With an API server",
		[]cell{{"Unschedulable/", 3, 1}, {"SchedulingBasic/5000", 3, 1}, {"SchedulingBasic/500N", 7, 1}, {"SchedulingBasic/500N", 8, 1},
			{"SchedulingBasic/5000", 7, 1}, {"SchedulingBasic/5000", 8, 1}}},
	{"does-it-help", `fits waited (\S+) ms in stock, and (\S+) ms here`, "performance", "## Pods that do not fit", []cell{{"ms from", 1, 1}, {"ms from", 2, 1}}},
	{"does-it-help", `(\S+) became (\S+) with \[NodeLoad\].* below (\S+): NodeLoad left so much \| above (\S+),`, "node-load", "## What it gains",
		[]cell{{"default profile", 3, 1. / 180000}, {"[node-load.yaml]", 3, 1. / 180000}, {"[node-load.yaml]", 2, 0.01}, {"default profile", 2, 0.01}}},
	{"does-it-help", `(\S+) % of all CPU were gained`, "overcommit", "## Gain and violations", []cell{{"Maximum, headroom 10 %", 1, 1}}},
}

// value parses the number that a text begins with. It also returns the unit of its last given digit.
func value(text string) (value, unit float64) {
	text = strings.ReplaceAll(regexp.MustCompile(`^[+-]?\d[\d,]*(?:\.\d+)?`).FindString(text), ",", "")
	value, _ = strconv.ParseFloat(text, 64)
	whole, decimals, _ := strings.Cut(text, ".")
	if decimals != "" {
		return value, math.Pow10(-len(decimals))
	}
	return value, math.Pow10(len(whole) - len(strings.TrimRight(whole, "0")))
}

func TestFiguresOnPagesAreThoseOfTables(t *testing.T) {
	read := func(name string) string { return cluster.Read(t, root+"/docs/"+name+".md") }
	for _, f := range figures {
		found := regexp.MustCompile(f.sentence).FindStringSubmatch(strings.Join(strings.Fields(read(f.page)), " "))
		_, table, _ := strings.Cut(read(f.table), f.after)
		for i, cell := range f.cells {
			_, row, _ := strings.Cut(table, "\n| "+cell.row)
			row, _, _ = strings.Cut(row, "\n")
			columns := strings.Split(row, " | ")
			if len(found) != len(f.cells)+1 || len(columns) <= cell.column {
				t.Errorf("docs/%s.md has no sentence %q, or docs/%s.md no row %q", f.page, f.sentence, f.table, cell.row)
				break
			}
			want, _ := value(columns[cell.column])
			if want *= cell.factor; cell.factor < 0 {
				want = cell.factor * cell.factor / -want
			}
			if got, unit := value(found[i+1]); !(math.Abs(got-want) <= unit*0.501) {
				t.Errorf("docs/%s.md says %s in %q; the row %q of docs/%s.md has %.4g", f.page, found[i+1], found[0], cell.row, f.table, want)
			}
		}
	}
}

// A page that names a build is out of date with the next patch; examples have a name that no build has. The Go version of
// the page on releases is that of the build.
func TestPagesNameNoOtherBuild(t *testing.T) {
	for file, page := range pages(t) {
		if name := regexp.MustCompile(`fork\.[0-9a-f]{12}`).FindString(strings.ReplaceAll(page, "fork.0123456789ab", "")); name != "" {
			t.Errorf("%s names the build %s", file, name)
		}
	}
	version, pin := regexp.MustCompile(`go1[.\d]*\d`), cluster.Read(t, root+"/upstream.version")
	for _, file := range []string{"README.md", "README.zh-CN.md", "docs/releases.md"} {
		if got, want := version.FindString(cluster.Read(t, root+"/"+file)), version.FindString(pin); got != want {
			t.Errorf("%s names %s, and upstream.version %s", file, got, want)
		}
	}
}
