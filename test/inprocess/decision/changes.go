// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

var podResource = v1.SchemeGroupVersion.WithResource("pods")

// pod returns a pod of the cluster (namespace/name), or nil.
func (s *Scheduler) pod(name string) *v1.Pod {
	parts := strings.SplitN(name, "/", 2)
	found, err := s.Client.Tracker().Get(podResource, parts[0], parts[1])
	if err != nil {
		return nil
	}
	return found.(*v1.Pod)
}

// nextVersion returns a resource version that no object had before. The scheduler ignores updates with an old one.
func (s *Scheduler) nextVersion() string {
	s.version++
	return fmt.Sprint(s.version)
}

// PutPod gives a pod, if it exists, the labels of the given one, its UID if it has one (as if the watch missed that a
// pod was replaced), and its deletion timestamp if the pod has a node: the scheduler does not try a pending pod that
// terminates. It waits until the scheduler has received the pod.
func (s *Scheduler) PutPod(change *v1.Pod) {
	s.tb.Helper()
	pod := s.pod(key(change))
	if pod == nil {
		return
	}
	pod = pod.DeepCopy()
	pod.Labels, pod.ResourceVersion = change.Labels, s.nextVersion()
	if change.UID != "" {
		pod.UID = change.UID
	}
	if change.DeletionTimestamp != nil && pod.Spec.NodeName != "" {
		pod.DeletionTimestamp = change.DeletionTimestamp
	}
	s.watches.awaitRoom()
	if err := s.Client.Tracker().Update(podResource, pod, pod.Namespace); err != nil {
		s.tb.Fatal(err)
	}
	s.await("the changed pod in the scheduler", func() bool {
		for _, known := range s.SchedulingQueue.PendingPods() {
			if known.UID == pod.UID {
				return known.ResourceVersion == pod.ResourceVersion
			}
		}
		known, err := s.SchedulerCache.GetPod(pod)
		return err == nil && known.ResourceVersion == pod.ResourceVersion
	})
}

// PutNamespace creates or changes a namespace, and waits until the plugins have it.
func (s *Scheduler) PutNamespace(namespace *v1.Namespace) {
	s.tb.Helper()
	namespace = namespace.DeepCopy()
	s.names[namespace.Name] = true
	s.put("namespaces", namespace)
	s.await("the namespace in the informer", func() bool {
		known, found, err := s.spaces.GetByKey(namespace.Name)
		return err == nil && found && known.(*v1.Namespace).ResourceVersion == namespace.ResourceVersion
	})
}

// PutVolume creates or changes a volume, and waits until the plugins have it.
func (s *Scheduler) PutVolume(volume *v1.PersistentVolume) {
	s.tb.Helper()
	volume = volume.DeepCopy()
	s.put("persistentvolumes", volume)
	s.awaitVolumes([]runtime.Object{volume})
}

// PutClaim creates or changes a claim, and waits until the plugins have it.
func (s *Scheduler) PutClaim(claim *v1.PersistentVolumeClaim) {
	s.tb.Helper()
	claim = claim.DeepCopy()
	s.put("persistentvolumeclaims", claim)
	s.awaitVolumes([]runtime.Object{claim})
}

// put creates or changes an object, and sets its resource version.
func (s *Scheduler) put(resource string, object runtime.Object) {
	s.tb.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		s.tb.Fatal(err)
	}
	accessor.SetResourceVersion(s.nextVersion())
	s.watches.awaitRoom()
	tracker, of := s.Client.Tracker(), v1.SchemeGroupVersion.WithResource(resource)
	if _, err = tracker.Get(of, accessor.GetNamespace(), accessor.GetName()); err == nil {
		err = tracker.Update(of, object, accessor.GetNamespace())
	} else {
		err = tracker.Create(of, object, accessor.GetNamespace())
	}
	if err != nil {
		s.tb.Fatal(err)
	}
}
