// SPDX-License-Identifier: Apache-2.0

package runtime

import "k8s.io/kubernetes/pkg/scheduler/framework"

// WithSwitches sets the switches that framework.SwitchesOf returns.
func WithSwitches(switches framework.Switches) Option {
	return func(o *frameworkOptions) { o.switches = switches }
}

// Switches returns the scheduler's switches.
func (f *frameworkImpl) Switches() framework.Switches { return f.switches }
