// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PreScore draws whether the pod goes to a random one of the feasible nodes, and to which. The scheduler does not call
// it when only one node is feasible: then there is nothing to draw.
func (pl *Chaos) PreScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) *framework.Status {
	current := pl.disturbed(state, pod)
	if current == nil {
		return nil
	}
	if pl.args.RandomScore {
		pl.counters.scored.Inc()
		pl.log("Scores are thrown with a die", pod, current, "nodes", len(nodes))
	}
	if current.redirects(pl.args.RandomBindPercent) && !usesClaims(pod) {
		current.drawn = current.drawNode(nodes)
	}
	return nil
}

// Score throws the node's die, if randomScore says so; else all nodes score 0.
func (pl *Chaos) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	if !pl.args.RandomScore || pl.args.DryRun {
		return framework.MinNodeScore, nil
	}
	current := pl.disturbed(state, pod)
	if current == nil {
		return framework.MinNodeScore, nil
	}
	if atomic.LoadUint32(&current.scored) == 0 {
		atomic.StoreUint32(&current.scored, 1)
	}
	return current.score(nodeName), nil
}

// ScoreExtensions returns nil: the scores are between 0 and 100 as they are.
func (pl *Chaos) ScoreExtensions() framework.ScoreExtensions {
	return nil
}

// usesClaims says whether the pod has volumes that are claimed. Their place is chosen for the best node before the pod
// is bound, so the pod must go there.
func usesClaims(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; volume.PersistentVolumeClaim != nil || volume.Ephemeral != nil {
			return true
		}
	}
	return false
}
