// SPDX-License-Identifier: Apache-2.0

package nodevolumelimits

import (
	"context"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

var _ framework.PreparedFilterPlugin = &CSILimits{}

// driver is a CSI driver that the pod's volumes need.
type driver struct {
	name  string
	limit v1.ResourceName // limit of its volumes on a node
}

// PrepareFilter skips pods without claims, and determines the drivers of a pod's volumes once, if they are the same
// for all nodes.
func (pl *CSILimits) PrepareFilter(state *framework.CycleState, pod *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	if !hasClaims(pod) {
		return nil
	}
	volumes, drivers, ok := pl.volumesOf(pod)
	if !ok {
		return func(nodeInfo *framework.NodeInfo) *framework.Status {
			return pl.Filter(context.TODO(), state, pod, nodeInfo)
		}
	}
	if len(volumes) == 0 {
		return nil
	}
	exceeded := framework.NewStatus(framework.Unschedulable, ErrReasonMaxVolumeCountExceeded).WithFailedPlugin(CSIName)
	return func(nodeInfo *framework.NodeInfo) *framework.Status {
		// A node without a CSINode may still have limits.
		csiNode, _ := pl.csiNodeLister.Get(nodeInfo.Node().Name)
		if !hasVolumeLimits(nodeInfo, csiNode) {
			return nil
		}
		attached := make(map[string]string)
		for _, existing := range nodeInfo.Pods {
			if hasClaims(existing.Pod) {
				if err := pl.filterAttachableVolumes(existing.Pod, csiNode, false, attached); err != nil {
					return framework.AsStatus(err)
				}
			}
		}
		for _, d := range drivers {
			limit, ok := d.limitOn(nodeInfo, csiNode)
			if !ok {
				continue
			}
			count := int64(0)
			for _, key := range attached {
				if key == string(d.limit) {
					count++
				}
			}
			// An attached volume is not attached again.
			added := int64(0)
			for name, key := range volumes {
				if _, ok := attached[name]; !ok && key == string(d.limit) {
					added++
				}
			}
			if added > 0 && count+added > limit {
				return exceeded
			}
		}
		return nil
	}
}

func hasClaims(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].PersistentVolumeClaim != nil || pod.Spec.Volumes[i].Ephemeral != nil {
			return true
		}
	}
	return false
}

// volumesOf returns the pod's volumes, as filterAttachableVolumes does, and their drivers. It returns false if they
// may differ between nodes, as for unbound volumes and volumes of in-tree drivers.
func (pl *CSILimits) volumesOf(pod *v1.Pod) (map[string]string, []driver, bool) {
	var drivers []driver
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Ephemeral != nil {
			return nil, nil, false
		}
		claim := pod.Spec.Volumes[i].PersistentVolumeClaim
		if claim == nil {
			continue
		}
		pvc, err := pl.pvcLister.PersistentVolumeClaims(pod.Namespace).Get(claim.ClaimName)
		if err != nil || pvc.Spec.VolumeName == "" {
			return nil, nil, false
		}
		pv, err := pl.pvLister.Get(pvc.Spec.VolumeName)
		if err != nil || pv.Spec.CSI == nil {
			return nil, nil, false
		}
		d := driver{name: pv.Spec.CSI.Driver, limit: v1.ResourceName(volumeutil.GetCSIAttachLimitKey(pv.Spec.CSI.Driver))}
		known := false
		for _, other := range drivers {
			known = known || other == d
		}
		if !known {
			drivers = append(drivers, d)
		}
	}
	volumes := make(map[string]string)
	if err := pl.filterAttachableVolumes(pod, nil, true, volumes); err != nil {
		return nil, nil, false
	}
	return volumes, drivers, true
}

// hasVolumeLimits reports whether getVolumeLimits finds any.
func hasVolumeLimits(nodeInfo *framework.NodeInfo, csiNode *storagev1.CSINode) bool {
	if csiNode != nil {
		for i := range csiNode.Spec.Drivers {
			if a := csiNode.Spec.Drivers[i].Allocatable; a != nil && a.Count != nil {
				return true
			}
		}
	}
	for name := range nodeInfo.Allocatable.ScalarResources {
		if v1helper.IsAttachableVolumeResourceName(name) {
			return true
		}
	}
	return false
}

// limitOn returns the driver's limit among those of getVolumeLimits.
func (d *driver) limitOn(nodeInfo *framework.NodeInfo, csiNode *storagev1.CSINode) (int64, bool) {
	if csiNode != nil {
		for i := range csiNode.Spec.Drivers {
			if a := csiNode.Spec.Drivers[i].Allocatable; csiNode.Spec.Drivers[i].Name == d.name && a != nil && a.Count != nil {
				return int64(*a.Count), true
			}
		}
	}
	limit, ok := nodeInfo.Allocatable.ScalarResources[d.limit]
	return limit, ok
}
