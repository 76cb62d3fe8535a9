// SPDX-License-Identifier: Apache-2.0

package nodevolumelimits

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var (
	_ framework.PreparedFilterPlugin = &CSILimits{}
	_ framework.PreparedFilterPlugin = &nonCSILimits{}
)

// PrepareFilter skips pods without claims: only claims bring CSI volumes.
func (pl *CSILimits) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].PersistentVolumeClaim != nil || pod.Spec.Volumes[i].Ephemeral != nil {
			return func(nodeInfo *framework.NodeInfo) *framework.Status {
				return pl.Filter(context.TODO(), state, pod, nodeInfo)
			}
		}
	}
	return nil
}

// PrepareFilter skips pods without volumes of the kind that the plugin counts.
func (pl *nonCSILimits) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	volumes := sets.String{}
	if err := pl.filterVolumes(pod, true, volumes); err == nil && len(volumes) == 0 {
		return nil
	}
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		return pl.Filter(context.TODO(), state, pod, nodeInfo)
	}
}
