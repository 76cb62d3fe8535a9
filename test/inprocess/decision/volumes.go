// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"reflect"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// awaitVolumes waits until the plugins have the given versions of claims, and the volumes. VolumeBinding has its own
// caches for each profile, which lag behind the informers.
func (s *Scheduler) awaitVolumes(objects []runtime.Object) {
	s.tb.Helper()
	for _, profile := range s.Profiles {
		binder := binderOf(profile)
		for _, object := range objects {
			object := object
			s.await("claims and volumes in the scheduler's plugins", func() bool {
				switch o := object.(type) {
				case *v1.PersistentVolumeClaim:
					return knowsClaim(binder, o)
				case *v1.PersistentVolume:
					claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeName: o.Name}}
					_, reasons, err := binder.FindPodVolumes(&v1.Pod{}, []*v1.PersistentVolumeClaim{claim}, nil, &v1.Node{})
					return err == nil && (len(reasons) == 0 || reasons[0] != volumebinding.ErrReasonPVNotExist)
				}
				return true
			})
		}
	}
}

func knowsClaim(binder volumebinding.SchedulerVolumeBinder, claim *v1.PersistentVolumeClaim) bool {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace}}
	pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}}}
	bound, delayed, immediate, err := binder.GetPodVolumes(pod)
	if err != nil {
		return false
	}
	known := append(append(bound, delayed...), immediate...)
	return len(known) == 1 && known[0].ResourceVersion == claim.ResourceVersion
}

// binderOf returns the volume binder of a profile. The framework gives no access to it, and the patched scheduler may
// wrap the framework.
func binderOf(profile framework.Framework) volumebinding.SchedulerVolumeBinder {
	value := reflect.ValueOf(profile).Elem()
	field := value.FieldByName("preFilterPlugins")
	for ; !field.IsValid(); field = value.FieldByName("preFilterPlugins") {
		value = value.Field(0).Elem().Elem()
	}
	for _, plugin := range *(*[]framework.PreFilterPlugin)(unsafe.Pointer(field.UnsafeAddr())) {
		if binding, ok := plugin.(*volumebinding.VolumeBinding); ok {
			return binding.Binder
		}
	}
	return nil
}
