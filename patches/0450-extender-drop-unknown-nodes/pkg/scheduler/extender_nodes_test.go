// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// answering returns an extender with the same answer to every request.
func answering(t *testing.T, answer interface{}, cfg config.Extender) framework.Extender {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	cfg.URLPrefix = server.URL
	extender, err := NewHTTPExtender(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	return extender
}

// TestExtenderFilterWithUnknownNodes sends nodes a and b to an extender. An error fails the attempt, so no pod is
// evicted; an ignorable extender is skipped.
func TestExtenderFilterWithUnknownNodes(t *testing.T) {
	tests := []struct {
		name   string
		answer []string
		// wantNames and wantWhole are the nodes that pass if names or whole nodes are exchanged; empty means an
		// error.
		wantNames, wantWhole []string
	}{
		{name: "one of them", answer: []string{"b"}, wantNames: []string{"b"}, wantWhole: []string{"b"}},
		{name: "one of them, and one that was not sent", answer: []string{"x", "b"}, wantWhole: []string{"b"}},
		{name: "nothing but nodes that were not sent", answer: []string{"a.example.com", "b.example.com"}},
	}
	sent := []*v1.Node{st.MakeNode().Name("a").Obj(), st.MakeNode().Name("b").Obj()}
	for _, tt := range tests {
		for _, names := range []bool{true, false} {
			for _, ignorable := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, names: %v, ignorable: %v", tt.name, names, ignorable), func(t *testing.T) {
					var answer extenderv1.ExtenderFilterResult
					want := tt.wantNames
					if names {
						answer.NodeNames = &tt.answer
					} else {
						want = tt.wantWhole
						answer.Nodes = &v1.NodeList{}
						for _, name := range tt.answer {
							answer.Nodes.Items = append(answer.Nodes.Items, *st.MakeNode().Name(name).Obj())
						}
					}
					wantErr := len(want) == 0 && !ignorable
					if len(want) == 0 && ignorable {
						want = []string{"a", "b"}
					}
					extender := answering(t, answer, config.Extender{FilterVerb: "filter", NodeCacheCapable: names, Ignorable: ignorable})
					statuses := framework.NodeToStatusMap{}
					nodes, err := findNodesThatPassExtenders([]framework.Extender{extender}, &v1.Pod{}, sent, statuses)
					if (err != nil) != wantErr || err != nil && !strings.Contains(err.Error(), "which is not found in the input node list") {
						t.Errorf("returned %v, want upstream's error: %v", err, wantErr)
					}
					var got []string
					for _, node := range nodes {
						got = append(got, node.Name)
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("nodes %v pass, want %v", got, want)
					}
				})
			}
		}
	}
}

// TestExtenderPreemptWithUnknownNodes also covers null, which makes upstream's conversion panic.
func TestExtenderPreemptWithUnknownNodes(t *testing.T) {
	pod, victim := &v1.Pod{}, st.MakePod().Name("victim").UID("victim").Node("a").Obj()
	snapshot := internalcache.NewSnapshot([]*v1.Pod{victim}, []*v1.Node{
		st.MakeNode().Name("a").Obj(), st.MakeNode().Name("b").Obj(), st.MakeNode().Name("not-sent").Obj(),
	})
	sent := map[string]*extenderv1.Victims{"a": {Pods: []*v1.Pod{victim}}, "b": {}}
	victims := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: "victim"}}}
	tests := []struct {
		name    string
		answer  map[string]*extenderv1.MetaVictims
		wantErr string
	}{
		{name: "one of them", answer: map[string]*extenderv1.MetaVictims{"a": victims}},
		{name: "one that is known and was not sent", answer: map[string]*extenderv1.MetaVictims{"a": victims, "not-sent": {}}, wantErr: `"not-sent"`},
		{name: "one that is not known", answer: map[string]*extenderv1.MetaVictims{"x": {}}, wantErr: `"x"`},
		{name: "null for victims", answer: map[string]*extenderv1.MetaVictims{"b": nil}, wantErr: `"b"`},
		{name: "null for one of them", answer: map[string]*extenderv1.MetaVictims{"a": {Pods: []*extenderv1.MetaPod{nil}}}, wantErr: `"a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			extender := answering(t, extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: tt.answer}, config.Extender{PreemptVerb: "preempt", NodeCacheCapable: true})
			got, err := extender.ProcessPreemption(pod, sent, snapshot)
			if tt.wantErr == "" {
				if err != nil || len(got) != 1 || len(got["a"].Pods) != 1 {
					t.Errorf("returned %v, %v", got, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("returned %v, want an error that names %s", err, tt.wantErr)
			}
		})
	}
}
