// SPDX-License-Identifier: Apache-2.0

// Package filterrule is shared by plugins that reject by rules: it matches objects, and returns and counts verdicts.
package filterrule

import (
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// DefaultActionLabel is the value of the label "rule" for the default action. It cannot be the name of a rule, which is
// a DNS label without upper case.
const DefaultActionLabel = "defaultAction"

// MatchesAny reports whether one of the patterns of path.Match matches the whole name, or whether there are no
// patterns. Validation has refused malformed patterns.
func MatchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches, _ := path.Match(pattern, name); matches {
			return true
		}
	}
	return len(patterns) == 0
}

// Condition is a condition of a rule on pods or nodes, by names and labels.
type Condition struct {
	patterns []string
	selector labels.Selector // nil if any labels match
}

// NewCondition returns a condition on a name, or a namespace, as of MatchesAny, and on labels if there is a selector.
func NewCondition(patterns []string, selector *metav1.LabelSelector) (c Condition, err error) {
	c.patterns = patterns
	if selector != nil {
		c.selector, err = metav1.LabelSelectorAsSelector(selector)
	}
	return c, err
}

// Matches reports whether the condition is met.
func (c *Condition) Matches(name string, set labels.Set) bool {
	return MatchesAny(c.patterns, name) && (c.selector == nil || c.selector.Matches(set))
}

// Verdict is the result of a rule: pass, or a counted rejection with a reason.
type Verdict struct {
	// code is the code of a rejection, or Success.
	code framework.Code
	// reasons is a single reason, in a slice that all statuses share. Its capacity is its length, so append copies it.
	reasons []string
	counter metrics.CounterMetric
}

// NewVerdict returns a verdict that does not depend on other pods. The reason and the counter are those of a rejection.
func NewVerdict(deny bool, reason string, counter metrics.CounterMetric) Verdict {
	code := framework.Success
	if deny {
		code = framework.UnschedulableAndUnresolvable
	}
	return Verdict{code: code, reasons: []string{reason}, counter: counter}
}

// NewResolvable returns a rejection that preemption may resolve.
func NewResolvable(reason string, counter metrics.CounterMetric) Verdict {
	return Verdict{code: framework.Unschedulable, reasons: []string{reason}, counter: counter}
}

// Denies reports whether the verdict is a rejection.
func (v *Verdict) Denies() bool { return v.code != framework.Success }

// Status returns nil, or a rejection, which it counts except in a dry run. Each call returns a new status, because the
// framework's workers write the plugin's name into it in parallel.
func (v *Verdict) Status(whatIf bool) *framework.Status {
	if !v.Denies() {
		return nil
	}
	if !whatIf {
		v.counter.Inc()
	}
	return framework.NewStatus(v.code, v.reasons...)
}

// Counters returns a function that returns the counter of a rule in the handle's profile, from a vector with the labels
// "profile" and "rule".
func Counters(handle framework.Handle, rejections *metrics.CounterVec) func(rule string) metrics.CounterMetric {
	profile := services.ProfileOf(handle)
	return func(rule string) metrics.CounterMetric {
		return rejections.WithLabelValues(profile, rule)
	}
}
