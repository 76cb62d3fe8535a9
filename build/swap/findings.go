// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"io"
)

// Severity says what a finding means for a swap.
type Severity string

const (
	// Problem makes a swap fail, or leaves the cluster without a working scheduler.
	Problem Severity = "problem"
	// Warning is worth a look; a swap works all the same.
	Warning Severity = "warning"
)

// Finding is something that check has to say, and what to do about it.
type Finding struct {
	Severity Severity
	What     string
	Next     string
}

// Findings are all that check has to say.
type Findings []Finding

func (f *Findings) problem(next, format string, arguments ...any) {
	*f = append(*f, Finding{Severity: Problem, What: fmt.Sprintf(format, arguments...), Next: next})
}

func (f *Findings) warn(next, format string, arguments ...any) {
	*f = append(*f, Finding{Severity: Warning, What: fmt.Sprintf(format, arguments...), Next: next})
}

// Problems tells how many findings make a swap fail.
func (f Findings) Problems() int {
	count := 0
	for _, finding := range f {
		if finding.Severity == Problem {
			count++
		}
	}
	return count
}

// Write prints the findings for a person.
func (f Findings) Write(output io.Writer) {
	for _, finding := range f {
		fmt.Fprintf(output, "%s: %s\n  next: %s\n", finding.Severity, finding.What, finding.Next)
	}
	if len(f) == 0 {
		fmt.Fprintln(output, "nothing found that would make a swap fail")
	}
}
