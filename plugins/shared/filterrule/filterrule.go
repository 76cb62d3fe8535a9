// SPDX-License-Identifier: Apache-2.0

// Package filterrule holds what plugins have in common that reject by rules: which names a rule is about, what it
// decides, and how that is counted.
package filterrule

import (
	"path"

	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// DefaultActionLabel stands for the default action in the label "rule". No rule can be called so: rules have the names
// of DNS labels, which have no upper case.
const DefaultActionLabel = "defaultAction"

// MatchesAny says whether one of the patterns of path.Match matches the whole name; without patterns every name does.
// What is no pattern was refused with the arguments.
func MatchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches, _ := path.Match(pattern, name); matches {
			return true
		}
	}
	return len(patterns) == 0
}

// Verdict is what becomes of what a rule matches: it passes, or it is rejected for a reason and counted.
type Verdict struct {
	// code is that of a rejection; Success is for what passes.
	code framework.Code
	// reasons is the one reason, in a slice that all statuses share: there is no room in it, so that who appends to it
	// makes a slice of his own.
	reasons []string
	counter metrics.CounterMetric
}

// NewVerdict returns a verdict that no preemption changes. The reason and the counter are those of a rejection.
func NewVerdict(deny bool, reason string, counter metrics.CounterMetric) Verdict {
	code := framework.Success
	if deny {
		code = framework.UnschedulableAndUnresolvable
	}
	return Verdict{code: code, reasons: []string{reason}, counter: counter}
}

// NewResolvable returns a rejection that may be none when other pods are gone.
func NewResolvable(reason string, counter metrics.CounterMetric) Verdict {
	return Verdict{code: framework.Unschedulable, reasons: []string{reason}, counter: counter}
}

// Denies says whether it is a rejection.
func (v *Verdict) Denies() bool { return v.code != framework.Success }

// Status returns a rejection as a new status each time: the framework writes its plugin's name into the one that it
// gets, from all workers at once. It counts, unless the plugin is only asked what it would do. It returns nil for what
// passes.
func (v *Verdict) Status(whatIf bool) *framework.Status {
	if !v.Denies() {
		return nil
	}
	if !whatIf {
		v.counter.Inc()
	}
	return framework.NewStatus(v.code, v.reasons...)
}

// Counters returns what gives a profile's counter for a rule, from a vector with the labels "profile" and "rule". The
// profile is that of the framework that makes the plugin; another handle has none.
func Counters(handle framework.Handle, rejections *metrics.CounterVec) func(rule string) metrics.CounterMetric {
	profile := services.ProfileOf(handle)
	return func(rule string) metrics.CounterMetric {
		return rejections.WithLabelValues(profile, rule)
	}
}
