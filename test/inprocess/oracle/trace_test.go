// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-scheduler-fork/test/inprocess/decision"
)

var (
	firstFlag    = flag.Int64("first", 1, "the first scenario's number")
	countFlag    = flag.Int64("count", 5, "how many scenarios")
	durationFlag = flag.Duration("duration", 0, "go on with further scenarios for so long, whatever -count says")
	traceFlag    = flag.String("trace", "", "file to which traces are written")
	scenarioFlag = flag.String("scenario", "", "file with a scenario in JSON, to run instead of generated ones")
	shrinkFlag   = flag.Bool("shrink", true, "make the first scenario with a difference as small as it can be")
	againstFlag  = flag.String("against", "", "this test, compiled with another scheduler")
)

// batch is the number of scenarios that the other scheduler runs in one process.
const batch = 5

// TestSameInputSameTrace checks that this scheduler's decisions only depend on the scenario.
func TestSameInputSameTrace(t *testing.T) {
	for number := *firstFlag; number < *firstFlag+*countFlag; number++ {
		scenario := Generate(number)
		if diff := difference(Run(t, scenario), Run(t, scenario)); diff != "" {
			t.Errorf("scenario %d: %s", number, diff)
		}
	}
}

// TestWriteTraces runs in the other process of TestAgainst.
func TestWriteTraces(t *testing.T) {
	if *traceFlag == "" {
		t.Skip("without -trace there is nothing to write")
	}
	var traces [][]string
	if *scenarioFlag != "" {
		content, err := os.ReadFile(*scenarioFlag)
		if err != nil {
			t.Fatal(err)
		}
		scenario := &Scenario{}
		if err := json.Unmarshal(content, scenario); err != nil {
			t.Fatal(err)
		}
		traces = append(traces, Run(t, scenario))
	} else {
		for number := *firstFlag; number < *firstFlag+*countFlag; number++ {
			traces = append(traces, Run(t, Generate(number)))
		}
	}
	if can, did, didNot := decision.WhatIfs(); can && *scenarioFlag == "" {
		t.Logf("%d what-ifs were answered meanwhile, and %d were not", did, didNot)
		if did == 0 {
			t.Error("no what-if was answered meanwhile")
		}
	}
	encoded, err := json.Marshal(traces)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*traceFlag, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAgainst runs scenarios here and with the scheduler in the other binary, and compares the traces. It shrinks and
// prints the first scenario with a difference.
func TestAgainst(t *testing.T) {
	if *againstFlag == "" {
		t.Skip("without -against, there is nothing to compare with")
	}
	other := &process{binary: *againstFlag, folder: t.TempDir()}
	began, number := time.Now(), *firstFlag
	compared, lines, failed, overcommitted := 0, 0, 0, 0
	for number < *firstFlag+*countFlag || time.Since(began) < *durationFlag {
		wait := other.start(t, "-first", fmt.Sprint(number), "-count", fmt.Sprint(batch))
		var here [][]string
		for i := int64(0); i < batch; i++ {
			here = append(here, nil)
			if scenario := Generate(number + i); !scenario.Overcommits {
				here[i] = Run(t, scenario)
			}
		}
		for i, there := range wait() {
			if scenario := Generate(number + int64(i)); scenario.Overcommits {
				here[i] = Run(t, scenario.without(there))
				overcommitted++
			}
			if difference(here[i], there) == "" {
				compared++
				lines += len(there)
				failed += strings.Count(strings.Join(there, "\n"), "Warning FailedScheduling")
				continue
			}
			if !*shrinkFlag {
				t.Fatalf("scenario %d: - here, + there:\n%s", number+int64(i), difference(here[i], there))
			}
			scenario := Generate(number + int64(i))
			differs := func(s *Scenario) string {
				there := other.run(t, s)
				return difference(Run(t, s.without(there)), there)
			}
			if differs(scenario) == "" {
				t.Fatalf("scenario %d differs only sometimes: %s", number+int64(i), difference(here[i], there))
			}
			small := shrink(scenario, func(s *Scenario) bool { return differs(s) != "" })
			encoded, err := json.Marshal(small)
			if err != nil {
				t.Fatal(err)
			}
			t.Fatalf("scenario %d: - here, + there:\n%s\nAs a test that fails where the two differ:\n\n%s",
				number+int64(i), differs(small), asTest(number+int64(i), encoded, Run(t, small.without(other.run(t, small)))))
		}
		number += batch
	}
	t.Logf("%d scenarios, %d decisions, verdicts, conditions and events, %d of failed attempts; overcommitting pods in %d: no difference",
		compared, lines, failed, overcommitted)
}

// process runs scenarios with the other scheduler.
type process struct{ binary, folder string }

// start starts scenarios, and returns a function that waits for their traces.
func (p *process) start(tb testing.TB, arguments ...string) func() [][]string {
	tb.Helper()
	trace := filepath.Join(p.folder, "trace.json")
	arguments = append([]string{"-test.run=^TestWriteTraces$", "-trace=" + trace}, arguments...)
	command := exec.Command(p.binary, arguments...)
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	return func() [][]string {
		tb.Helper()
		if err := command.Wait(); err != nil {
			tb.Fatalf("%s: %v\n%s", p.binary, err, output.String())
		}
		content, err := os.ReadFile(trace)
		if err != nil {
			tb.Fatal(err)
		}
		var traces [][]string
		if err := json.Unmarshal(content, &traces); err != nil {
			tb.Fatal(err)
		}
		return traces
	}
}

func (p *process) run(tb testing.TB, scenario *Scenario) []string {
	tb.Helper()
	encoded, err := json.Marshal(scenario)
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(p.folder, "scenario.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		tb.Fatal(err)
	}
	return p.start(tb, "-scenario", file)()[0]
}

// asTest returns a scenario as a Go test of this package that expects the trace want.
func asTest(number int64, scenario []byte, want []string) string {
	return fmt.Sprintf("func TestScenario%d(t *testing.T) {\n\texpect(t, %s, []string{\n\t\t%s,\n\t})\n}\n",
		number, quoted(string(scenario)), strings.Join(all(want, quoted), ",\n\t\t"))
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

func all(texts []string, change func(string) string) []string {
	var changed []string
	for _, text := range texts {
		changed = append(changed, change(text))
	}
	return changed
}

// expect fails a printed test whose scenario has another trace.
func expect(t *testing.T, scenario string, want []string) {
	t.Helper()
	decoded := &Scenario{}
	if err := json.Unmarshal([]byte(scenario), decoded); err != nil {
		t.Fatal(err)
	}
	if diff := difference(want, Run(t, decoded)); diff != "" {
		t.Error(diff)
	}
}

// TestScenarioRoundTripsThroughJSON checks the format in which scenarios are printed and passed to the other process.
func TestScenarioRoundTripsThroughJSON(t *testing.T) {
	scenario := Generate(1)
	encoded, err := json.Marshal(scenario)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(encoded), Run(t, scenario))
}
