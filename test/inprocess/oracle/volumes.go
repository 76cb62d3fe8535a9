// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	driver = "csi.example.com"
	// bindCompleted is the annotation of a fully bound claim.
	bindCompleted = "pv.kubernetes.io/bind-completed"
)

// volumes creates claims and their volumes, and the attach limits of nodes. Only steps bind claims: no volume has a
// class, so the scheduler finds none.
func (g *generator) volumes(s *Scenario) {
	if g.one(2) {
		s.Features["ReadWriteOncePod"] = true
	}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	s.Classes = []*storagev1.StorageClass{{
		ObjectMeta:  metav1.ObjectMeta{Name: "late"},
		Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
	}}
	for _, node := range s.Nodes {
		if g.one(3) {
			continue
		}
		limit := int32(1 + g.Intn(3))
		s.CSINodes = append(s.CSINodes, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: driver, NodeID: node.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit},
			}}},
		})
	}
	for i := 4 + g.Intn(8); i > 0; i-- {
		g.claim(s, fmt.Sprintf("claim-%d", i), fmt.Sprintf("volume-%d", i))
	}
}

// claim creates a claim, and usually its volume.
func (g *generator) claim(s *Scenario, name, volumeName string) {
	namespace := g.of(namespaces...)
	g.claims[namespace] = append(g.claims[namespace], name)
	none, size := "", v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "0"},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &none, Resources: v1.ResourceRequirements{Requests: size},
			AccessModes: []v1.PersistentVolumeAccessMode{
				v1.PersistentVolumeAccessMode(g.of("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")),
			},
		},
	}
	s.Claims = append(s.Claims, claim)
	switch g.Intn(8) {
	case 0:
		g.unbound = append(g.unbound, claim)
		return
	case 1:
		late := "late"
		claim.Spec.StorageClassName = &late
		g.unbound = append(g.unbound, claim)
		return
	case 2:
		claim.Spec.VolumeName, claim.Status.Phase = "lost", v1.ClaimLost
		return
	}
	bind(claim, volumeName)
	if g.one(12) {
		claim.Spec.VolumeName = "missing"
		return
	}
	s.Volumes = append(s.Volumes, g.volume(claim, volumeName))
}

func bind(claim *v1.PersistentVolumeClaim, volumeName string) {
	claim.Annotations = map[string]string{bindCompleted: "yes"}
	claim.Spec.VolumeName, claim.Status.Phase = volumeName, v1.ClaimBound
}

// bound returns steps that bind a claim, if one is left: usually the volume is there first.
func (g *generator) bound() []Step {
	if len(g.unbound) == 0 {
		return nil
	}
	claim := g.unbound[0].DeepCopy()
	g.unbound = g.unbound[1:]
	name := "late-" + claim.Name
	bind(claim, name)
	steps := []Step{{PutVolume: g.volume(claim, name)}, {PutClaim: claim}}
	if g.one(4) {
		return []Step{steps[1], {Retry: true}, steps[0]}
	}
	return steps
}

// volume creates the volume of a claim.
func (g *generator) volume(claim *v1.PersistentVolumeClaim, volumeName string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volumeName, UID: types.UID(volumeName), ResourceVersion: "0", Labels: map[string]string{},
		},
		Spec: v1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			ClaimRef: &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
	}
	if g.one(4) {
		volume.Spec.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: volumeName}
	} else {
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volumeName}
	}
	switch g.Intn(4) {
	case 0:
		volume.Labels[v1.LabelTopologyZone] = g.of("a", "b", "a__b")
	case 1:
		key, values := v1.LabelTopologyZone, []string{g.of(zoneNames...), "b"}
		if g.one(3) {
			key = v1.LabelHostname
			values = []string{fmt.Sprintf("node-%d", g.Intn(g.nodes)), fmt.Sprintf("node-%d", g.Intn(g.nodes))}
		}
		requirement := v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}
		volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}},
		}}
	}
	return volume
}

// mount sometimes adds volumes to a pod: claims of its namespace, which may be missing, and disks without a claim.
func (g *generator) mount(pod *v1.Pod) {
	add := func(source v1.VolumeSource) {
		name := fmt.Sprintf("v%d", len(pod.Spec.Volumes))
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	}
	if claims := g.claims[pod.Namespace]; len(claims) > 0 {
		for g.one(3) {
			name := g.of(claims...)
			if g.one(15) {
				name = "claim-missing"
			}
			add(v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
		}
	}
	if g.one(6) {
		disk := &v1.GCEPersistentDiskVolumeSource{PDName: g.of("disk-1", "disk-2"), ReadOnly: g.one(2)}
		add(v1.VolumeSource{GCEPersistentDisk: disk})
	}
	if g.one(12) {
		disk := &v1.AWSElasticBlockStoreVolumeSource{VolumeID: g.of("ebs-1", "ebs-2")}
		add(v1.VolumeSource{AWSElasticBlockStore: disk})
	}
}
