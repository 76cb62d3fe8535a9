// SPDX-License-Identifier: Apache-2.0

package scheduler

import "k8s.io/kubernetes/pkg/scheduler/framework"

// WithSwitches changes what upstream's scheduler does.
func WithSwitches(switches framework.Switches) Option {
	return func(o *schedulerOptions) { o.switches = switches }
}
