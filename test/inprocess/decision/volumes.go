// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// awaitVolumes waits until the plugins have the claims and volumes. VolumeBinding has its own caches for each profile,
// which lag behind the informers: it is called until it misses neither a claim nor the claim's bound volume.
func (s *Scheduler) awaitVolumes(objects []runtime.Object) {
	s.tb.Helper()
	volumes := make(map[string]bool)
	for _, object := range objects {
		if volume, ok := object.(*v1.PersistentVolume); ok {
			volumes[volume.Name] = true
		}
	}
	nodeInfo := framework.NewNodeInfo()
	nodeInfo.SetNode(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "any"},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}},
	})
	for _, object := range objects {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: "asks"}}
		pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
		for _, profile := range s.Profiles {
			s.await("claims and volumes in the scheduler's plugins", func() bool {
				state := framework.NewCycleState()
				status := profile.RunPreFilterPlugins(s.ctx, state, pod)
				if !status.IsSuccess() || !volumes[claim.Spec.VolumeName] {
					return status.Code() != framework.Error
				}
				missing := profile.RunFilterPlugins(s.ctx, state, pod, nodeInfo).Merge().Message()
				return !strings.Contains(missing, string(volumebinding.ErrReasonPVNotExist))
			})
		}
	}
}
