// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

// compared returns a comparison of a figure, which is better if it is lower, with a value for each seed.
func compared(values map[string][]float64, names ...string) *result.Comparison {
	c := &result.Comparison{}
	for _, name := range names {
		for seed, x := range values[name] {
			c.Runs = append(c.Runs, result.Run{Configuration: name, Seed: int64(seed), Figures: []result.Figure{
				{Name: "waiting_p99_seconds", Title: "waiting, p99", Unit: "s", Better: result.Lower, Value: x}}})
		}
	}
	return c
}

func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		stock, mine []float64
		direction   string
		verdict     string
		mean        float64
		interval    float64
	}{
		// The differences are -1, -2, -3: mean -2, deviation 1, interval 4.303 * 1 / √3 = 2.48, which includes 0.
		// The values of mine are 9, 18, 27: deviation 9, interval 4.303 * 9 / √3 = 22.36.
		"pairs that scatter": {[]float64{10, 20, 30}, []float64{9, 18, 27}, result.Lower, "no difference", 18, 22.3572},
		// The differences are -2, -2.5, -3: mean -2.5, deviation 0.5, interval 4.303 * 0.5 / √3 = 1.24, below 2.5, although
		// the intervals of the two means overlap. The values of mine are 8, 17.5, 27: deviation 9.5, interval 23.60.
		"pairs that agree":    {[]float64{10, 20, 30}, []float64{8, 17.5, 27}, result.Lower, "better", 17.5, 23.5992},
		"more is better":      {[]float64{10, 20, 30}, []float64{8, 17.5, 27}, result.Higher, "worse", 17.5, 23.5992},
		"no direction":        {[]float64{10, 20, 30}, []float64{8, 17.5, 27}, "", result.Lower, 17.5, 23.5992},
		"the same":            {[]float64{10, 20, 30}, []float64{10, 20, 30}, result.Lower, "no difference", 20, 24.8413},
		"the same difference": {[]float64{5, 5}, []float64{6, 6}, result.Lower, "worse", 6, 0},
		"rounding":            {[]float64{0.3, 0.3}, []float64{0.30000000000000004, 0.30000000000000004}, result.Lower, "no difference", 0.3, 0},
		"one seed, 1 %":       {[]float64{100}, []float64{101}, result.Lower, "no difference", 101, -1},
		"one seed, 2 %":       {[]float64{100}, []float64{102}, result.Lower, "worse", 102, -1},
		"one seed, from 0":    {[]float64{0}, []float64{0.1}, result.Lower, "worse", 0.1, -1},
		"one seed in common":  {[]float64{100}, []float64{90, 110}, result.Lower, "better", 100, 127.062},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(map[string][]float64{"stock": test.stock, "mine": test.mine}, "stock", "mine")
			for i := range c.Runs {
				c.Runs[i].Figures[0].Better = test.direction
			}
			got := table(configurations(c))[0].Cells[1]
			if got.Verdict != test.verdict || math.Abs(*got.Mean-test.mean) > 1e-9 {
				t.Errorf("got %s, mean %v; want %s, %v", got.Verdict, *got.Mean, test.verdict, test.mean)
			}
			if (got.Interval == nil) != (test.interval < 0) || got.Interval != nil && math.Abs(*got.Interval-test.interval) > 1e-3 {
				t.Errorf("got interval %v, want %v", got.Interval, test.interval)
			}
		})
	}
}

