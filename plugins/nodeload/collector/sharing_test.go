// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
)

func slots(s *Subscription) (all []int) {
	for i := range s.spec.Resources {
		all = append(all, s.Slot(i))
	}
	return all
}

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
		percent := spec("memory")
		percent.Resources[0].Unit = config.NodeLoadPercent
		four = w.subscribe(percent, "four", nil)
	})
	for _, tt := range []struct {
		s    *Subscription
		want []int
	}{{one, []int{0, 1}}, {two, []int{2, 0}}, {three, []int{3}}, {four, []int{4}}} {
		if got := slots(tt.s); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("profile %s has the slots %v, want %v", tt.s.profile, got, tt.want)
		}
	}
	if got, want := one.Status().Profiles, []string{"one", "two", "three", "four"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the profiles are %v, want %v", got, want)
	}

	if q := w.asked(); len(q.queries) != 4 || q.queries[0].Name != "cpu" || q.queries[1].Name != "memory" || q.queries[2].Name != "gpu" ||
		q.queries[3].Deviation != "" {
		t.Errorf("asked %+v, want cpu, memory, gpu, and cpu without a deviation", q.queries)
	}
	w.source.answers <- w.good(measuredRows(1, "node-1", 70, 0)...)
	expectSleep(t, w.sleeping(), 10*time.Second)
	for _, s := range []*Subscription{one, two, three, four} {
		if s.Snapshot() == nil || s.Snapshot() != one.Snapshot() {
			t.Errorf("profile %s has not the snapshot of the others", s.profile)
		}
	}
	// 70 is 70 times memory's capacity, or 70 % of it.
	expectSample(t, one.Snapshot(), "node-1", one.Slot(1), missing(measured.Absurd))
	expectSample(t, one.Snapshot(), "node-1", four.Slot(0), measured.Sample{Value: 70, At: w.clock.Now().UnixNano()})
	if len(w.sources) != 1 {
		t.Errorf("%d sources were made, want one", len(w.sources))
	}
}

// TestAbsoluteValuesAreHeldAgainstTheirProfilesCapacity, though they are asked for once.
func TestAbsoluteValuesAreHeldAgainstTheirProfilesCapacity(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	absolute := func(capacity float64) Spec {
		s := spec("network", "cpu")
		s.Resources[1].Unit = config.NodeLoadAbsolute
		s.Capacity = func(node *v1.Node, resource int) (float64, bool) {
			if node.Name != "node-1" || resource != 1 {
				t.Errorf("asked for the capacity of %s's resource %d", node.Name, resource)
			}
			return capacity, true
		}
		return s
	}
	var small, large *Subscription
	w.nodesSyncedAfter(func() {
		small = w.subscribe(absolute(2), "small", nil)
		large = w.subscribe(absolute(4), "large", nil)
	})
	if small.Slot(0) != large.Slot(0) || small.Slot(1) == large.Slot(1) {
		t.Errorf("the slots are %v and %v, want the first shared and the second not", slots(small), slots(large))
	}
	w.answer(measuredRows(1, "node-1", 5, 0)...)
	expectSample(t, large.Snapshot(), "node-1", small.Slot(1), missing(measured.Absurd))
	expectSample(t, large.Snapshot(), "node-1", large.Slot(1), measured.Sample{Value: 5, At: w.clock.Now().UnixNano()})
}

// TestLateSubscription: who comes when the refreshes have begun gets one at once, and no snapshot without its slots.
func TestLateSubscription(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	one := w.subscribe(spec("cpu"), "one", nil)
	w.answer(measuredRows(0, "node-1", 0.5, 0)...)
	var got *measured.Snapshot
	args := spec("memory")
	args.RefreshInterval = 5 * time.Second
	two := w.subscribe(args, "two", func(s *measured.Snapshot) { got = s })
	if two.Snapshot() != nil {
		t.Error("the second profile has a snapshot without its slot")
	}
	expectSleep(t, w.answer(rows(measuredRows(0, "node-1", 0.5, 0), measuredRows(1, "node-1", 0.25, 0))...), 5*time.Second)
	if got == nil || two.Snapshot() != got || one.Snapshot() != got {
		t.Error("the profiles have not the same snapshot")
	}
	expectSample(t, got, "node-1", two.Slot(0), measured.Sample{Value: 0.25, At: start.UnixNano()})

	// And one that comes during a request gets the next.
	w.clock.Step(5 * time.Second)
	w.asked()
	three := w.subscribe(spec("gpu"), "three", nil)
	w.source.answers <- w.good()
	expectSleep(t, w.sleeping(), 5*time.Second)
	if three.Snapshot() != nil {
		t.Error("the third profile has a snapshot without its slot")
	}
	if q := w.asked(); len(q.queries) != 3 {
		t.Errorf("asked %+v, want the third profile's too", q.queries)
	}
	w.source.answers <- w.good()
	w.sleeping()
	if three.Snapshot() == nil {
		t.Error("the third profile has no snapshot")
	}
}

