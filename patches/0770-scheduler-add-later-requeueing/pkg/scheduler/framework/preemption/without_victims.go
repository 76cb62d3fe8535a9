// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Preempted is the message with which a victim that waits at Permit is rejected.
const Preempted = "preempted"

// skipsNodesWithoutVictims reports whether a node on which the pod fits without evictions, because only an extender
// rejected it, is not a candidate. In stock it is an error, after which the pod keeps its nomination for another node.
func (ev *Evaluator) skipsNodesWithoutVictims() bool {
	return framework.SwitchesOf(ev.Handler).LaterRequeueing
}

// withoutVictims returns the status of such a node.
func (ev *Evaluator) withoutVictims(node string) *framework.Status {
	if ev.skipsNodesWithoutVictims() {
		return framework.NewStatus(framework.Unschedulable, "node(s) needed no preemption")
	}
	return framework.AsStatus(fmt.Errorf("expected at least one victim pod on node %q", node))
}

// withoutCandidate returns the result if extenders left no candidate; nil keeps the pod's nomination.
func (ev *Evaluator) withoutCandidate() *framework.PostFilterResult {
	if ev.skipsNodesWithoutVictims() {
		return framework.NewPostFilterResultWithNominatedNode("")
	}
	return nil
}
