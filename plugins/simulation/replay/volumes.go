// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	pvutil "k8s.io/kubernetes/pkg/controller/volume/persistentvolume/util"
)

// bindVolume does what the controllers of volumes do after the scheduler's changes: it completes the binding of a volume
// to its claim, and provisions a volume for a claim whose node the scheduler selected.
func (s *Simulation) bindVolume(changed runtime.Object) {
	switch object := changed.(type) {
	case *v1.PersistentVolume:
		ref := object.Spec.ClaimRef
		if ref == nil {
			return
		}
		claim, ok := s.store.of(&v1.PersistentVolumeClaim{}).get(ref.Namespace + "/" + ref.Name).(*v1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName != "" {
			return
		}
		s.bindClaim(claim.DeepCopy(), object.DeepCopy())
	case *v1.PersistentVolumeClaim:
		node := object.Annotations[pvutil.AnnSelectedNode]
		if node == "" || object.Spec.VolumeName != "" || object.Spec.StorageClassName == nil {
			return
		}
		class, ok := s.store.of(&storagev1.StorageClass{}).get(*object.Spec.StorageClassName).(*storagev1.StorageClass)
		if !ok || class.Provisioner == "kubernetes.io/no-provisioner" {
			return
		}
		volume := &v1.PersistentVolume{}
		volume.Name = fmt.Sprintf("provisioned-%s-%s", object.Namespace, object.Name)
		volume.Spec = v1.PersistentVolumeSpec{
			Capacity: object.Spec.Resources.Requests, AccessModes: object.Spec.AccessModes, StorageClassName: class.Name,
			VolumeMode: object.Spec.VolumeMode,
			ClaimRef:   &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: object.Namespace, Name: object.Name, UID: object.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: volume.Name},
			},
		}
		// A volume is reachable from the zone of its node, unless the class says more.
		if on := s.nodes[node]; on != nil && on.zone != "" {
			volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{
					Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{on.zone},
				}},
			}}}}
		}
		s.bindClaim(object.DeepCopy(), volume)
	}
}

// bindClaim binds a claim and a volume to each other.
func (s *Simulation) bindClaim(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) {
	volume.Status.Phase = v1.VolumeBound
	s.store.put(volume)
	claim.Spec.VolumeName, claim.Status.Phase = volume.Name, v1.ClaimBound
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[pvutil.AnnBindCompleted] = "yes"
	s.store.put(claim)
}