// The percentiles are from tables of the distribution.
func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.7062, 4: 2.7764, 9: 2.2622, 11: 2.2010, 15: 2.1314, 29: 2.0452, 1000: 1.9623} {
		if got := student(freedom); math.Abs(got-want) > 2e-4 {
			t.Errorf("with %d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

func TestText(t *testing.T) {
	c := compared(map[string][]float64{"stock": {1200, 1210}, "mine": {600, 620}, "theirs": {1205.5, 1205}}, "stock", "mine", "theirs")
	c.Runs[2].Figures = append(c.Runs[2].Figures, result.Figure{Name: "gangs", Title: "gangs", Value: 2})
	c.Runs[4].Incomplete = "interrupted at 3 h"
	c.Runs[2].Notes = []string{"Coscheduling uses wall time"}
	c.Input, c.NotModelled = []string{"cluster\x1b[31m.yaml: 3 nodes"}, "admission"
	c.Warnings = strings.Split(strings.Repeat("w ", 12), " ")[:12]
	var out, again strings.Builder
	if err := Text(&out, c); err != nil {
		t.Fatal(err)
	}
	want := `FIGURE             stock        mine       VERDICT           theirs (incomplete)   VERDICT
waiting, p99 (s)   1,205 ± 64   610 ± 127   better (−49 %)   1,205.2 ± 3.2   incomplete
gangs   –   2   –   incomplete

± is half of the 95 % interval over 2 seeds. Verdicts compare with stock, seed by seed, at a level of 95 %: of 20 rows without a real difference, chance gives one a verdict.
Input: cluster�[31m.yaml: 3 nodes
Warnings: 12
` + strings.Repeat("w\n", 10) + `
mine: Coscheduling uses wall time
theirs: incomplete, and not judged: interrupted at 3 h
Not modelled:
  admission
`
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if squeeze(out.String()) != squeeze(want) {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	if err := Text(&again, c); err != nil || again.String() != out.String() {
		t.Error("a second text differs")
	}
}

// TestDetails checks that the longest waits of gangs are shown, and workloads whose zones differ.
func TestDetails(t *testing.T) {
	c := compared(map[string][]float64{"stock": {1}, "mine": {1}}, "stock", "mine")
	c.Method = "Placed again"
	for i := 0; i < 22; i++ {
		name := fmt.Sprintf("default/gang-%02d", i)
		c.Runs[0].Gangs = append(c.Runs[0].Gangs, result.Gang{Name: name, Seconds: float64(i), Complete: true})
		c.Runs[1].Gangs = append(c.Runs[1].Gangs, result.Gang{Name: name, Seconds: 7200 - float64(3600*i)})
	}
	for i := range c.Runs {
		c.Runs[i].Workloads = []result.Workload{{Name: "equal", Pods: 2, Zones: map[string]int{"a": 2}}, {Name: "differs\x1b", Pods: 3, Zones: map[string]int{"a": 1 + i, "": 1}},
			{Name: "one", Pods: 2, Zones: map[string]int{"a": 2, "b": i}}}
	}
	var out strings.Builder
	if err := Text(&out, c); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Placed again FIGURE", "time until a gang is complete: 22 stock mine default/gang-00 0s incomplete after 120m " +
			"default/gang-01 1s incomplete after 60m default/gang-21 21s",
		"default/gang-04 4s", "workloads whose zones differ: 2 stock mine one a:2 b:0 a:2 b:1 differs� :1 a:1 :1 a:2",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", out.String(), want)
		}
	}
	if strings.Contains(got, "gang-03") || strings.Contains(got, "equal") {
		t.Errorf("got too much:\n%s", out.String())
	}
}

func TestMachineFormats(t *testing.T) {
	c := compared(map[string][]float64{"stock": {10}, "mi\u009bne": {8, 6}}, "stock", "mi\u009bne")
	var out strings.Builder
	if err := CSV(&out, c); err != nil {
		t.Fatal(err)
	}
	if want := `figure,unit,configuration,seed,value,interval95,verdict
waiting_p99_seconds,s,stock,0,10,,
waiting_p99_seconds,s,stock,mean,10,,
waiting_p99_seconds,s,mi�ne,0,8,,
waiting_p99_seconds,s,mi�ne,1,6,,
waiting_p99_seconds,s,mi�ne,mean,7,12.7062,better
`; out.String() != want {
		t.Errorf("got CSV\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := JSON(&out, c); err != nil {
		t.Fatal(err)
	}
	var decoded struct {
		Table []row
		Runs  []result.Run
	}
	if err := json.Unmarshal([]byte(out.String()), &decoded); err != nil || strings.ContainsRune(out.String(), 0x9b) {
		t.Fatal(err, out.String())
	}
	if got := decoded.Table[0].Cells[1]; *got.Mean != 7 || got.Configuration != "mi�ne" || len(decoded.Runs) != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestFailIf(t *testing.T) {
	c := compared(map[string][]float64{"stock": {10}, "mine.yaml": {12}, "their file": {9}}, "stock", "mine.yaml", "their file")
	for i := range c.Runs {
		c.Runs[i].Figures = append(c.Runs[i].Figures, result.Figure{Name: `pods_pending{priority_class="a}b"}`, Value: float64(i)})
	}
	c.Runs[0].Figures = append(c.Runs[0].Figures, result.Figure{Name: "cost", Value: 1})
	for text, want := range map[string]string{
		"waiting_p99_seconds > 1.1 * stock":      "waiting_p99_seconds of mine.yaml is 12 > 11 (1.1 * stock)",
		"waiting_p99>1.2*stock":                  "",
		"waiting_p99 >= 1.2*stock":               "waiting_p99_seconds of mine.yaml is 12 >= 12 (1.2 * stock)",
		"waiting_p99 >= stock":                   "waiting_p99_seconds of mine.yaml is 12 >= 10 (1 * stock)",
		"waiting_p99 < stock":                    "waiting_p99_seconds of their file is 9 < 10 (1 * stock)",
		"waiting_p99 <= 0.8 * mine.yaml":         "waiting_p99_seconds of their file is 9 <= 9.6 (0.8 * mine.yaml)",
		"waiting_p99 > 1.3 * their file":         "waiting_p99_seconds of mine.yaml is 12 > 11.7 (1.3 * their file)",
		"waiting_p99 > 9.5":                      "waiting_p99_seconds of stock is 10 > 9.5; waiting_p99_seconds of mine.yaml is 12 > 9.5",
		`pods_pending{priority_class="a}b"} > 1`: `pods_pending{priority_class="a}b"} of their file is 2 > 1`,
		"waiting_p99":                            "error: does not have the form",
		"waiting_p99 == 3":                       "error: does not have the form",
		"> 3":                                    "error: does not have the form",
		"waiting_p99 > 2 *":                      "error: does not have the form",
		"waiting_p99 > stok":                     `error: "stok"; there are only: stock, mine.yaml, their file`,
		"waiting_p98 > 1":                        "error: waiting_p98; there are: waiting_p99_seconds",
		"speed > 1":                              `error: there are: waiting_p99_seconds, pods_pending{priority_class="a}b"}, cost`,
		`waiting_p99{priority_class="high"} > 1`: "error: there are: waiting_p99_seconds",
		"cost > 0":                               "error: mine.yaml is incomplete or has no cost",
	} {
		t.Run(text, func(t *testing.T) {
			condition, err := ParseFailIf(text)
			var failures []string
			if err == nil {
				failures, err = condition.Check(c)
			}
			got := strings.Join(failures, "; ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if wanted := strings.TrimPrefix(want, "error: "); got != want && (wanted == want || err == nil || !strings.Contains(got, wanted)) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	condition, err := ParseFailIf("waiting_p99 > 100 * stock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := condition.Check(&result.Comparison{Runs: c.Runs[:1]}); err == nil || !strings.Contains(err.Error(), "there are only: stock") {
		t.Errorf("one configuration: %v", err)
	}
	c.Runs[1].Incomplete = "interrupted"
	if _, err := condition.Check(c); err == nil || !strings.Contains(err.Error(), "mine.yaml is incomplete") {
		t.Errorf("incomplete: %v", err)
	}
}
