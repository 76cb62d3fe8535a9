// SPDX-License-Identifier: Apache-2.0

package records

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// newRecorder returns a recorder whose clock advances by a second at each reading.
func newRecorder(options Options) *Recorder {
	r := New(options)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r.Sources.Permit = func(func(string, framework.WaitingPod)) {}
	r.Sources.Pods = existing(podNamed("pod"), podNamed("waits"), podNamed("waits-longer"), podNamed("bound"))
	r.now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	return r
}

// existing returns a lister of pods.
func existing(pods ...*v1.Pod) corelisters.PodLister {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, p := range pods {
		_ = indexer.Add(p)
	}
	return corelisters.NewPodLister(indexer)
}

func podNamed(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
}

func rejectedBy(plugin string, reasons ...string) *framework.Status {
	return framework.NewStatus(framework.Unschedulable, reasons...).WithFailedPlugin(plugin)
}

// unschedulable records an attempt in which each status rejects the given number of nodes.
func unschedulable(r *Recorder, p *v1.Pod, numbers []int, statuses ...*framework.Status) {
	state, fit := framework.NewCycleState(), &framework.FitError{Pod: p}
	fit.Diagnosis.NodeToStatusMap = framework.NodeToStatusMap{}
	a := r.Begin(state, p, "default-scheduler", 100)
	passed := 0
	for i, status := range statuses {
		if status.FailedPlugin() == "" {
			passed += numbers[i]
		}
	}
	a.Searched(passed)
	for i, status := range statuses {
		for n := 0; n < numbers[i]; n++ {
			node := fmt.Sprintf("node-%d-%d", i, n)
			fit.Diagnosis.NodeToStatusMap[node] = status
			if status.FailedPlugin() != "" {
				a.Reject(node, status)
			}
		}
	}
	r.End(a, p, "", 0, 0, fit)
	r.Failed(p, fit)
}

func equalBytes(t *testing.T, r *Recorder) {
	t.Helper()
	var size int64
	for _, element := range r.pods {
		for _, a := range element.Value.(*pod).attempts {
			size += a.bytes
		}
	}
	if size != r.bytes {
		t.Errorf("%d bytes are counted, and %d kept", r.bytes, size)
	}
}

func TestStoryOfAPod(t *testing.T) {
	r := newRecorder(DefaultOptions)
	p := podNamed("pod")
	queued := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r.Next(&framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(p), Attempts: 7, Timestamp: queued, InitialAttemptTimestamp: queued.Add(-time.Minute)}, "NodeAdd")
	// The second status has the reasons of the first, but is another object. The last has no plugin: it is an
	// extender's.
	unschedulable(r, p, []int{60, 10, 20, 10}, rejectedBy("Fit", "Insufficient cpu"), rejectedBy("Fit", "Insufficient cpu"),
		rejectedBy("Taints", "a taint", "another"), framework.NewStatus(framework.Unschedulable, "not today"))

	state := framework.NewCycleState()
	a := r.Begin(state, p, "default-scheduler", 100)
	if Of(state) != a || Of(state.Clone()) != nil || Of(framework.NewCycleState()) != nil {
		t.Error("an attempt is found by its state, and not by a copy or another state")
	}
	scores := [2][3][2]int64{{{10, 20}, {25, 50}, {25, 50}}, {{3, 0}, {7, 200}, {7, 200}}}
	score := func(plugin, node int) (int64, int64) { return scores[plugin][node][0], scores[plugin][node][1] }
	released := false
	a.Hold(func() []Plugin { return []Plugin{{"Plain", 2}, {"Normal", 2}} }, score, func() { released = true })
	a.Rank(framework.NodeScoreList{{Name: "a", Score: 20}, {Name: "b", Score: 260}, {Name: "c", Score: 260}}, "c")
	r.End(a, p, "c", 100, 3, nil)
	waiting, _ := r.Get("default", "pod")
	r.Bound(p)

	got, _ := r.Get("default", "pod")
	if !released || waiting.Result != Binding || got.Result != Bound || got.Node != "c" || len(got.Attempts) != 2 {
		t.Fatalf("released: %v; before it was bound: %+v; after: %+v", released, waiting.PodSummary, got)
	}
	last, first := got.Attempts[0], got.Attempts[1]
	if last.Ties != 2 || last.Feasible != 3 || last.Evaluated != 100 || last.ToEndSeconds == 0 {
		t.Errorf("the last attempt: %+v", last)
	}
	want := []NodeScores{
		{Node: "b", Total: 260, Extenders: 10, Plugins: []PluginScore{{"Plain", 25, 25, 2, 50}, {"Normal", 7, 100, 2, 200}}},
		{Node: "c", Total: 260, Extenders: 10, Plugins: []PluginScore{{"Plain", 25, 25, 2, 50}, {"Normal", 7, 100, 2, 200}}},
		{Node: "a", Total: 20, Plugins: []PluginScore{{"Plain", 10, 10, 2, 20}, {"Normal", 3, 0, 2, 0}}},
	}
	if !reflect.DeepEqual(last.Scores, want) {
		t.Errorf("scores:\n%+v, want\n%+v", last.Scores, want)
	}
	if first.Attempt != 7 || first.QueuedSeconds != 1 || first.SinceFirstSeconds != 61 || first.Evaluated != 100 || first.Error != "" {
		t.Errorf("the first attempt: %+v", first)
	}
	if want := "None of 100 nodes fits; 70: Insufficient cpu; 20: a taint, another; 10: not today."; first.Summary != want {
		t.Errorf("it says %q, want %q", first.Summary, want)
	}
	if r := first.Rejections; len(r) != 3 || r[0].Plugin != "Fit" || len(r[0].Sample) != sampleNodes || r[2].Plugin != "" {
		t.Errorf("rejections: %+v", r)
	}
}

