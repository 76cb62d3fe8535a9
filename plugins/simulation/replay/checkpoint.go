// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// journal has the objects that changed since a checkpoint, in the order of their first changes.
type journal struct {
	seen    map[identity]bool
	changes []changed
}

type identity struct {
	table *table
	key   string
}

// changed is an object with what it was before; nil if it did not exist.
type changed struct {
	identity
	before runtime.Object
}

// note keeps what an object was before its first change.
func (j *journal) note(t *table, of runtime.Object, before interface{}) {
	key, err := cache.MetaNamespaceKeyFunc(of)
	if id := (identity{t, key}); j != nil && err == nil && !j.seen[id] {
		j.seen[id] = true
		old, _ := before.(runtime.Object)
		j.changes = append(j.changes, changed{id, old})
	}
}

// undo puts the objects back as they were before, the last one first.
func (s *store) undo(j *journal) {
	for i := len(j.changes) - 1; i >= 0; i-- {
		c := j.changes[i]
		now := c.table.get(c.key)
		if now != nil && (c.before == nil || now.(metav1.Object).GetUID() != c.before.(metav1.Object).GetUID()) {
			s.remove(now)
		}
		if c.before != nil {
			s.put(c.before.DeepCopyObject())
		}
	}
}

// checkpoint returns a function that puts the cluster back as it is now. Only the clock goes on. Of the pods that there
// are, only the given ones may change until then; none may be among them twice.
func (s *Simulation) checkpoint(pods []*pod) (restore func()) {
	began, all, due, retries := s.now(), len(s.all), append(agenda(nil), s.agenda...), s.retries
	states := make([]podState, len(pods))
	for i, p := range pods {
		states[i] = p.podState
	}
	kept := &journal{seen: map[identity]bool{}}
	s.store.journal = kept
	return func() {
		for i := len(s.all) - 1; i >= all; i-- {
			s.all[i].deleted = true
			s.end(s.all[i])
		}
		s.all = s.all[:all]
		for i, p := range pods {
			if p.podState != states[i] {
				s.measure.removed(p)
				s.pods[p.key], p.podState = p, states[i]
				s.measure.placed(p)
			}
		}
		s.store.journal = nil
		s.store.undo(kept)
		for i := range due {
			due[i].at += s.now() - began
		}
		s.agenda, s.retries = due, retries
		s.Settle()
	}
}

// settle schedules what is ready, and waits for pods that have a node and no volume yet: the scheduler looks for it once
// in a second.
func (s *Simulation) settle() {
	s.Settle()
	for until := s.now() + bindTimeout; s.binding() && s.now() < until; {
		if s.Advance(s.now()+tick, 0, func(time.Duration, int64) {}) != nil {
			return
		}
	}
}

// bindTimeout is the scheduler's default for volumes.
const bindTimeout = 10 * time.Minute

// binding reports whether an attempt has not ended, although its pod does not wait for others.
func (s *Simulation) binding() bool {
	s.measure.mutex.Lock()
	defer s.measure.mutex.Unlock()
	for p := range s.measure.inFlight {
		object := s.current(p.key)
		if object == nil || p.node != nil {
			continue
		}
		if profile := s.Profiles[object.Spec.SchedulerName]; profile != nil && profile.GetWaitingPod(object.UID) == nil {
			return true
		}
	}
	return false
}
