// SPDX-License-Identifier: Apache-2.0

// Package whatif marks the CycleState of a dry run, so that plugins can recognize it.
package whatif

import "k8s.io/kubernetes/pkg/scheduler/framework"

const key framework.StateKey = "shared/what-if"

type mark struct{}

// Clone implements framework.StateData: a copy of the state belongs to the same dry run.
func (m mark) Clone() framework.StateData { return m }

// Mark declares that a state belongs to a dry run.
func Mark(state *framework.CycleState) { state.Write(key, mark{}) }

// Is reports whether the state belongs to a dry run. The plugin must not remember, count or log a dry run.
func Is(state *framework.CycleState) bool {
	if state == nil {
		return false
	}
	_, err := state.Read(key)
	return err == nil
}
