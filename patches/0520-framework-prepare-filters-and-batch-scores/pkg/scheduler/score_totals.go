// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// totaler is a Framework that adds up the scores of all plugins without one list for each.
type totaler interface {
	ScoreTotals(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, *framework.Status)
}

// scoreTotals runs the Score plugins, and returns the sum of the weighted scores for each node.
func scoreTotals(ctx context.Context, fwk framework.Framework, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, *framework.Status) {
	if fwk, ok := fwk.(totaler); ok && !klog.V(10).Enabled() {
		return fwk.ScoreTotals(ctx, state, pod, nodes)
	}
	scores, status := fwk.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, status
	}
	totals := make(framework.NodeScoreList, len(nodes))
	for i, node := range nodes {
		totals[i].Name = node.Name
	}
	for plugin, list := range scores {
		for i, nodeScore := range list {
			klog.V(10).InfoS("Plugin scored node for pod", "pod", klog.KObj(pod), "plugin", plugin, "node", nodeScore.Name, "score", nodeScore.Score)
			totals[i].Score += nodeScore.Score
		}
	}
	return totals, nil
}

// withReason returns a copy of a status with one more reason. The original may be shared between nodes.
func withReason(status *framework.Status, reason string) *framework.Status {
	reasons := append(append([]string(nil), status.Reasons()...), reason)
	return framework.NewStatus(status.Code(), reasons...).WithFailedPlugin(status.FailedPlugin())
}
