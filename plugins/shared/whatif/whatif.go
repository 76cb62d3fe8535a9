// SPDX-License-Identifier: Apache-2.0

// Package whatif tells plugins that they are asked what they would do, with no attempt to schedule a pod.
package whatif

import "k8s.io/kubernetes/pkg/scheduler/framework"

const key framework.StateKey = "shared/what-if"

type mark struct{}

// Clone is of framework.StateData: a copy of the state is of the same question.
func (m mark) Clone() framework.StateData { return m }

// Mark marks the state of a question.
func Mark(state *framework.CycleState) { state.Write(key, mark{}) }

// Is says whether a plugin is asked what it would do. Then it must not remember, count or log what it is asked.
func Is(state *framework.CycleState) bool {
	if state == nil {
		return false
	}
	_, err := state.Read(key)
	return err == nil
}