func TestTell(t *testing.T) {
	r := newRecorder(DefaultOptions)
	p := podNamed("pod")
	r.Tell(p, "Coscheduling", "No attempt is recorded.")
	unschedulable(r, p, []int{100}, rejectedBy("Fit", "Insufficient cpu"))
	before, _ := r.Get("default", "pod")
	for _, text := range []string{"It needs 3 places, and found 1.", "It needs 3 places, and found 2."} {
		r.Tell(p, "Coscheduling", text)
		got, _ := r.Get("default", "pod")
		if want := []PluginWords{{"Coscheduling", text}}; !reflect.DeepEqual(got.Attempts[0].Words, want) || got.Summary != before.Summary {
			t.Errorf("%q: %+v", got.Summary, got.Attempts[0].Words)
		}
		equalBytes(t, r)
	}
	if len(before.Attempts[0].Words) != 0 {
		t.Error("an answer has changed after it was given")
	}
}

// An attempt for a gang searches for a pod in several domains.
func TestRepeatedSearches(t *testing.T) {
	r := newRecorder(DefaultOptions)
	p := podNamed("pod")
	for number := 1; number <= 2; number++ {
		for _, node := range []string{"a", "b", "c"} {
			r.Next(&framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(p), Attempts: number}, "NodeAdd")
			r.End(r.Begin(framework.NewCycleState(), p, "default-scheduler", 3), p, node, 3, 1, nil)
		}
		r.Failed(p, &framework.FitError{Pod: p})
	}
	got, _ := r.Get("default", "pod")
	if len(got.Attempts) != 2 || got.Attempts[0].Attempt != 2 || got.Attempts[1].Attempt != 1 || got.Attempts[1].Node != "c" ||
		got.Result != Unschedulable || got.Summary != "Node c fits the pod, but its gang does not fit as a whole." {
		t.Errorf("%+v", got)
	}
	equalBytes(t, r)
	draft := r.Draft()
	unschedulable(draft, p, []int{1}, rejectedBy("Fit", "no"))
	draft.End(draft.Begin(framework.NewCycleState(), podNamed("other"), "default-scheduler", 3), podNamed("other"), "c", 3, 1, nil)
	for name, want := range map[string]Result{"pod": Unschedulable, "other": Binding} {
		if got, found := draft.Get("default", name); !found || got.Result != want {
			t.Errorf("a dry run of pod %s: %+v", name, got)
		}
	}
}

