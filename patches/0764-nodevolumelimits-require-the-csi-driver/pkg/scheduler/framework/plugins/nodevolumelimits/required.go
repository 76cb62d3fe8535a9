// SPDX-License-Identifier: Apache-2.0

package nodevolumelimits

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ErrReasonNoCSIDriver is the reason for a node without a CSI driver that the pod needs.
const ErrReasonNoCSIDriver = "node(s) did not have the CSI driver of a volume registered"

// required returns the lister of CSIDriver objects with --require-csi-driver, and nil without it.
func required(handle framework.Handle) storagelisters.CSIDriverLister {
	if framework.SwitchesOf(handle).RequireCSIDriver {
		return handle.SharedInformerFactory().Storage().V1().CSIDrivers().Lister()
	}
	return nil
}

// csiNodeEvents are the changes of CSINodes after which a pod that was rejected may fit.
func (pl *CSILimits) csiNodeEvents() framework.ActionType {
	if pl.csiDrivers != nil {
		return framework.Add | framework.Update // kubelet updates it when a driver registers.
	}
	return framework.Add
}

// lacksDriver returns a status if a volume of the pod needs a CSI driver that has not registered with the node's kubelet.
// The eviction of pods does not help.
func (pl *CSILimits) lacksDriver(pod *v1.Pod, csiNode *storagev1.CSINode) *framework.Status {
	if pl.csiDrivers == nil {
		return nil
	}
next:
	for i := range pod.Spec.Volumes {
		driver := pl.driverOf(pod, &pod.Spec.Volumes[i], csiNode)
		if driver == "" {
			continue
		}
		for j := 0; csiNode != nil && j < len(csiNode.Spec.Drivers); j++ {
			if csiNode.Spec.Drivers[j].Name == driver {
				continue next
			}
		}
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, ErrReasonNoCSIDriver)
	}
	return nil
}

// driverOf returns the CSI driver that a volume needs on a node, or "". The provisioner of a claim that is not bound may
// be none: only one with a CSIDriver object counts.
func (pl *CSILimits) driverOf(pod *v1.Pod, volume *v1.Volume, csiNode *storagev1.CSINode) string {
	claim := ""
	switch {
	case volume.CSI != nil:
		return volume.CSI.Driver
	case volume.PersistentVolumeClaim != nil:
		claim = volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		claim = ephemeral.VolumeClaimName(pod, volume)
	}
	pvc, err := pl.pvcLister.PersistentVolumeClaims(pod.Namespace).Get(claim)
	if err != nil {
		return ""
	}
	driver, _ := pl.getCSIDriverInfo(csiNode, pvc)
	if _, err := pl.pvLister.Get(pvc.Spec.VolumeName); err == nil {
		return driver
	}
	if _, err := pl.csiDrivers.Get(driver); err != nil {
		return ""
	}
	return driver
}

// needsDriver reports whether volumes of the pod may need CSI drivers.
func (pl *CSILimits) needsDriver(pod *v1.Pod) bool {
	if pl.csiDrivers == nil {
		return false
	}
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].CSI != nil {
			return true
		}
	}
	return hasClaims(pod)
}
