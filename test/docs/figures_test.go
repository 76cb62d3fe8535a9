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

// table is the first one on a page after a text.
type table struct{ page, after string }

// cell is in the first row that begins with a text. Its value is multiplied by factor, or divides a negative factor.
type cell struct {
	row    string
	column int
	factor float64
}

var (
	decision = table{"performance", "## A decision"}
	binding  = table{"performance", "## With an API server"}
	several  = table{"several-schedulers", "## Throughput"}
	openB    = table{"simulate", "all 1,523 nodes"}
	speed    = table{"simulate", "## Speed"}
)

// figures are numbers that stand in a sentence, or in another table, too: one for each group of the pattern.
var figures = []struct {
	page, sentence string
	table          table
	cells          []cell
}{
	{"several-schedulers", `take (\S+) ms in stock and (\S+) ms here .* some (\S+) and (\S+) a second`, decision,
		[]cell{{"basic,", 1, 1e-3}, {"basic,", 2, 1e-3}, {"basic,", 1, -1e6}, {"basic,", 2, -1e6}}},
	{"performance", `basic pods \| (\S+) \| (\S+) \|`, decision, []cell{{"basic,", 1, -1e6}, {"basic,", 2, -1e6}}},
	{"performance", `decision is \[(\S+) times\]`, decision, []cell{{"basic,", 3, 1}}},
	{"performance", `are bound (\S+) to (\S+) times as fast`, binding, []cell{{"Unschedulable/", 3, 1}, {"SchedulingBasic/5000", 3, 1}}},
	{"performance", "`qps: 50`, the default \\| (\\S+) \\| (\\S+) \\|", several, []cell{{"50, 1, no", 1, 1}, {"50, 1, no", 2, 1}}},
	{"performance", `#throughput\) \| (\S+) \| (\S+) \|`, several, []cell{{"1000, 1, no", 1, 1}, {"1000, 1, no", 2, 1}}},
	{"scenarios", `default profile \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|`, openB,
		[]cell{{"LeastAllocated", 5, 1}, {"LeastAllocated", 1, 1}, {"LeastAllocated", 2, 1}, {"LeastAllocated", 6, 1}}},
	{"scenarios", `by CPU and memory \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|`, openB,
		[]cell{{"MostAllocated", 5, 1}, {"MostAllocated", 1, 1}, {"MostAllocated", 2, 1}, {"MostAllocated", 6, 1}}},
	{"scenarios", `gpu.yaml \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|`, openB,
		[]cell{{"gpu.yaml", 5, 1}, {"gpu.yaml", 1, 1}, {"gpu.yaml", 2, 1}, {"gpu.yaml", 6, 1}}},
	{"simulate", `equal pods: (\S+) pods per second of CPU`, speed, []cell{{"5,000 nodes, 20,000", 2, -20000}}},
	{"simulate", `spreading and affinity: (\S+) \|`, speed, []cell{{"5,000 nodes, 10,000", 2, -10000}}},
	{"overcommit", `it gains (\S+) to (\S+) points more than a fixed factor`, table{"overcommit", "## Gain and violations"},
		[]cell{{"Maximum, headroom 20 %", 4, 1}, {"Maximum, headroom 10 %", 4, 1}}},
}

var number = regexp.MustCompile(`[+-]?\d[\d,]*(?:\.\d+)?`)

// value parses the first number of a text. It also returns the unit of its last digit that is given.
func value(t *testing.T, text string) (value, unit float64) {
	t.Helper()
	text = strings.ReplaceAll(number.FindString(text), ",", "")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
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
		if len(found) != len(f.cells)+1 {
			t.Errorf("docs/%s.md has no %q", f.page, f.sentence)
			continue
		}
		_, table, _ := strings.Cut(read(f.table.page), f.table.after)
		for i, cell := range f.cells {
			_, row, has := strings.Cut(table, "\n| "+cell.row)
			row, _, _ = strings.Cut(row, "\n")
			columns := strings.Split(row, " | ")
			if !has || len(columns) <= cell.column {
				t.Errorf("docs/%s.md has no row %q with %d columns after %q", f.table.page, cell.row, cell.column, f.table.after)
				continue
			}
			want, _ := value(t, columns[cell.column])
			if want *= cell.factor; cell.factor < 0 {
				want = cell.factor * cell.factor / -want
			}
			if got, unit := value(t, found[i+1]); math.Abs(got-want) > unit*0.501 {
				t.Errorf("docs/%s.md says %s in %q; the row %q of docs/%s.md has %.4g", f.page, found[i+1], found[0], cell.row, f.table.page, want)
			}
		}
	}
}

// A page that names a build is out of date with the next patch; examples have a name that no build has.
func TestPagesNameNoBuild(t *testing.T) {
	for file, page := range pages(t) {
		for _, name := range regexp.MustCompile(`fork\.[0-9a-f]{12}`).FindAllString(page, -1) {
			if name != "fork.0123456789ab" {
				t.Errorf("%s names the build %s", file, name)
			}
		}
	}
}
