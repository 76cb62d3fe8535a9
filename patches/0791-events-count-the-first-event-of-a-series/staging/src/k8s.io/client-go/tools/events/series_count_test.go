// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
)

// API servers from 1.24 on refuse a series with a count below 2.
func TestSeriesCountsTheFirstEvent(t *testing.T) {
	sink := &slowSink{creates: make(chan *eventsv1.Event), patches: make(chan *eventsv1.Event), written: make(chan struct{})}
	close(sink.written)
	broadcaster := newBroadcaster(sink, 0, map[eventKey]*eventsv1.Event{}).(*eventBroadcasterImpl)
	event := &eventsv1.Event{Reason: "FailedScheduling", Note: "no node fits"}

	broadcaster.recordToSink(event, clock.RealClock{})
	receive(t, sink.creates)
	broadcaster.recordToSink(event, clock.RealClock{})
	if repeated := receive(t, sink.patches); repeated.Series == nil || repeated.Series.Count != 2 {
		t.Errorf("the second event has the series %v, want one with the count 2", repeated.Series)
	}
}
