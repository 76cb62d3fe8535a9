// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// waiting is a pod that waits for a Permit plugin.
type waiting struct {
	framework.WaitingPod
	pod *v1.Pod
}

func (w waiting) GetPod() *v1.Pod             { return w.pod }
func (w waiting) GetPendingPlugins() []string { return []string{"Gang"} }

func TestQueue(t *testing.T) {
	r := newRecorder(DefaultOptions)
	now := r.now()
	unschedulable(r, podNamed("waits"), []int{3}, rejectedBy("Fit", "Insufficient cpu"))
	held := podNamed("held")
	a := r.Begin(framework.NewCycleState(), held, "default-scheduler", 3)
	r.End(a, held, "x", 3, 1, nil)
	a.Step("Permit", framework.NewStatus(framework.Wait), now)
	r.Sources.Permit = func(visit func(string, framework.WaitingPod)) { visit("default-scheduler", waiting{pod: held}) }
	r.Sources.Pods = existing(held)
	r.Sources.Lengths = func() QueueLengths { return QueueLengths{Active: 2, Backoff: 1, Unschedulable: itemsOfQueue} }
	r.Sources.Queue = func(visit func(Where, *framework.QueuedPodInfo, time.Time)) {
		info := func(name string, since time.Duration, plugins ...string) *framework.QueuedPodInfo {
			return &framework.QueuedPodInfo{
				PodInfo: framework.NewPodInfo(podNamed(name)), Timestamp: now.Add(since), UnschedulablePlugins: sets.NewString(plugins...),
			}
		}
		for i := 0; i < itemsOfQueue; i++ {
			visit(InUnschedulable, info("waits", 0, "Fit"), time.Time{})
		}
		visit(InBackoff, info("backs-off", 0), now.Add(time.Minute))
		visit(InActive, info("later", time.Second), time.Time{})
		visit(InActive, info("sooner", 0), time.Time{})
	}
	queue, _ := r.queue()
	if len(queue.Items) != itemsOfQueue || queue.Lengths.Permit != 1 || queue.Lengths.Active != 2 {
		t.Fatalf("%d pods, %+v", len(queue.Items), queue.Lengths)
	}
	for i, want := range []string{"sooner", "later", "backs-off", "waits"} {
		if queue.Items[i].Name != want {
			t.Errorf("%d: %s, want %s", i, queue.Items[i].Name, want)
		}
	}
	if until := queue.Items[2].Until; until == nil || !until.Equal(now.Add(time.Minute)) {
		t.Errorf("its backoff ends at %v", until)
	}
	if waits := queue.Items[3]; waits.Summary != "None of the 3 evaluated nodes fits; 3: Insufficient cpu." || waits.WaitsFor[0] != "Fit" {
		t.Errorf("%+v", waits)
	}
	got, _ := r.Get("default", "held")
	if len(got.Permit) != 1 || got.Permit[0].Plugin != "Gang" || got.Permit[0].Since.IsZero() || got.Attempts[0].Steps[0].Status != "Wait" {
		t.Errorf("a pod that waits for a plugin: %+v", got)
	}
}