func TestSummaries(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		nodes      int
		attempt    func(r *Recorder, p *v1.Pod, a *Attempt)
	}{
		{"PreFilter", "It is rejected before any node is evaluated: unbound claim.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			a.Reject("node", rejectedBy("Fit", "Insufficient cpu"))
			a.RejectAll(rejectedBy("VolumeBinding", "unbound claim"))
			r.End(a, p, "", 0, 0, &framework.FitError{})
		}},
		{"a second search", "None of the 1 evaluated nodes fits; 1: Insufficient cpu.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			a.Reject("nominated", rejectedBy("Taints", "a taint"))
			a.Searched(0)
			a.Reject("node", rejectedBy("Fit", "Insufficient cpu"))
			r.End(a, p, "", 0, 0, &framework.FitError{})
		}},
		{"the label of a newer gang", "None of 1 node fits; 1: Insufficient cpu. Its label scheduling.x-k8s.io/pod-group has no effect: " +
			"it is scheduled without its gang, whose label here is pod-group.scheduling.sigs.k8s.io.", 1, func(r *Recorder, p *v1.Pod, a *Attempt) {
			labelled := podNamed("pod")
			labelled.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "gang"}
			r.Sources.Pods = existing(labelled)
			a.Reject("node", rejectedBy("Fit", "Insufficient cpu"))
			r.End(a, p, "", 0, 0, &framework.FitError{})
			r.Failed(p, &framework.FitError{})
		}},
		{"both labels of a gang", "It is bound to node a.", 1, func(r *Recorder, p *v1.Pod, a *Attempt) {
			labelled := podNamed("pod")
			labelled.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "gang", "pod-group.scheduling.sigs.k8s.io": "gang"}
			r.Sources.Pods = existing(labelled)
			r.End(a, p, "a", 1, 1, nil)
			r.Bound(p)
		}},
		{"preemption", "None of the 1 evaluated nodes fits; 1: Insufficient cpu. Pods of lower priority are evicted from node x for it.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			nominated := podNamed("pod")
			nominated.Status.NominatedNodeName = "x"
			r.Sources.Pods = existing(nominated)
			a.Reject("node", rejectedBy("Fit", "Insufficient cpu"))
			r.End(a, p, "", 0, 0, &framework.FitError{})
			r.Failed(p, &framework.FitError{})
		}},
		{"no nodes", "The cluster has no nodes.", 0, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "", 0, 0, errors.New("no nodes available to schedule pods"))
		}},
		{"evaluated some", "None of the 30 evaluated nodes fits; 20: an extender left it out; 10: Insufficient cpu.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			a.Searched(20)
			for i := 0; i < 10; i++ {
				a.Reject(fmt.Sprint(i), rejectedBy("Fit", "Insufficient cpu"))
			}
			r.End(a, p, "", 0, 0, &framework.FitError{})
		}},
		{"many reasons of an extender", "None of 20 nodes fits; 5: other reasons; 1: a; 1: b; 1: c; 1: d; … (11 more).", 20, func(r *Recorder, p *v1.Pod, a *Attempt) {
			a.Searched(20)
			for i := 0; i < 20; i++ {
				a.Reject(fmt.Sprint(i), rejectedBy("", string(rune('a'+i))))
			}
			r.End(a, p, "", 0, 0, &framework.FitError{})
		}},
		{"a rejection with many reasons", "None of 1 node fits; 1: " + strings.Repeat("x", bytesOfText-1) + ", … (1000 more).", 1, func(r *Recorder, p *v1.Pod, a *Attempt) {
			reasons := []string{strings.Repeat("x", bytesOfText-1)}
			for i := 0; i < 1000; i++ {
				reasons = append(reasons, "Insufficient something")
			}
			a.Reject("node", rejectedBy("Fit", reasons...))
			r.End(a, p, "", 0, 0, &framework.FitError{})
			equalBytes(t, r)
		}},
		{"a Permit plugin without a reason", "Node x was chosen, and then: no reason is given.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "x", 1, 1, nil)
			r.Failed(p, errors.New(""))
		}},
		{"a long reason", "Node x was chosen, and then: " + strings.Repeat("x", bytesOfText) + "….", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "x", 1, 1, nil)
			r.Failed(p, errors.New(strings.Repeat("x", 20<<20)))
			equalBytes(t, r)
		}},
		{"a binding that took effect", "It is bound to node y.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "y", 1, 1, nil)
			r.Failed(p, errors.New("timeout"))
			bound := podNamed("pod")
			bound.Spec.NodeName = "y"
			r.Sources.Pods = existing(bound)
		}},
		{"bound by somebody else", "It is bound to node z. The recorded attempts did not bind it.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "", 0, 0, &framework.FitError{})
			bound := podNamed("pod")
			bound.Spec.NodeName = "z"
			r.Sources.Pods = existing(bound)
		}},
		{"bound and deleted", "It was bound to node y, and has ended or no longer exists.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "y", 1, 1, nil)
			r.Bound(p)
			r.Sources.Pods = existing()
		}},
		{"bound, deleted and created again", "It was bound to node y, and has ended or no longer exists. " +
			"A newer pod of this name waits and has not been tried.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "y", 1, 1, nil)
			r.Bound(p)
			again := podNamed("pod")
			again.UID = "another"
			r.Sources.Pods = existing(again)
		}},
		{"deleted", "It no longer exists. Its last attempt: None of 1 node fits; 1: no. " +
			"A newer pod of this name is bound to node z.", 1, func(r *Recorder, p *v1.Pod, a *Attempt) {
			a.Reject("node", rejectedBy("Fit", "no"))
			r.End(a, p, "", 0, 0, &framework.FitError{})
			again := podNamed("pod")
			again.UID, again.Spec.NodeName = "another", "z"
			r.Sources.Pods = existing(again)
		}},
		{"a failed binding", "Node x was chosen, and then: binding rejected.", 100, func(r *Recorder, p *v1.Pod, a *Attempt) {
			r.End(a, p, "x", 1, 1, nil)
			r.Failed(p, errors.New("binding rejected"))
			r.Bound(p)
		}},
	} {
		r := newRecorder(DefaultOptions)
		p := podNamed("pod")
		tt.attempt(r, p, r.Begin(framework.NewCycleState(), p, "", tt.nodes))
		if got, _ := r.Get("default", "pod"); got.Summary != tt.want {
			t.Errorf("%s: it says %q, want %q", tt.name, got.Summary, tt.want)
		}
	}
}

