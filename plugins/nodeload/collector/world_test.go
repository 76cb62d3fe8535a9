// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	clocktesting "k8s.io/utils/clock/testing"
)

// start is the time at which the tests begin, by the scheduler's clock. Prometheus' clock is serverAhead of it.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const serverAhead = time.Hour

// fakeSource returns the test's answers.
type fakeSource struct {
	queries []source.Query // of the last request
	answer  func() (source.Result, error)
}

func (f *fakeSource) Ask(_ context.Context, queries []source.Query) (source.Result, error) {
	f.queries = queries
	return f.answer()
}

func (f *fakeSource) Close() {}

// world has a collector with a fake clock and source. The test triggers each refresh.
type world struct {
	*collector
	t      testing.TB
	clock  *clocktesting.FakeClock
	source *fakeSource
	nodes  cache.Indexer
	events *events.FakeRecorder
}

func newWorld(t testing.TB, nodes ...*v1.Node) *world {
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(start), source: &fakeSource{},
		nodes:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		events: events.NewFakeRecorder(100),
	}
	for _, node := range nodes {
		w.add(node)
	}
	initMetrics("0")
	return w
}

// newMeasuredWorld returns a world with one member.
func newMeasuredWorld(t testing.TB, s Spec, nodes ...*v1.Node) *world {
	w := newWorld(t, nodes...)
	w.join(s)
	return w
}

// join adds a member.
func (w *world) join(s Spec) {
	w.t.Helper()
	if w.collector != nil {
		w.setMembers(append(w.plan().members, &s))
		return
	}
	s.Nodes, s.Recorder = corelisters.NewNodeLister(w.nodes), w.events
	s.Connect = func() (source.Source, error) { return w.source, nil }
	var err error
	// At 0.5 the jitter is 0; after failures it shortens the pause by a tenth.
	if w.collector, err = newCollector("0", &s, w.clock, func() float64 { return 0.5 }); err != nil {
		w.t.Fatal(err)
	}
}

// spec queries resources every 30 s, with expressions that contain their names.
func spec(resources ...string) Spec {
	s := Spec{RefreshInterval: 30 * time.Second, MaxSampleAge: 3 * time.Minute}
	for _, name := range resources {
		s.Resources = append(s.Resources, Resource{
			Query: source.Query{Name: name, Label: "instance", Value: name, Timestamp: "timestamp(" + name + ")", Deviation: "deviation(" + name + ")"},
			By:    config.NodeLoadMatchName,
		})
	}
	return s
}

func (w *world) add(node *v1.Node)    { _ = w.nodes.Add(node) }
func (w *world) remove(node *v1.Node) { _ = w.nodes.Delete(node) }

func (w *world) state() Status { return w.status.Load().(Status) }

// refreshWith refreshes with the source's answer, and returns the pause until the next refresh.
func (w *world) refreshWith(answer func() (source.Result, error)) time.Duration {
	w.t.Helper()
	w.source.answer = answer
	return w.refresh(context.Background())
}

// answer refreshes with rows, whose timestamps are ages.
func (w *world) answer(rows ...source.Row) time.Duration {
	w.t.Helper()
	return w.answerWith(func(*source.Result) {}, rows...)
}

// answerWith refreshes with rows and a modified result.
func (w *world) answerWith(change func(*source.Result), rows ...source.Row) time.Duration {
	w.t.Helper()
	return w.refreshWith(func() (source.Result, error) {
		now := w.clock.Now()
		result := source.Result{
			Evaluated: seconds(now.Add(serverAhead)), Received: now, Requests: 1, Bytes: int64(100 * len(rows)), Endpoint: "http://prometheus:9090",
		}
		for _, row := range rows {
			if row.Kind == source.Timestamp {
				row.Value = result.Evaluated - row.Value
			}
			result.Rows = append(result.Rows, row)
		}
		change(&result)
		return result, nil
	})
}

// fail refreshes with an error.
func (w *world) fail(err error) time.Duration {
	w.t.Helper()
	return w.refreshWith(func() (source.Result, error) { return source.Result{}, err })
}

// event returns the next event; empty if there is none.
func (w *world) event() string {
	select {
	case text := <-w.events.Events:
		return text
	default:
		return ""
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// measuredRows returns the rows of a load with the age of its sample.
func measuredRows(query int, label string, load float64, age time.Duration) []source.Row {
	return []source.Row{{Query: query, Label: label, Value: load}, {Query: query, Kind: source.Timestamp, Label: label, Value: age.Seconds()}}
}

func rows(lists ...[]source.Row) (all []source.Row) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

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

func expectSample(t testing.TB, s *Snapshot, node string, column int, want Sample) {
	t.Helper()
	if s == nil || len(s.Nodes[node]) <= column {
		t.Fatalf("the snapshot has no sample %d of %s", column, node)
	}
	if got := s.Nodes[node][column]; got != want {
		t.Errorf("sample %d of %s is %+v, want %+v", column, node, got, want)
	}
}

func missing(why Missing) Sample { return Sample{Missing: why} }

func expectPause(t testing.TB, got, want time.Duration) {
	t.Helper()
	// The multiplication with the jitter rounds.
	if difference := got - want; difference < -time.Millisecond || difference > time.Millisecond {
		t.Fatalf("the pause is %v, want %v", got, want)
	}
}

var (
	errDown = errors.New("connection refused")
	nan     = math.NaN()
	inf     = math.Inf(1)
)
