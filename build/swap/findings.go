// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kube-scheduler-fork/build/nextstep"
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

// failed is a problem that came as an error, with its next step if it has one.
func (f *Findings) failed(err error) {
	what, next := nextstep.Split(err, otherwise)
	f.problem(next, "%s", what)
}

// What an operator can accept: a problem of that kind is a warning then.
const (
	// ProfilingFlags are flags of the manifest that switch profiling off, and lose their effect with a configuration.
	ProfilingFlags = "profiling"
	// OwnConfiguration is a configuration of the operator's own, which another one replaces.
	OwnConfiguration = "own-configuration"
	// PendingPods are pods that wait for a profile that goes.
	PendingPods = "pending-pods"
	// SharedProfiles are profiles that another scheduler of the cluster serves, too.
	SharedProfiles = "shared-profiles"
)

// Acceptable are all that an operator can accept.
var Acceptable = []string{ProfilingFlags, OwnConfiguration, PendingPods, SharedProfiles}

// checkAccepted refuses what is none of them.
func checkAccepted(kinds []string) error {
	for _, kind := range kinds {
		if !slices.Contains(Acceptable, kind) {
			return nextstep.With(fmt.Errorf("--accept %s is unknown", kind), "name what check says: %s", strings.Join(Acceptable, ", "))
		}
	}
	return nil
}

// unless is a problem that the operator may accept.
func (f *Findings) unless(accepted []string, kind, next, format string, arguments ...any) {
	if slices.Contains(accepted, kind) {
		f.warn("nothing: it is accepted", format, arguments...)
		return
	}
	f.problem(next+"; if it is intended: --accept "+kind, format, arguments...)
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
