// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
)

// TestSharing: profiles of one source share its requests, and what they ask in common.
func TestSharing(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	var one, two, three, four *Subscription
	w.nodesSyncedAfter(func() {
		one = w.subscribe(spec("cpu", "memory"), "one", nil)
		faster := spec("gpu", "cpu")
		faster.RefreshInterval = 10 * time.Second
		faster.Resources[1].Name = "processor" // a name is not what is asked
		two = w.subscribe(faster, "two", nil)
		other := spec("cpu")
		other.Resources[0].Deviation = ""
		three = w.subscribe(other, "three", nil)
		four = w.subscribe(spec("memory"), "four", nil) // in percent, which is for who reads it
	})
	for _, tt := range []struct {
		s    *Subscription
		want []int
	}{{one, []int{0, 1}}, {two, []int{2, 0}}, {three, []int{3}}, {four, []int{1}}} {
		if !reflect.DeepEqual(tt.s.slots, tt.want) {
			t.Errorf("a profile has the slots %v, want %v", tt.s.slots, tt.want)
		}
	}

	if q := w.asked(); len(q.queries) != 4 || q.queries[0].Name != "cpu" || q.queries[1].Name != "memory" || q.queries[2].Name != "gpu" ||
		q.queries[3].Deviation != "" {
		t.Errorf("asked %+v, want cpu, memory, gpu, and cpu without a deviation", q.queries)
	}
	w.source.answers <- w.good(measuredRows(1, "node-1", 70, 0)...)
	expectSleep(t, w.sleeping(), 10*time.Second)
	for i, s := range []*Subscription{one, two, three, four} {
		if s.Snapshot() == nil || s.Snapshot() != one.Snapshot() {
			t.Errorf("profile %d has not the snapshot of the others", i)
		}
	}
	expectSample(t, one.Snapshot(), "node-1", four.Slot(0), measured.Sample{Value: 70, At: w.clock.Now().UnixNano()})
	if len(w.sources) != 1 {
		t.Errorf("%d sources were made, want one", len(w.sources))
	}
}

// TestAbsoluteValuesAreHeldAgainstTheirProfilesCapacity, though they are asked for once.
func TestAbsoluteValuesAreHeldAgainstTheirProfilesCapacity(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	absolute := func(known bool) Spec {
		s := spec("network", "cpu")
		s.Resources[1].Capacity = fmt.Sprint("known: ", known)
		s.Resources[1].HasCapacity = func(node *v1.Node) bool { return node.Name == "node-1" && known }
		return s
	}
	var without, with, same *Subscription
	w.nodesSyncedAfter(func() {
		without = w.subscribe(absolute(false), "without", nil)
		with = w.subscribe(absolute(true), "with", nil)
		same = w.subscribe(absolute(true), "same", nil)
	})
	if without.Slot(0) != with.Slot(0) || without.Slot(1) == with.Slot(1) || same.Slot(1) != with.Slot(1) {
		t.Errorf("the slots are %v, %v and %v, want the first shared by all, and the second by the last two",
			without.slots, with.slots, same.slots)
	}
	if q := w.asked(); len(q.queries) != 2 {
		t.Errorf("asked %+v, want network and cpu once", q.queries)
	}
	w.source.answers <- w.good(measuredRows(1, "node-1", 5, 0)...)
	w.sleeping()
	expectSample(t, with.Snapshot(), "node-1", without.Slot(1), missing(measured.NoCapacity))
	expectSample(t, with.Snapshot(), "node-1", with.Slot(1), measured.Sample{Value: 5, At: w.clock.Now().UnixNano()})
}

// TestWhoComesLateHasACollectorOfItsOwn: what the profiles of a collector want does not change once it asks.
func TestWhoComesLateHasACollectorOfItsOwn(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	one := w.subscribe(spec("cpu"), "one", nil)
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	before := one.Snapshot()
	var got *measured.Snapshot
	two := w.subscribe(spec("memory"), "two", func(s *measured.Snapshot) { got = s })
	if q := w.asked(); len(q.queries) != 1 || q.queries[0].Name != "memory" {
		t.Errorf("asked %+v, want memory alone", q.queries)
	}
	w.source.answers <- w.good(measuredRows(0, "node-1", 0.25, 0)...)
	w.sleeping()
	if got == nil || two.Snapshot() != got || one.Snapshot() != before || two.Status().Source != "1" {
		t.Errorf("the second profile has no snapshot, or the first one's has changed; its source is %s, want 1", two.Status().Source)
	}
	expectSample(t, got, "node-1", two.Slot(0), measured.Sample{Value: 0.25, At: start.UnixNano()})
}

func TestSourcesOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.nodes.unsynced = 1
	source := func(change func(*Spec)) string {
		s := spec("cpu")
		change(&s)
		return w.subscribe(s, "profile", nil).Status().Source
	}
	for i, change := range []func(*Spec){
		func(*Spec) {},
		func(s *Spec) { s.Prometheus.Endpoints = []string{"http://other:9090"} },
		func(s *Spec) { s.Prometheus.BearerTokenFile = "/token" },
		func(s *Spec) { s.Prometheus.Headers = []config.NodeLoadHeader{{Name: "X-Scope-OrgID", Value: "a"}} },
		func(s *Spec) { s.Prometheus.Headers = []config.NodeLoadHeader{{Name: "X-Scope-OrgID", Value: "b"}} },
	} {
		if got, want := source(change), string(rune('0'+i)); got != want {
			t.Errorf("another source has the number %s, want %s", got, want)
		}
	}
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Prometheus.Headers = []config.NodeLoadHeader{} }, // as good as none
		func(s *Spec) { s.Resources[0].Match.Label = "node" },
		func(s *Spec) { s.Resources[0].Match.By = config.NodeLoadMatchHostname },
	} {
		if got := source(change); got != "0" {
			t.Errorf("the same source has the number %s, want 0", got)
		}
	}
	if len(w.sources) != 5 {
		t.Errorf("%d sources were made, want 5", len(w.sources))
	}
}

// TestANodeMatchOfAResource: each resource is matched by its own label, and all are asked for at once.
func TestANodeMatchOfAResource(t *testing.T) {
	w := newWorld(t, makeNode("a", internalIP("10.0.0.1")), makeNode("b", internalIP("10.0.0.2")))
	args := spec("cpu", "gpu")
	args.Resources[0].Match = config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchInternalIP}
	args.Resources[1].Match = config.NodeLoadNodeMatch{Label: "Hostname", By: config.NodeLoadMatchName}
	s := w.subscribe(args, "default", nil)
	if q := w.asked(); len(q.queries) != 2 || q.queries[0].Label != "instance" || q.queries[1].Label != "Hostname" {
		t.Errorf("asked %+v, want one by instance and one by Hostname", q.queries)
	}
	w.source.answers <- w.good(rows(measuredRows(0, "10.0.0.1:9100", 0.1, 0), measuredRows(1, "a", 0.2, 0),
		measuredRows(0, "b", 0.3, 0), measuredRows(1, "10.0.0.2:9400", 0.4, 0))...)
	w.sleeping()
	at := start.UnixNano()
	expectSample(t, s.Snapshot(), "a", 0, measured.Sample{Value: 0.1, At: at})
	expectSample(t, s.Snapshot(), "a", 1, measured.Sample{Value: 0.2, At: at})
	expectSample(t, s.Snapshot(), "b", 0, missing(measured.NoSeries))
	expectSample(t, s.Snapshot(), "b", 1, missing(measured.NoSeries))
	if got := s.Snapshot(); got.Unmatched != 4 || got.UnmatchedLabel != "Hostname" || got.UnmatchedExample != "10.0.0.2:9400" {
		t.Errorf("%d series are unmatched, such as %s=%q; want 4, such as Hostname=10.0.0.2:9400", got.Unmatched, got.UnmatchedLabel, got.UnmatchedExample)
	}
}

func TestSubscribeErrors(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*Spec){
		"resources":       func(s *Spec) { s.Resources = nil },
		"refreshInterval": func(s *Spec) { s.RefreshInterval = 0 },
		"maxSampleAge":    func(s *Spec) { s.MaxSampleAge = 0 },
	} {
		s := spec("cpu")
		change(&s)
		if _, err := w.pool.Subscribe(s, w.nodes, nil, "default", nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s the error is %v, want one that names it", name, err)
		}
	}
	broken := &Pool{clock: w.clock, connect: func(config.NodeLoadPrometheus) (asker, error) { return nil, errors.New("no such endpoint") }}
	_, err := broken.Subscribe(spec("cpu"), w.nodes, nil, "default", nil)
	if err == nil || !strings.Contains(err.Error(), "no such endpoint") {
		t.Errorf("the error is %v, want the source's", err)
	}
}

// closing counts those that are not closed.
type closing struct {
	replay
	open *sync.WaitGroup
}

func (c closing) Close() { c.open.Done() }

// TestConcurrentUse lets profiles come and look while refreshes run, for the race detector and for what it leaves.
func TestConcurrentUse(t *testing.T) {
	w := newWorld(t, makeNodes(10)...)
	var open sync.WaitGroup
	w.pool.connect = func(config.NodeLoadPrometheus) (asker, error) {
		open.Add(1)
		return closing{replay{labels: [][]byte{[]byte("node-1")}}, &open}, nil
	}
	stop, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		for {
			select {
			case <-w.clock.sleeps:
				w.clock.Step(time.Minute)
			case <-stop:
				return
			}
		}
	}()
	var profiles sync.WaitGroup
	for i := 0; i < 4; i++ {
		profiles.Add(1)
		go func(resource string) {
			defer profiles.Done()
			for n := 0; n < 5; n++ {
				arrived, once := make(chan struct{}), sync.Once{}
				s, err := w.pool.Subscribe(spec("shared", resource), w.nodes, nil, resource,
					func(*measured.Snapshot) { once.Do(func() { close(arrived) }) })
				if err != nil {
					t.Error(err)
					return
				}
				<-arrived
				s.Touch()
				if snapshot := s.Snapshot(); snapshot.Slots <= s.Slot(1) || len(snapshot.Node("node-1")) != snapshot.Slots {
					t.Errorf("slot %d of %d in the snapshot", s.Slot(1), snapshot.Slots)
				}
				s.Status()
			}
		}(string(rune('a' + i)))
	}
	profiles.Wait()
	w.cancel()
	open.Wait()
	close(stop)
	<-drained
	if w.clock.HasWaiters() {
		t.Error("a goroutine sleeps after the end")
	}
}
