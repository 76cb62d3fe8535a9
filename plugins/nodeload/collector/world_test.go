// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// patience is how long a test waits for what must come. It is only waited out by a test that fails.
const patience = 30 * time.Second

// start is when the tests begin, by the scheduler's clock.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world has a pool whose time and source are the test's. What its collector does next, ask or sleep, is waited for.
type world struct {
	t      testing.TB
	clock  *testClock
	source *fakeSource
	nodes  *fakeNodes
	events *events.FakeRecorder
	pool   *Pool
	cancel context.CancelFunc
	// sources are those that the pool has made.
	sources []config.NodeLoadPrometheus
}

func newWorld(t testing.TB, nodes ...*v1.Node) *world {
	w := &world{
		t:     t,
		clock: &testClock{FakeClock: clocktesting.NewFakeClock(start), sleeps: make(chan time.Duration, 100)},
		source: &fakeSource{
			questions: make(chan question), answers: make(chan func(source.Row) (source.Result, error)), closed: make(chan struct{}, 100),
		},
		nodes:  newFakeNodes(nodes...),
		events: events.NewFakeRecorder(100),
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w.cancel = cancel
	// In the middle of the range of the jitter there is none, but after failures a tenth less.
	w.pool = &Pool{ctx: ctx, clock: w.clock, random: func() float64 { return 0.5 }, connect: func(prometheus config.NodeLoadPrometheus) (asker, error) {
		w.sources = append(w.sources, prometheus)
		return w.source, nil
	}}
	return w
}

// spec asks for resources, whose expressions are named like them, every 30 s.
func spec(resources ...string) Spec {
	s := Spec{
		Prometheus:      config.NodeLoadPrometheus{Endpoints: []string{"http://prometheus:9090"}},
		RefreshInterval: 30 * time.Second,
		MaxSampleAge:    3 * time.Minute,
	}
	for _, name := range resources {
		s.Resources = append(s.Resources, Resource{
			Query: source.Query{Name: name, Value: name, Timestamp: "timestamp(" + name + ")", Deviation: "deviation(" + name + ")"},
			Match: config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchName},
		})
	}
	return s
}

func (w *world) subscribe(s Spec, profile string, swapped func(*measured.Snapshot)) *Subscription {
	w.t.Helper()
	subscription, err := w.pool.Subscribe(s, w.nodes, w.events, profile, swapped)
	if err != nil {
		w.t.Fatal(err)
	}
	return subscription
}

// end ends the pool, and waits for its one collector.
func (w *world) end() {
	w.t.Helper()
	w.cancel()
	select {
	case <-w.source.closed:
	case <-time.After(patience):
		w.t.Fatal("the collector does not end")
	}
}

// nodesSyncedAfter lets the nodes become known when something is done.
func (w *world) nodesSyncedAfter(do func()) {
	w.t.Helper()
	atomic.StoreInt32(&w.nodes.unsynced, 1)
	do()
	w.sleeping()
	atomic.StoreInt32(&w.nodes.unsynced, 0)
	w.clock.Step(syncInterval)
}

// asked waits for a request.
func (w *world) asked() question {
	w.t.Helper()
	select {
	case q := <-w.source.questions:
		return q
	case d := <-w.clock.sleeps:
		w.t.Fatalf("the collector sleeps for %v, want a request", d)
	case <-time.After(patience):
		w.t.Fatal("the collector does not ask")
	}
	return question{}
}

// sleeping waits for the collector to sleep, and returns for how long.
func (w *world) sleeping() time.Duration {
	w.t.Helper()
	select {
	case d := <-w.clock.sleeps:
		return d
	case <-w.source.questions:
		w.t.Fatal("the collector asks, want it to sleep")
	case <-time.After(patience):
		w.t.Fatal("the collector does not sleep")
	}
	return 0
}

// answer answers a request, and returns how long the collector sleeps then.
func (w *world) answer(rows ...row) time.Duration {
	w.t.Helper()
	w.asked()
	w.source.answers <- w.good(rows...)
	return w.sleeping()
}

// fail lets a request fail, and returns how long the collector sleeps then.
func (w *world) fail(err error) time.Duration {
	w.t.Helper()
	w.asked()
	w.source.answers <- func(source.Row) (source.Result, error) { return source.Result{}, err }
	return w.sleeping()
}

// event returns the event that there is, "" if there is none.
func (w *world) event() string {
	select {
	case text := <-w.events.Events:
		return text
	default:
		return ""
	}
}

// ahead of the scheduler's clock is Prometheus'.
const serverAhead = time.Hour

