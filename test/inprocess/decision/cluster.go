// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// watches are the watches that the informers have on a fake client.
type watches struct {
	mutex sync.Mutex
	all   []watch.Interface
}

// watchesOf makes the client record every watch from now on.
func watchesOf(client *fake.Clientset) *watches {
	w := &watches{}
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		begun, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return false, nil, err
		}
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.all = append(w.all, begun)
		return true, begun, nil
	})
	return w
}

// await waits until there are n watches.
func (w *watches) await(tb testing.TB, n int) {
	await(tb, "the informers' watches", func() bool {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		return len(w.all) >= n
	})
}

// awaitRoom waits until every watch has room for one more event. A fake watch holds 100, and panics at the next one if
// its informer is slow.
func (w *watches) awaitRoom() {
	poll(func() bool {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, begun := range w.all {
			if events := begun.ResultChan(); len(events) > cap(events)/2 {
				return false
			}
		}
		return true
	})
}

// bind handles a posted binding like the API server: it sets the pod's node,
// unless it has one. The fake client alone would replace the pod with the binding.
func (s *Scheduler) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := create.GetObject().(*v1.Binding)
	found, err := s.Client.Tracker().Get(action.GetResource(), action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := found.(*v1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), pod.Name,
			fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, s.Client.Tracker().Update(action.GetResource(), pod, action.GetNamespace())
}

// patch holds back a patch until the end of the scheduling cycle: an event of the pod during its cycle would add it to
// the queue before the cycle does, and so twice.
func (s *Scheduler) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.patches = append(s.patches, action)
	return true, &v1.Pod{}, nil
}

// applyPatches applies patches like the fake client, and sets a new resource
// version on each pod: the scheduler skips update events with an unchanged version.
func (s *Scheduler) applyPatches() {
	s.mutex.Lock()
	patches := s.patches
	s.patches = nil
	s.mutex.Unlock()
	tracker := s.Client.Tracker()
	for _, action := range patches {
		s.watches.awaitRoom()
		_, object, err := clienttesting.ObjectReaction(tracker)(action)
		if err == nil {
			pod := object.(*v1.Pod).DeepCopy()
			pod.ResourceVersion = s.nextVersion()
			s.patched[key(pod)] = pod.ResourceVersion
			err = tracker.Update(action.GetResource(), pod, action.GetNamespace())
		}
		if err != nil && !apierrors.IsNotFound(err) {
			s.tb.Errorf("patching a pod: %v", err)
		}
	}
}

// noteDeletion records the pod of a deletion, which the fake client then performs, unless the pod terminates first.
func (s *Scheduler) noteDeletion(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion := action.(clienttesting.DeleteAction)
	if found, err := s.Client.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.GetName()); err == nil {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.deleted = append(s.deleted, found.(*v1.Pod))
		if s.graceful {
			pod := found.(*v1.Pod).DeepCopy()
			pod.DeletionTimestamp, pod.ResourceVersion = &metav1.Time{Time: time.Unix(1, 0)}, s.nextVersion()
			return true, nil, s.Client.Tracker().Update(action.GetResource(), pod, action.GetNamespace())
		}
	}
	return false, nil, nil
}

// Event is an event of an object.
type Event struct {
	// Object is the namespace and name of its object.
	Object string
	// Type is Normal or Warning.
	Type string
	// Reason is the machine-readable reason.
	Reason string
	// Note is the human-readable text.
	Note string
}

// recorder stores events in memory.
type recorder struct {
	mutex  sync.Mutex
	events []Event
}

// Eventf stores an event.
func (r *recorder) Eventf(regarding runtime.Object, related runtime.Object, eventType, reason, action, note string, args ...interface{}) {
	object := "unknown"
	if accessor, err := meta.Accessor(regarding); err == nil {
		object = fmt.Sprintf("%s/%s", accessor.GetNamespace(), accessor.GetName())
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, Event{Object: object, Type: eventType, Reason: reason, Note: fmt.Sprintf(note, args...)})
}

func (r *recorder) all() []Event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]Event(nil), r.events...)
}

// outcomes returns the number of events that mark the end of an attempt; the scheduler sends one for each.
func (r *recorder) outcomes() int {
	n := 0
	for _, event := range r.all() {
		if event.Reason == "Scheduled" || event.Reason == "FailedScheduling" {
			n++
		}
	}
	return n
}
