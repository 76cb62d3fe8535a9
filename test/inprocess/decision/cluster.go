// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// watchesOf has the client write down every watch from now on.
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

// bind does what the API server does when a binding is posted: it gives the pod its node, unless it has one. The fake
// client alone would put the binding in the pod's place.
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

// patch keeps a patch until the scheduling cycle has ended: the event of a pod that is being tried puts it into the
// queue once more, if it comes before the cycle does so.
func (s *Scheduler) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.patches = append(s.patches, action)
	return true, &v1.Pod{}, nil
}

// applyPatches does what the fake client does with patches, and gives each pod a new version: the scheduler passes an
// event over in which that is the same as before.
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
			s.version++
			pod.ResourceVersion = fmt.Sprint(s.version)
			err = tracker.Update(action.GetResource(), pod, action.GetNamespace())
		}
		if err != nil && !apierrors.IsNotFound(err) {
			s.tb.Errorf("patching a pod: %v", err)
		}
	}
}

// noteDeletion writes down which pod is going to be deleted, and leaves it to the fake client to do it.
func (s *Scheduler) noteDeletion(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion := action.(clienttesting.DeleteAction)
	if found, err := s.Client.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.GetName()); err == nil {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.deleted = append(s.deleted, found.(*v1.Pod))
	}
	return false, nil, nil
}

// Event is one that was sent about an object.
type Event struct {
	// Object is the namespace and name of what it is about.
	Object string
	// Type is Normal or Warning.
	Type string
	// Reason is the machine's word for it.
	Reason string
	// Note is the text that people read.
	Note string
}

// recorder keeps events in memory.
type recorder struct {
	mutex  sync.Mutex
	events []Event
}

// Eventf keeps an event.
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

// outcomes counts the events of which the scheduler sends one at the end of each attempt.
func (r *recorder) outcomes() int {
	n := 0
	for _, event := range r.all() {
		if event.Reason == "Scheduled" || event.Reason == "FailedScheduling" {
			n++
		}
	}
	return n
}
