// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Switches change what upstream's scheduler does, for all profiles. The zero value changes nothing.
type Switches struct {
	// RespectBudgets makes preemption evict pods within their PodDisruptionBudgets, or not at all. A pod with a
	// system-critical priority is excepted.
	RespectBudgets bool
	// NominationTimeout is how long after the end of its grace period a pod may still terminate before preemption
	// treats it as stuck: nothing waits for its end, and its eviction makes no room. 0 is forever.
	NominationTimeout time.Duration
}

// AddFlags adds the flags of the switches.
func (s *Switches) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.RespectBudgets, "preemption-respects-budgets", s.RespectBudgets, "If set, preemption violates no PodDisruptionBudget: it uses the eviction API, which needs the permission to create pods/eviction. Pods with a system-critical priority are excepted.")
	fs.DurationVar(&s.NominationTimeout, "preemption-nomination-timeout", s.NominationTimeout, "If above 0, a pod no longer waits for its nominated node when pods there still terminate this long after the end of their grace periods: it may preempt pods elsewhere.")
}

// Validate returns an error for a value that is not possible.
func (s *Switches) Validate() []error {
	if s.NominationTimeout < 0 {
		return []error{fmt.Errorf("--preemption-nomination-timeout is %v, but a time cannot be below 0; next: give 0 or remove the flag to wait without limit", s.NominationTimeout)}
	}
	return nil
}

// SwitchesOf returns the switches of a plugin's scheduler. Other handles have none.
func SwitchesOf(handle Handle) Switches {
	if of, ok := handle.(interface{ Switches() Switches }); ok {
		return of.Switches()
	}
	return Switches{}
}
