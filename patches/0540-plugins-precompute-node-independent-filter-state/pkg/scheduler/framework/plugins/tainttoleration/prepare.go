// SPDX-License-Identifier: Apache-2.0

package tainttoleration

import (
	"context"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var (
	_ framework.PreparedFilterPlugin = &TaintToleration{}
	_ framework.BatchScorePlugin     = &TaintToleration{}
)

// PrepareFilter creates one status for all nodes with the same taint, for the first few taints.
func (pl *TaintToleration) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	type taint struct{ key, value string }
	var statuses sync.Map
	var kept int32
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		taints := nodeInfo.Node().Spec.Taints
		for i := range taints {
			if t := &taints[i]; (t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute) &&
				!v1helper.TolerationsTolerateTaint(pod.Spec.Tolerations, t) {
				status, known := statuses.Load(taint{t.Key, t.Value})
				if !known {
					status = pl.Filter(context.TODO(), state, pod, nodeInfo).WithFailedPlugin(Name)
					if atomic.AddInt32(&kept, 1) <= 64 {
						statuses.Store(taint{t.Key, t.Value}, status)
					}
				}
				return status.(*framework.Status)
			}
		}
		return nil
	}
}

// ScoreNodes sets each score to the number of taints that the pod does not tolerate.
func (pl *TaintToleration) ScoreNodes(state *framework.CycleState, _ *v1.Pod, nodes []*framework.NodeInfo, scores framework.NodeScoreList) *framework.Status {
	s, err := getPreScoreState(state)
	if err != nil {
		return framework.AsStatus(err)
	}
	for i, nodeInfo := range nodes {
		taints := nodeInfo.Node().Spec.Taints
		for j := range taints {
			if taints[j].Effect == v1.TaintEffectPreferNoSchedule && !v1helper.TolerationsTolerateTaint(s.tolerationsPreferNoSchedule, &taints[j]) {
				scores[i].Score++
			}
		}
	}
	return nil
}
