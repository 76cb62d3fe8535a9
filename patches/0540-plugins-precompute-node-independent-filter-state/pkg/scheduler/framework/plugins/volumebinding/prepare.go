// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var (
	_ framework.PreparedFilterPlugin = &VolumeBinding{}
	_ framework.AlikeScorePlugin     = &VolumeBinding{}
)

// ScoresAlike reports whether the pod has no claims, or capacities are not scored.
func (pl *VolumeBinding) ScoresAlike(state *framework.CycleState) bool {
	data, err := getStateData(state)
	return pl.scorer == nil || err == nil && data.skip
}

// PrepareFilter skips pods without claims.
func (pl *VolumeBinding) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	if data, err := getStateData(state); err == nil && data.skip {
		return nil
	}
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		return pl.Filter(context.TODO(), state, pod, nodeInfo)
	}
}