// One dry run at a time: some wait, more are refused, and scheduling gets its share of the time.
func TestWhatIfsTakeTurns(t *testing.T) {
	r := newRecorder(DefaultOptions)
	goOn, ended, searches := make(chan struct{}), make(chan error), 0
	r.Sources.WhatIf = func(context.Context, *v1.Pod, bool) (*WhatIf, time.Duration, error) {
		searches++ // the race detector notices two at once
		<-goOn
		time.Sleep(time.Millisecond) // work
		return &WhatIf{}, time.Millisecond, nil
	}
	pod := func() (GangRequest, error) { return GangRequest{Pending: podNamed("pod")}, nil }
	ask := func() { _, err := r.find(context.Background(), pod, false); ended <- err }
	for i := 0; i < whatIfsWaiting+1; i++ {
		go ask()
	}
	if err := <-ended; !apierrors.IsTooManyRequests(err) {
		t.Errorf("one more: %v", err)
	}
	began := time.Now()
	close(goOn)
	for i := 0; i < whatIfsWaiting; i++ {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); searches != whatIfsWaiting || took < (whatIfsWaiting-1)*(whatIfShare-1)*time.Millisecond {
		t.Errorf("%d searches in %v", searches, took)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.whatIfs.next = time.Now().Add(time.Hour)
	if _, err := r.find(ctx, pod, false); err == nil {
		t.Error("a cancelled request gets an answer")
	}
}

// scoring is an extender that scores one node and fails to filter.
type scoring struct{ framework.Extender }

func (scoring) Name() string { return "http://user:secret@extender/prefix?token=secret" }
func (scoring) Filter(*v1.Pod, []*v1.Node) ([]*v1.Node, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	return nil, nil, nil, errAway
}
func (scoring) Prioritize(*v1.Pod, []*v1.Node) (*extenderv1.HostPriorityList, int64, error) {
	return &extenderv1.HostPriorityList{{Host: "x", Score: 10}}, 1, nil
}

var errAway = errors.New("the extender is away")

func TestExtendersCalls(t *testing.T) {
	r := newRecorder(DefaultOptions)
	p := podNamed("pod")
	extender := r.Extender(scoring{})
	a := r.Begin(framework.NewCycleState(), p, "default-scheduler", 2)
	nodes := []*v1.Node{{}, {}}
	_, _, _, _ = extender.Filter(p, nodes)
	_, _, _ = extender.Prioritize(p, nodes)
	a.Reject("a", rejectedBy("Fit", "no"))
	a.Preempts([]string{"f", "b", "c", "d", "e", "a"}, 6, "a", []*v1.Pod{podNamed("victim")}, "")
	r.End(a, p, "", 0, 0, errAway)
	// Outside of any attempt.
	_, _, _, _ = extender.Filter(p, nodes)
	equalBytes(t, r)
	got, _ := r.Get("default", "pod")
	want := []ExtenderCall{
		{URL: "http://extender/prefix", Verb: "filter", Seconds: 1, NodesIn: 2, Error: "the extender is away"},
		{URL: "http://extender/prefix", Verb: "prioritize", Seconds: 1, NodesIn: 2, NodesOut: 1},
	}
	calls := got.Attempts[0].Extenders
	if len(calls) != 2 || calls[0] != want[0] || calls[1] != want[1] {
		t.Errorf("%+v, want %+v", calls, want)
	}
	if p := got.Attempts[0].Preemption; p.Candidates != 6 || len(p.Sample) != sampleNodes || p.Sample[0] != "a" || p.Victims[0] != "default/victim" || p.VictimCount != 1 {
		t.Errorf("%+v", p)
	}
	a = r.Begin(framework.NewCycleState(), p, "default-scheduler", 2)
	a.RejectAll(rejectedBy("Gang", "too few pods"))
	a.Preempts(nil, 0, "", nil, "evictions would not make room")
	r.End(a, p, "", 0, 0, &framework.FitError{})
	if after, _ := r.Get("default", "pod"); after.Attempts[0].Preemption != nil {
		t.Errorf("a pod that PreFilter rejects: %+v", after.Attempts[0].Preemption)
	}
	encoded, _ := json.Marshal(got)
	if strings.Contains(string(encoded), "secret") {
		t.Errorf("%s", encoded)
	}
}

// explaining is a plugin that explains its decisions.
type explaining struct{ framework.Plugin }

func (explaining) Name() string { return "Explaining" }
func (explaining) Explain(_ *framework.CycleState, pod *v1.Pod, nodes []string) string {
	return pod.Name + " on " + strings.Join(nodes, ", ")
}

func TestWordsOfPlugins(t *testing.T) {
	r := newRecorder(DefaultOptions)
	r.Sources.Explainers = map[string][]Explainer{"default-scheduler": {explaining{}}}
	unschedulable(r, podNamed("waits"), []int{2}, rejectedBy("Fit", "no"))
	p := podNamed("pod")
	a := r.Begin(framework.NewCycleState(), p, "default-scheduler", 2)
	r.End(a, p, "only", 1, 1, nil)
	for name, want := range map[string]string{"waits": "waits on node-0-0, node-0-1", "pod": "pod on only"} {
		got, _ := r.Get("default", name)
		if words := got.Attempts[0].Words; len(words) != 1 || words[0] != (PluginWords{"Explaining", want}) {
			t.Errorf("%s: %+v, want %s", name, words, want)
		}
	}
}
