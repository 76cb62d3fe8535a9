// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"
	csitranslation "k8s.io/csi-translation-lib"
	storageutil "k8s.io/kubernetes/pkg/apis/storage/util"
	pvutil "k8s.io/kubernetes/pkg/controller/volume/persistentvolume/util"
)

// claim makes the claims of a pod as its StatefulSet does from the templates, and as the controller of ephemeral volumes
// does. A StatefulSet takes a claim that exists already.
func (s *Simulation) claim(of *v1.Pod, templates []v1.PersistentVolumeClaim) {
	for i := range templates {
		name := templates[i].Name
		made := v1.PersistentVolumeClaim{Spec: *templates[i].Spec.DeepCopy()}
		made.Name = name + "-" + of.Name
		s.addClaim(of.Namespace, &made)
		// It takes the place of a volume of the same name.
		volumes := []v1.Volume{{Name: name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: made.Name}}}}
		for _, volume := range of.Spec.Volumes {
			if volume.Name != name {
				volumes = append(volumes, volume)
			}
		}
		of.Spec.Volumes = volumes
	}
	for i := range of.Spec.Volumes {
		if volume := &of.Spec.Volumes[i]; volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
			made := v1.PersistentVolumeClaim{Spec: *volume.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()}
			made.Name = ephemeral.VolumeClaimName(of, volume)
			made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, v1.SchemeGroupVersion.WithKind("Pod"))}
			s.addClaim(of.Namespace, &made)
		}
	}
}

// addClaim adds a claim that does not exist, with the default class.
func (s *Simulation) addClaim(namespace string, made *v1.PersistentVolumeClaim) {
	made.Namespace = namespace
	key := namespace + "/" + made.Name
	if s.store.of(made).get(key) != nil {
		return
	}
	s.claims++
	made.UID = types.UID(fmt.Sprintf("%s/%d", key, s.claims))
	made.Status.Phase = v1.ClaimPending
	for _, object := range s.store.of(&storagev1.StorageClass{}).indexer.List() {
		class := object.(*storagev1.StorageClass)
		if made.Spec.StorageClassName == nil && storageutil.IsDefaultAnnotation(class.ObjectMeta) {
			made.Spec.StorageClassName = &class.Name
		}
	}
	s.store.put(made)
	s.bindVolume(made)
}

// collect removes the claims of a pod's ephemeral volumes when the pod is gone, as the garbage collector does, and their
// volumes.
func (s *Simulation) collect(gone *v1.Pod) {
	for i := range gone.Spec.Volumes {
		if gone.Spec.Volumes[i].Ephemeral == nil {
			continue
		}
		key := gone.Namespace + "/" + ephemeral.VolumeClaimName(gone, &gone.Spec.Volumes[i])
		claim, ok := s.store.of(&v1.PersistentVolumeClaim{}).get(key).(*v1.PersistentVolumeClaim)
		if !ok || ephemeral.VolumeIsForPod(gone, claim) != nil {
			continue
		}
		s.store.remove(claim)
		if of, ok := s.store.of(&v1.PersistentVolume{}).get(claim.Spec.VolumeName).(*v1.PersistentVolume); ok &&
			of.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete {
			s.store.remove(of)
		}
	}
}

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
		if object.Spec.VolumeName != "" || object.Spec.StorageClassName == nil {
			return
		}
		class, ok := s.store.of(&storagev1.StorageClass{}).get(*object.Spec.StorageClassName).(*storagev1.StorageClass)
		if !ok || class.Provisioner == "kubernetes.io/no-provisioner" {
			return
		}
		node := s.nodes[object.Annotations[pvutil.AnnSelectedNode]]
		if node == nil {
			if class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
				return
			}
			s.notes[fmt.Sprintf("claims get a volume of the class %q before their pod has a node: here it is reachable "+
				"wherever the class allows", class.Name)]++
		}
		driver := class.Provisioner
		if migrated, err := csitranslation.New().GetCSINameFromInTreeName(driver); err == nil {
			driver = migrated
		}
		volume := &v1.PersistentVolume{}
		volume.Name = fmt.Sprintf("provisioned-%s-%s", object.Namespace, object.Name)
		volume.Spec = v1.PersistentVolumeSpec{
			Capacity: object.Spec.Resources.Requests, AccessModes: object.Spec.AccessModes, StorageClassName: class.Name,
			VolumeMode: object.Spec.VolumeMode,
			ClaimRef:   &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: object.Namespace, Name: object.Name, UID: object.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volume.Name},
			},
		}
		if class.ReclaimPolicy != nil {
			volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
		}
		if terms := s.reach(class, driver, node); len(terms) > 0 {
			volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}
		}
		s.bindClaim(object.DeepCopy(), volume)
	}
}

// reach returns from where a new volume is reachable: from its node's place by the keys of the driver, or by default its
// zone; without a node wherever the class allows.
func (s *Simulation) reach(class *storagev1.StorageClass, driver string, on *node) (terms []v1.NodeSelectorTerm) {
	in := func(key string, values ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}
	}
	if on == nil {
		for _, allowed := range class.AllowedTopologies {
			term := v1.NodeSelectorTerm{}
			for _, e := range allowed.MatchLabelExpressions {
				term.MatchExpressions = append(term.MatchExpressions, in(e.Key, e.Values...))
			}
			terms = append(terms, term)
		}
		return terms
	}
	var here []v1.NodeSelectorRequirement
	if known, ok := s.store.of(&storagev1.CSINode{}).get(on.name).(*storagev1.CSINode); ok {
		for _, installed := range known.Spec.Drivers {
			for _, key := range installed.TopologyKeys {
				// A key that the node does not have says nothing of where it is.
				if value := s.nodeObject(on.name).Labels[key]; installed.Name == driver && value != "" {
					here = append(here, in(key, value))
				}
			}
		}
	}
	if here == nil && on.zone != "" {
		here = append(here, in(v1.LabelTopologyZone, on.zone))
	}
	if here != nil {
		terms = append(terms, v1.NodeSelectorTerm{MatchExpressions: here})
	}
	return terms
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
