// SPDX-License-Identifier: Apache-2.0

package events

import (
	"runtime"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
)

// An event repeats while its first request is being written: the request must not change.
func TestRepeatedEventLeavesTheRequestOfTheFirstAlone(t *testing.T) {
	sink := &slowSink{creates: make(chan *eventsv1.Event), patches: make(chan *eventsv1.Event), written: make(chan struct{})}
	defer close(sink.written)
	broadcaster := newBroadcaster(sink, 0, map[eventKey]*eventsv1.Event{}).(*eventBroadcasterImpl)
	event := &eventsv1.Event{Reason: "FailedScheduling", Note: "no node fits"}

	broadcaster.recordToSink(event, clock.RealClock{})
	created := receive(t, sink.creates)
	broadcaster.recordToSink(event, clock.RealClock{})
	patched := receive(t, sink.patches)
	if patched.Series == nil {
		t.Fatal("the request of the second event has no series")
	}
	count := patched.Series.Count
	broadcaster.recordToSink(event, clock.RealClock{})
	for counted := int32(0); counted != count+1; runtime.Gosched() {
		broadcaster.mu.Lock()
		counted = broadcaster.eventCache[getKey(event)].Series.Count
		broadcaster.mu.Unlock()
	}

	if created.Series != nil {
		t.Errorf("the request to create the event got the series %v while it was written", created.Series)
	}
	if patched.Series.Count != count {
		t.Errorf("the request of the second event got the count %d while it was written, want %d", patched.Series.Count, count)
	}
}

// receive fails the test rather than to wait forever.
func receive(t *testing.T, events <-chan *eventsv1.Event) *eventsv1.Event {
	t.Helper()
	select {
	case event := <-events:
		return event
	case <-time.After(time.Minute):
		t.Fatal("there was no request to the sink")
		return nil
	}
}

// slowSink hands out each event while it is being written.
type slowSink struct {
	creates, patches chan *eventsv1.Event
	written          chan struct{}
}

func (s *slowSink) Create(event *eventsv1.Event) (*eventsv1.Event, error) {
	s.creates <- event
	<-s.written
	return event, nil
}

func (s *slowSink) Patch(event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.patches <- event
	<-s.written
	return event, nil
}

func (s *slowSink) Update(event *eventsv1.Event) (*eventsv1.Event, error) { return event, nil }
