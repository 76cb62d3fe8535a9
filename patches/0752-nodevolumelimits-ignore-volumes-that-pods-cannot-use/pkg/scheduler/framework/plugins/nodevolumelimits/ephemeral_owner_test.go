// SPDX-License-Identifier: Apache-2.0

package nodevolumelimits

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	csitrans "k8s.io/csi-translation-lib"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	fakeframework "k8s.io/kubernetes/pkg/scheduler/framework/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// TestClaimOfAnotherOwner has a pod on the node with an ephemeral volume whose claim belongs to somebody else. Anyone who
// may set nodeName can create such a pod. It must neither fail the attempts of others nor take a volume from them.
func TestClaimOfAnotherOwner(t *testing.T) {
	var claims fakeframework.PersistentVolumeClaimLister
	var volumes fakeframework.PersistentVolumeLister
	for _, name := range []string{"csi", "gce", "stranger-csi", "stranger-gce"} {
		source := v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: name}}
		if name == "gce" || name == "stranger-gce" {
			source = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: name}}
		}
		claims = append(claims, v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: name}})
		volumes = append(volumes, v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source}})
	}
	stranger := st.MakePod().Name("stranger").UID("stranger").Node("node").Obj()
	for _, name := range []string{"csi", "gce"} {
		stranger.Spec.Volumes = append(stranger.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
	}
	node := framework.NewNodeInfo(stranger)
	node.SetNode(st.MakeNode().Name("node").Capacity(map[v1.ResourceName]string{"attachable-volumes-gce-pd": "1"}).Obj())
	csiNodes := getFakeCSINodeLister(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: "driver", Allocatable: &storagev1.VolumeNodeResources{Count: pointer.Int32(1)}}},
	}})
	csi := &CSILimits{csiNodeLister: csiNodes, pvLister: volumes, pvcLister: claims, translator: csitrans.New()}
	nonCSI := newNonCSILimits(gcePDVolumeFilterType, csiNodes, nil, volumes, claims, feature.Features{}).(framework.FilterPlugin)
	for _, tt := range []struct {
		name, claim string
		filter      func(pod *v1.Pod) *framework.Status
	}{
		{"NodeVolumeLimits", "csi", func(pod *v1.Pod) *framework.Status { return csi.Filter(context.Background(), nil, pod, node) }},
		{"NodeVolumeLimits, prepared", "csi", func(pod *v1.Pod) *framework.Status { return csi.PrepareFilter(nil, pod)(node) }},
		{"GCEPDLimits", "gce", func(pod *v1.Pod) *framework.Status { return nonCSI.Filter(context.Background(), nil, pod, node) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status := tt.filter(st.MakePod().Name("other").PVC(tt.claim).Obj()); !status.IsSuccess() {
				t.Errorf("a pod with the node's only volume: %v", status)
			}
			if status := tt.filter(stranger); status.Code() != framework.Error {
				t.Errorf("the pod itself: got %v, want an error", status)
			}
		})
	}
}
