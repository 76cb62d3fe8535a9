// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// Subscription is a profile's part in a collector.
type Subscription struct {
	pool     *Pool
	share    *share
	spec     Spec
	recorder events.EventRecorder
	profile  string
	slots    []int
	snapshot atomic.Value // *measured.Snapshot

	closing sync.Once
	calling sync.Mutex
	swapped func(*measured.Snapshot) // nil after Close
}

// Snapshot returns what the last refresh that got an answer found; nil before the first.
func (s *Subscription) Snapshot() *measured.Snapshot {
	snapshot, _ := s.snapshot.Load().(*measured.Snapshot)
	return snapshot
}

// Slot returns where the samples of Spec.Resources[resource] are in those of a node.
func (s *Subscription) Slot(resource int) int {
	return s.slots[resource]
}

// Touch says that a scheduling cycle looked at the snapshot. It keeps the refreshes at their full rate; after some
// minutes without, on a standby or when no pod comes, they get rarer, until a Touch brings one at once.
func (s *Subscription) Touch() {
	s.share.touch()
}

// Status says how the refreshes go.
func (s *Subscription) Status() Status {
	c := s.share.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status.copy()
}

// Close ends the subscription. The last one's ends the collector, and returns when its goroutine has ended. It may be
// called more than once, but not by swapped.
func (s *Subscription) Close() {
	s.closing.Do(func() { s.pool.leave(s) })
}

// deliver hands over a snapshot. What panics in the profile is not to end the refreshes of the others.
func (s *Subscription) deliver(snapshot *measured.Snapshot) {
	s.snapshot.Store(snapshot)
	s.calling.Lock()
	defer s.calling.Unlock()
	defer func() {
		if problem := recover(); problem != nil {
			klog.ErrorS(fmt.Errorf("panic: %v", problem), "Profile could not take a snapshot; "+
				"next: report this as a bug, with the stack", "plugin", plugin, "profile", s.profile, "stack", stack())
		}
	}()
	if s.swapped != nil {
		s.swapped(snapshot)
	}
}

// silence makes sure that swapped is not called any more.
func (s *Subscription) silence() {
	s.calling.Lock()
	defer s.calling.Unlock()
	s.swapped = nil
}

// add gives a subscription its slots: existing ones that hold the same, and new ones.
func (c *collector) add(s *Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range s.spec.Resources {
		s.slots = append(s.slots, c.take(s, i))
	}
	c.subscriptions = append(c.subscriptions, s)
	c.status.Profiles = append(c.status.Profiles, s.profile)
	if c.planned {
		c.refreshSoon() // for this one; before, it takes part in the first
	}
}

// take returns the slot of a subscription's resource. c.mu is held.
func (c *collector) take(s *Subscription, resource int) int {
	wanted := s.spec.Resources[resource]
	asked := -1
	for i := range c.queries {
		if q := &c.queries[i]; q.Value == wanted.Value && q.Timestamp == wanted.Timestamp && q.Deviation == wanted.Deviation {
			asked = i
		}
	}
	if asked < 0 {
		asked = len(c.queries)
		c.queries = append(c.queries, query{Query: wanted.Query})
	}
	c.queries[asked].users++
	for i := range c.slots {
		if known := &c.slots[i]; known.asked == asked && known.unit == unit(wanted.Unit) && known.capacity == nil {
			known.users++
			return i
		}
	}
	added := slot{query: query{Query: wanted.Query, users: 1}, asked: asked, unit: unit(wanted.Unit)}
	if wanted.Unit == config.NodeLoadAbsolute {
		added.capacity = s.capacityOf(resource)
	}
	// Two profiles may ask different things about what they both call cpu.
	added.label = wanted.Name
	for n := 2; c.hasLabel(added.label); n++ {
		added.label = fmt.Sprintf("%s#%d", wanted.Name, n)
	}
	c.slots = append(c.slots, added)
	return len(c.slots) - 1
}

func (c *collector) hasLabel(label string) bool {
	for i := range c.slots {
		if c.slots[i].label == label && c.slots[i].users > 0 {
			return true
		}
	}
	return false
}

// remove takes a subscription's slots from it, and says whether it was the last. Slots keep their index; what is not
// used any more is not asked for.
func (c *collector) remove(s *Subscription) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range s.slots {
		c.slots[i].users--
		c.queries[c.slots[i].asked].users--
	}
	var subscriptions []*Subscription
	var profiles []string
	for _, other := range c.subscriptions {
		if other != s {
			subscriptions, profiles = append(subscriptions, other), append(profiles, other.profile)
		}
	}
	c.subscriptions, c.status.Profiles = subscriptions, profiles
	return len(subscriptions) == 0
}
