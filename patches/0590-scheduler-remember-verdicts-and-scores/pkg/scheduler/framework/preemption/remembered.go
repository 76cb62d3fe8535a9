// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// statusOf returns the filters' status of a node. Without a map of statuses, it is that of the cycle's search.
func (ev *Evaluator) statusOf(m framework.NodeToStatusMap, node string) *framework.Status {
	if search := ev.State.Search(); m == nil && search != nil {
		return search.StatusOf(node)
	}
	return m[node]
}

// lacksVictims reports whether it is known from earlier cycles, and from the nodes that changed since, that no node has
// pods to remove.
func (ev *Evaluator) lacksVictims(pod *v1.Pod) bool {
	return ev.search != nil && ev.State.Search().LacksVictims(pod, func(node *framework.NodeInfo) bool {
		return ev.hasNoVictims(pod, node)
	})
}

// rememberVictims records the result of a dry run for the next cycles, if no node has pods to remove.
func (ev *Evaluator) rememberVictims(ctx context.Context, pod *v1.Pod) {
	if ev.search != nil && ev.search.candidates == 0 && len(ev.search.evaluated) == 0 && ctx.Err() == nil {
		ev.State.Search().FoundNoVictims(pod)
	}
}
