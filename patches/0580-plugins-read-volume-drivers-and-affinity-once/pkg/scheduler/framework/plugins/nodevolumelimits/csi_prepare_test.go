// SPDX-License-Identifier: Apache-2.0

package nodevolumelimits

import (
	"context"
	"fmt"
	"math/rand"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	csitrans "k8s.io/csi-translation-lib"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	fakeframework "k8s.io/kubernetes/pkg/scheduler/framework/fake"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// TestPreparedCSILimits compares the prepared filter with Filter, for volumes of two drivers, without a driver and
// missing ones, and for limits of both kinds.
func TestPreparedCSILimits(t *testing.T) {
	var claims fakeframework.PersistentVolumeClaimLister
	var volumes fakeframework.PersistentVolumeLister
	for i := 0; i < 9; i++ {
		name := fmt.Sprint(i)
		claims = append(claims, v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: name},
		})
		volume := v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		switch i % 3 {
		case 2:
			volume.Spec.HostPath = &v1.HostPathVolumeSource{}
		default:
			volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: []string{"x", "y"}[i%3], VolumeHandle: name}
		}
		volumes = append(volumes, volume)
	}
	claims = append(claims, v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pending"}})
	seen := map[string]int{}
	for seed := int64(0); seed < 3000; seed++ {
		random := rand.New(rand.NewSource(seed))
		pod := func(most int) *v1.Pod {
			pod := st.MakePod().Obj()
			for i := random.Intn(most); i > 0; i-- {
				claim := []string{fmt.Sprint(random.Intn(9)), fmt.Sprint(random.Intn(9)), fmt.Sprint(random.Intn(9)), "pending", "missing"}[random.Intn(5)]
				if random.Intn(4) > 0 {
					claim = fmt.Sprint(random.Intn(9))
				}
				pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{VolumeSource: v1.VolumeSource{
					PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
				}})
			}
			return pod
		}
		var running []*v1.Pod
		for i := random.Intn(4); i > 0; i-- {
			running = append(running, pod(4))
		}
		nodeInfo := framework.NewNodeInfo(running...)
		capacity := map[v1.ResourceName]string{}
		if random.Intn(3) == 0 {
			capacity[v1.ResourceName(volumeutil.GetCSIAttachLimitKey("x"))] = "2"
		}
		nodeInfo.SetNode(st.MakeNode().Name("node").Capacity(capacity).Obj())
		csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		for _, name := range []string{"x", "y", "z"} {
			limit := int32(random.Intn(4))
			switch random.Intn(3) {
			case 0:
				csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}})
			case 1:
				csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: name})
			}
		}
		pl := &CSILimits{
			csiNodeLister: getFakeCSINodeLister(csiNode), pvLister: volumes, pvcLister: claims, randomVolumeIDPrefix: "p", translator: csitrans.New(),
		}
		asked := pod(4)
		want := pl.Filter(context.Background(), nil, asked, nodeInfo)
		var got *framework.Status
		filter := pl.PrepareFilter(nil, asked)
		if filter != nil {
			got = filter(nodeInfo)
		}
		if got.Code() != want.Code() || got.Message() != want.Message() {
			t.Fatalf("seed %d: Filter returned %q, the prepared filter %q", seed, want.Message(), got.Message())
		}
		_, _, once := pl.volumesOf(asked)
		seen[fmt.Sprint(want.Code(), " once=", once)]++
	}
	for _, kind := range []string{"Success once=true", "Unschedulable once=true", "Success once=false", "Unschedulable once=false", "Error once=false"} {
		if seen[kind] == 0 {
			t.Errorf("no case has %s: %v", kind, seen)
		}
	}
}
