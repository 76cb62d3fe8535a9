// SPDX-License-Identifier: Apache-2.0

package scheduler

import "k8s.io/kubernetes/pkg/scheduler/framework"

// WithSwitches changes what upstream's scheduler does, and sets other options.
func WithSwitches(switches framework.Switches, others ...Option) Option {
	return func(o *schedulerOptions) {
		o.switches = switches
		for _, other := range others {
			other(o)
		}
	}
}
