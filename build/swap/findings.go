// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kube-scheduler-fork/build/nextstep"
)

// Severity is the effect of a finding on a swap.
type Severity string

const (
	// Problem makes a swap fail, or leaves the cluster without a working scheduler.
	Problem Severity = "problem"
	// Warning does not prevent a swap, but deserves a look.
	Warning Severity = "warning"
)

// Finding is a result of check, with the next step.
type Finding struct {
	Severity Severity
	What     string
	Next     string
}

// Findings are all results of a check.
type Findings []Finding

func (f *Findings) problem(next, format string, arguments ...any) {
	*f = append(*f, Finding{Severity: Problem, What: fmt.Sprintf(format, arguments...), Next: next})
}

func (f *Findings) warn(next, format string, arguments ...any) {
	*f = append(*f, Finding{Severity: Warning, What: fmt.Sprintf(format, arguments...), Next: next})
}

// failed adds a problem for an error, with its next step if it has one.
func (f *Findings) failed(err error) {
	what, next := nextstep.Split(err, otherwise)
	f.problem(next, "%s", what)
}

// Kinds of problems that an operator can accept; an accepted one becomes a warning.
const (
	// ProfilingFlags are flags in the manifest that disable profiling, and have no effect with a configuration.
	ProfilingFlags = "profiling"
	// OwnConfiguration is an operator's configuration that the swap replaces.
	OwnConfiguration = "own-configuration"
	// PendingPods are pods waiting for a profile that the new scheduler does not have.
	PendingPods = "pending-pods"
	// SharedProfiles are profiles that another scheduler of the cluster also serves.
	SharedProfiles = "shared-profiles"
)

// Acceptable lists all kinds that an operator can accept.
var Acceptable = []string{ProfilingFlags, OwnConfiguration, PendingPods, SharedProfiles}

// checkAccepted returns an error for a kind that is not in Acceptable.
func checkAccepted(kinds []string) error {
	for _, kind := range kinds {
		if !slices.Contains(Acceptable, kind) {
			return nextstep.With(fmt.Errorf("--accept %s is unknown", kind), "use one of: %s", strings.Join(Acceptable, ", "))
		}
	}
	return nil
}

// unless adds a problem, or a warning if the operator accepts this kind.
func (f *Findings) unless(accepted []string, kind, next, format string, arguments ...any) {
	if slices.Contains(accepted, kind) {
		f.warn("nothing: it is accepted", format, arguments...)
		return
	}
	f.problem(next+"; if this is intended: --accept "+kind, format, arguments...)
}

// Problems returns the number of findings that make a swap fail.
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
