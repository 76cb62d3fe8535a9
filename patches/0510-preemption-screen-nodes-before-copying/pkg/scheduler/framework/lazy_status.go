// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"sync"

	"k8s.io/klog/v2"
)

// lazyReason is a reason that is built when it is first read.
type lazyReason struct {
	once   sync.Once
	make   func() string
	reason string
}

// NewLazyStatus returns a Status with one reason, which is built when it is first read: most are long and never read.
// The inputs of the build function must not change in this scheduling cycle.
func NewLazyStatus(code Code, make func() string) *Status {
	if klog.V(5).Enabled() {
		// The scheduler logs it field by field.
		return NewStatus(code, make())
	}
	return &Status{code: code, lazy: &lazyReason{make: make}}
}

// allReasons returns the Status' reasons, and builds them if necessary.
func (s *Status) allReasons() []string {
	if s.lazy == nil {
		return s.reasons
	}
	s.lazy.once.Do(func() { s.lazy.reason = s.lazy.make() })
	return append([]string{s.lazy.reason}, s.reasons...)
}

// unread returns the single Status whose reason has not been built yet, if there is one.
func (p PluginToStatus) unread() *Status {
	for _, s := range p {
		if len(p) == 1 && s != nil && s.lazy != nil {
			return s
		}
	}
	return nil
}

// countReasons returns the number of nodes for each reason. It first groups nodes that share a Status.
func countReasons(statuses NodeToStatusMap) map[string]int {
	nodes := make(map[*Status]int)
	var last *Status
	sharing := 0
	for _, status := range statuses {
		if status != last && sharing > 0 {
			nodes[last] += sharing
			sharing = 0
		}
		last = status
		sharing++
	}
	if sharing > 0 {
		nodes[last] += sharing
	}
	reasons := make(map[string]int)
	for status, n := range nodes {
		for _, reason := range status.Reasons() {
			reasons[reason] += n
		}
	}
	return reasons
}