// good is an answer now.
func (w *world) good(rows ...row) func(source.Row) (source.Result, error) {
	return func(to source.Row) (source.Result, error) {
		now := w.clock.Now()
		for _, r := range rows {
			r.send(to, seconds(now.Add(serverAhead)))
		}
		return source.Result{
			Evaluated: seconds(now.Add(serverAhead)), Received: now, Requests: 1, Series: len(rows), Bytes: int64(100 * len(rows)),
			Endpoint: "http://prometheus:9090",
		}, nil
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// row is a series of an answer. Of the kind Timestamp it has an age in seconds for its value.
type row struct {
	slot  int
	kind  source.Kind
	label string
	value float64
}

func (r row) send(to source.Row, evaluated float64) {
	if r.kind == source.Timestamp {
		r.value = evaluated - r.value
	}
	label := []byte(r.label)
	to(r.slot, r.kind, label, r.value)
	for i := range label {
		label[i] = '!' // it belongs to the source
	}
}

// measuredRows are the rows of a load that is measured, with its sample's age.
func measuredRows(slot int, label string, load float64, age time.Duration) []row {
	return []row{{slot, source.Value, label, load}, {slot, source.Timestamp, label, age.Seconds()}}
}

func rows(lists ...[]row) (all []row) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// testClock says how long a goroutine sleeps.
type testClock struct {
	*clocktesting.FakeClock
	sleeps chan time.Duration
}

func (c *testClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.sleeps <- d
	return timer
}

// question is a request.
type question struct {
	queries []source.Query
}

// fakeSource lets the test answer.
type fakeSource struct {
	questions chan question
	answers   chan func(source.Row) (source.Result, error)
	asking    int32
	closed    chan struct{}
}

func (f *fakeSource) Ask(ctx context.Context, _ string, queries []source.Query, row source.Row) (source.Result, error) {
	if atomic.AddInt32(&f.asking, 1) != 1 {
		panic("two requests at a time")
	}
	defer atomic.AddInt32(&f.asking, -1)
	select {
	case f.questions <- question{queries}:
	case <-ctx.Done():
		return source.Result{}, ctx.Err()
	}
	select {
	case answer := <-f.answers:
		return answer(row)
	case <-ctx.Done():
		return source.Result{}, ctx.Err()
	}
}

func (f *fakeSource) Close() { f.closed <- struct{}{} }

// fakeNodes is an informer whose nodes the test puts there.
type fakeNodes struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	unsynced int32
}

var _ coreinformers.NodeInformer = &fakeNodes{}

func newFakeNodes(nodes ...*v1.Node) *fakeNodes {
	f := &fakeNodes{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	for _, node := range nodes {
		f.add(node)
	}
	return f
}

func (f *fakeNodes) add(node *v1.Node)                   { _ = f.indexer.Add(node) }
func (f *fakeNodes) remove(node *v1.Node)                { _ = f.indexer.Delete(node) }
func (f *fakeNodes) Informer() cache.SharedIndexInformer { return f }
func (f *fakeNodes) Lister() corelisters.NodeLister      { return corelisters.NewNodeLister(f.indexer) }
func (f *fakeNodes) HasSynced() bool                     { return atomic.LoadInt32(&f.unsynced) == 0 }

func makeNode(name string, change ...func(*v1.Node)) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, do := range change {
		do(node)
	}
	return node
}

func madeAt(name string, made time.Time) *v1.Node {
	return makeNode(name, func(node *v1.Node) { node.CreationTimestamp = metav1.NewTime(made) })
}

func makeNodes(count int) (nodes []*v1.Node) {
	for i := 1; i <= count; i++ {
		nodes = append(nodes, makeNode(fmt.Sprintf("node-%d", i)))
	}
	return nodes
}

// sampleOf returns a sample of a node, which must be known.
func sampleOf(t testing.TB, s *measured.Snapshot, node string, slot int) measured.Sample {
	t.Helper()
	if s == nil {
		t.Fatal("no snapshot")
	}
	samples := s.Node(node)
	if len(samples) <= slot {
		t.Fatalf("snapshot %d has %d samples of %s, want more than %d", s.ID, len(samples), node, slot)
	}
	return samples[slot]
}

func expectSample(t testing.TB, s *measured.Snapshot, node string, slot int, want measured.Sample) {
	t.Helper()
	if got := sampleOf(t, s, node, slot); got != want {
		t.Errorf("sample %d of %s is %+v, want %+v", slot, node, got, want)
	}
}

func missing(why measured.Missing) measured.Sample { return measured.Sample{Missing: why} }

var (
	errDown = errors.New("connection refused")
	nan     = math.NaN()
	inf     = math.Inf(1)
)

// Snapshot returns what the last refresh that got an answer found; nil before the first.
func (s *Subscription) Snapshot() *measured.Snapshot { return s.collector.last() }
