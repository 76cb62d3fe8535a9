// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Score returns a random score with randomScore, and otherwise 0.
func (pl *Chaos) Score(_ context.Context, state *framework.CycleState, pod *v1.Pod, nodeName string) (int64, *framework.Status) {
	if !pl.args.RandomScore {
		return framework.MinNodeScore, nil
	}
	current := pl.disturbed(state, pod)
	if current == nil {
		return framework.MinNodeScore, nil
	}
	return current.score(nodeName), nil
}

// ScoreExtensions returns the plugin itself, for NormalizeScore.
func (pl *Chaos) ScoreExtensions() framework.ScoreExtensions {
	return pl
}

// NormalizeScore sends the pod to a random feasible node, with a chance of randomBindPercent: that node scores 100, and
// all others 0. With a weight above the sum of all others, the scheduler itself chooses that node, so its checks,
// volumes and events are about it. With a single feasible node, the scheduler does not score.
func (pl *Chaos) NormalizeScore(_ context.Context, state *framework.CycleState, pod *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	current := pl.disturbed(state, pod)
	switch {
	case current == nil:
	case current.redirects(pl.args.RandomBindPercent):
		current.drawn = current.drawNode(scores)
		pl.log("Redirecting the pod to a random node", pod, current, "node", current.drawn, "nodes", len(scores))
		for i := range scores {
			scores[i].Score = framework.MinNodeScore
			if scores[i].Name == current.drawn {
				scores[i].Score = framework.MaxNodeScore
			}
		}
	case pl.args.RandomScore:
		current.scored = true
		pl.counters.scored.Inc()
		pl.log("Scoring the nodes at random", pod, current, "nodes", len(scores))
	}
	return nil
}