// TestClosedSubscriptionsAreNotAskedFor any more, and what they had keeps its place.
func TestClosedSubscriptionsAreNotAskedFor(t *testing.T) {
	w := newWorld(t, makeNodes(1)...)
	args := spec("cpu", "memory")
	args.RefreshInterval = 5 * time.Second
	closed := false
	var one, two *Subscription
	w.nodesSyncedAfter(func() {
		one = w.subscribe(args, "one", func(*measured.Snapshot) {
			if closed {
				t.Error("swapped is called after Close")
			}
		})
		two = w.subscribe(spec("memory", "gpu"), "two", nil)
	})
	expectSleep(t, w.answer(), 5*time.Second)
	one.Close()
	closed = true
	if got := two.Status().Profiles; !reflect.DeepEqual(got, []string{"two"}) {
		t.Errorf("the profiles are %v, want two", got)
	}
	w.clock.Step(5 * time.Second)
	if q := w.asked(); q.queries[0] != (source.Query{Name: "cpu"}) || q.queries[1].Value != "memory" || q.queries[2].Value != "gpu" {
		t.Errorf("asked %+v, want nothing of cpu", q.queries)
	}
	w.source.answers <- w.good(measuredRows(1, "node-1", 0.5, 0)...)
	expectSleep(t, w.sleeping(), 30*time.Second)
	expectSample(t, two.Snapshot(), "node-1", 0, missing(measured.NoSeries))
	expectSample(t, two.Snapshot(), "node-1", two.Slot(0), measured.Sample{Value: 0.5, At: w.clock.Now().UnixNano()})

	three := w.subscribe(spec("cpu"), "three", nil)
	if three.Slot(0) != 0 {
		t.Errorf("a query that was asked before has slot %d, want the one that it had", three.Slot(0))
	}
	if q := w.asked(); q.queries[0].Value != "cpu" {
		t.Errorf("asked %+v, want cpu again", q.queries)
	}
}

func TestSourcesOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.nodes.unsynced = 1
	base := w.subscribe(spec("cpu"), "base", nil)
	same := spec("cpu")
	same.Prometheus.Headers = []config.NodeLoadHeader{} // as good as none
	changes := []func(*Spec){
		func(s *Spec) { s.Prometheus.Endpoints = []string{"http://other:9090"} },
		func(s *Spec) { s.Prometheus.BearerTokenFile = "/token" },
		func(s *Spec) { s.Prometheus.Headers = []config.NodeLoadHeader{{Name: "X-Scope-OrgID", Value: "a"}} },
		func(s *Spec) { s.Prometheus.Headers = []config.NodeLoadHeader{{Name: "X-Scope-OrgID", Value: "b"}} },
		func(s *Spec) { s.NodeMatch.Label = "node" },
		func(s *Spec) { s.NodeMatch.By = config.NodeLoadMatchHostname },
	}
	if got := w.subscribe(same, "same", nil).Status().Source; got != "0" {
		t.Errorf("the same source has the number %s, want 0", got)
	}
	var others []*Subscription
	for i, change := range changes {
		s := spec("cpu")
		change(&s)
		other := w.subscribe(s, "other", nil)
		others = append(others, other)
		if got, want := other.Status().Source, string(rune('1'+i)); got != want {
			t.Errorf("another source has the number %s, want %s", got, want)
		}
	}
	others[1].Close()
	s := spec("cpu")
	s.Prometheus.Endpoints = []string{"http://third:9090"}
	if got := w.subscribe(s, "third", nil).Status().Source; got != "2" {
		t.Errorf("a source after one that ended has the number %s, want the free 2", got)
	}
	if base.Status().Source != "0" || len(w.sources) != 8 {
		t.Errorf("%d sources were made, want 8", len(w.sources))
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
	broken := newPool(w.clock, nil, func(config.NodeLoadPrometheus) (asker, error) { return nil, errors.New("no such endpoint") })
	_, err := broken.Subscribe(spec("cpu"), w.nodes, nil, "default", nil)
	if err == nil || !strings.Contains(err.Error(), "no such endpoint") {
		t.Errorf("the error is %v, want the source's", err)
	}
}

// TestConcurrentUse lets profiles come, look and go while refreshes run, for the race detector and for what it leaves.
func TestConcurrentUse(t *testing.T) {
	w := newWorld(t, makeNodes(10)...)
	w.pool.connect = func(config.NodeLoadPrometheus) (asker, error) { return replay{labels: [][]byte{[]byte("node-1")}}, nil }
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
			for n := 0; n < 20; n++ {
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
				s.Close()
			}
		}(string(rune('a' + i)))
	}
	profiles.Wait()
	close(stop)
	<-drained
	for _, shared := range w.pool.shared {
		if shared != nil {
			t.Error("a collector is left without profiles")
		}
	}
	if w.clock.HasWaiters() {
		t.Error("a goroutine sleeps after the end")
	}
}