// More nodes have the highest total than are kept.
func TestRank(t *testing.T) {
	for chosen := 0; chosen < 30; chosen++ {
		var totals framework.NodeScoreList
		for i := 0; i < 60; i++ {
			totals = append(totals, framework.NodeScore{Name: fmt.Sprint(i), Score: int64(i % 2)})
		}
		name := fmt.Sprint(2*chosen + 1)
		a := &Attempt{}
		a.Rank(totals, name)
		found := 0
		for _, node := range a.scores.nodes {
			if node.total != 1 {
				t.Errorf("node %s with %d is among the best", node.name, node.total)
			}
			if node.name == name {
				found++
			}
		}
		want := bestNodes
		if chosen >= bestNodes {
			want++
		}
		if found != 1 || len(a.scores.nodes) != want || a.scores.ties != 30 {
			t.Errorf("%s was chosen: %+v", name, a.scores)
		}
	}
}

func TestBounds(t *testing.T) {
	r := newRecorder(Options{Pods: 3, Bytes: 1 << 20})
	bind := func(name string) {
		p := podNamed(name)
		a := r.Begin(framework.NewCycleState(), p, "", 1)
		r.End(a, p, "x", 1, 1, nil)
		r.Bound(p)
	}
	var all []*v1.Pod
	for i := 0; i < 40; i++ {
		all = append(all, podNamed(fmt.Sprint("pod-", i)))
	}
	r.Sources.Pods = existing(all...)
	for i, p := range all {
		for attempt := 0; attempt <= attemptsOfPod; attempt++ {
			unschedulable(r, p, []int{1}, rejectedBy("Fit", fmt.Sprint("reason ", attempt)))
		}
		bind(fmt.Sprint("bound-", i))
	}
	if len(r.pods) != 33 || r.waiting.Len() != 30 || r.done.Len() != 3 {
		t.Errorf("%d pods that wait and %d bound ones are kept, want 30 and 3", r.waiting.Len(), r.done.Len())
	}
	// Of the first pods all attempts are kept, of the others only the last one.
	for name, want := range map[string]int{"pod-9": 0, "pod-10": 1, "pod-39": 1, "bound-36": 0, "bound-37": 1} {
		got, _ := r.Get("default", name)
		if len(got.Attempts) != want || want == 1 && name[0] == 'p' && got.Attempts[0].Rejections[0].Reasons[0] != fmt.Sprint("reason ", attemptsOfPod) {
			t.Errorf("of %s: %+v, want %d attempts", name, got.Attempts, want)
		}
	}
	bind("pod-39")
	if r.waiting.Len() != 29 || r.done.Len() != 3 {
		t.Errorf("after a binding, %d pods that wait and %d bound ones are kept", r.waiting.Len(), r.done.Len())
	}
	// Pods that are gone do not count as pods that wait.
	r.Sources.Pods = existing(all[38])
	for i := 0; i < 20; i++ {
		unschedulable(r, all[38], []int{1}, rejectedBy("Fit", "no"))
	}
	if r.waiting.Len() != 1 || r.done.Len() != 3 {
		t.Errorf("when all others are gone, %d pods that wait and %d others are kept, want 1 and 3", r.waiting.Len(), r.done.Len())
	}
	if got, _ := r.Get("default", "pod-37"); len(got.Attempts) == 0 {
		t.Error("of those, the last one gives way to bound pods that are older")
	}
	equalBytes(t, r)
	r = newRecorder(Options{Pods: 3, Bytes: 1 << 20})
	for attempt := 0; attempt <= attemptsOfPod; attempt++ {
		unschedulable(r, podNamed("pod"), []int{1}, rejectedBy("Fit", fmt.Sprint("reason ", attempt)))
	}
	if got, _ := r.Get("default", "pod"); len(got.Attempts) != attemptsOfPod {
		t.Errorf("%d attempts of the only pod are kept, want %d", len(got.Attempts), attemptsOfPod)
	}

	r = newRecorder(Options{Pods: 1000, Bytes: 10000})
	for i := 0; i < 100; i++ {
		unschedulable(r, podNamed(fmt.Sprint("pod-", i)), []int{1}, rejectedBy("Fit", strings.Repeat("x", 1000)))
	}
	if r.bytes > 10000 || len(r.pods) < 5 || len(r.pods) > 10 {
		t.Errorf("%d pods take %d bytes", len(r.pods), r.bytes)
	}
	equalBytes(t, r)
	// Each node has a different text.
	state, p := framework.NewCycleState(), podNamed("many")
	a := r.Begin(state, p, "", 1000)
	for i := 0; i < 1000; i++ {
		a.Reject(fmt.Sprint(i), rejectedBy("Own", fmt.Sprint("reason ", i)))
	}
	if len(a.rejections) != textsOfAttempt || a.rejected() != 1000 {
		t.Errorf("%d texts of %d nodes", len(a.rejections), a.rejected())
	}
}

// All methods can be called if nothing is recorded.
func TestOff(t *testing.T) {
	for _, options := range []Options{{Pods: 0, Bytes: 1}, {Pods: 1, Bytes: 0}} {
		r := New(options)
		state, p := framework.NewCycleState(), podNamed("pod")
		r.Next(&framework.QueuedPodInfo{}, "")
		a := r.Begin(state, p, "", 1)
		if r != nil || a != nil || Of(state) != nil {
			t.Errorf("%+v keeps %v, %v", options, r, a)
		}
		a.Searched(1)
		a.RejectAll(rejectedBy("x"))
		a.Reject("node", rejectedBy("x"))
		a.Rank(framework.NodeScoreList{{}}, "")
		r.End(a, p, "", 0, 0, nil)
		r.Failed(p, nil)
		r.Bound(p)
		r.Tell(p, "x", "text")
		handler := http.NotFoundHandler()
		if got := r.Serve(handler, nil); reflect.ValueOf(got) != reflect.ValueOf(handler) {
			t.Error("what keeps nothing serves")
		}
	}
}
