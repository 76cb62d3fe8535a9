// SPDX-License-Identifier: Apache-2.0

package extendernodes

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// extenderOf is the urlPrefix of an extender that is in no other test, and what the metric calls it.
func extenderOf(t *testing.T) (prefix, label string) {
	host := strings.NewReplacer("/", ".", ",", "", "_", "").Replace(strings.ToLower(t.Name())) + ".example.com"
	return "http://user:secret@" + host, "http://" + host
}

func expectCounted(t *testing.T, extender, verb string, want float64) {
	t.Helper()
	got, err := testutil.GetCounterMetricValue(unknownNodes.WithLabelValues(extender, verb))
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("scheduler_extender_unknown_nodes_total{extender=%q,verb=%q} is %v, want %v", extender, verb, got, want)
	}
}

// sent are the scheduler's own nodes.
func sent(names ...string) map[string]*v1.Node {
	nodes := map[string]*v1.Node{}
	for _, name := range names {
		nodes[name] = st.MakeNode().Name(name).Label("scheduler", "own").Obj()
	}
	return nodes
}

func nodeList(names ...string) *v1.NodeList {
	list := &v1.NodeList{}
	for _, name := range names {
		list.Items = append(list.Items, *st.MakeNode().Name(name).Obj())
	}
	return list
}

func TestKeepNodes(t *testing.T) {
	tests := []struct {
		name             string
		nodeCacheCapable bool
		answer           extenderv1.ExtenderFilterResult
		want             []string
		wantFailed       extenderv1.FailedNodesMap
		wantUnresolvable extenderv1.FailedNodesMap
		wantUnknown      float64
	}{
		{name: "names, all known, in another order", nodeCacheCapable: true, answer: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"b", "a"}}, want: []string{"b", "a"}},
		{name: "names, two unknown and one twice", nodeCacheCapable: true, answer: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"x", "a", "a", "y"}}, want: []string{"a"}, wantUnknown: 2},
		{name: "names, none", nodeCacheCapable: true, answer: extenderv1.ExtenderFilterResult{NodeNames: &[]string{}}},
		{name: "nodes, where names were expected", nodeCacheCapable: true, answer: extenderv1.ExtenderFilterResult{Nodes: nodeList("x", "b")}, want: []string{"b"}, wantUnknown: 1},
		{name: "nodes, all known", answer: extenderv1.ExtenderFilterResult{Nodes: nodeList("a", "c")}, want: []string{"a", "c"}},
		{name: "nodes, one unknown, one without a name and one twice", answer: extenderv1.ExtenderFilterResult{Nodes: nodeList("c", "x", "", "c")}, want: []string{"c"}, wantUnknown: 2},
		{
			name: "reasons for unknown nodes",
			answer: extenderv1.ExtenderFilterResult{
				Nodes: nodeList("a"), FailedNodes: extenderv1.FailedNodesMap{"b": "no", "x": "no"},
				FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{"c": "never", "y": "never"},
			},
			want: []string{"a"}, wantFailed: extenderv1.FailedNodesMap{"b": "no"}, wantUnresolvable: extenderv1.FailedNodesMap{"c": "never"}, wantUnknown: 2,
		},
		{name: "neither names nor nodes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prefix, label := extenderOf(t)
			KeepNodes(prefix, &v1.Pod{}, tt.nodeCacheCapable, sent("a", "b", "c"), &tt.answer)
			var got []string
			if tt.answer.NodeNames != nil {
				got = append(got, *tt.answer.NodeNames...)
			} else if tt.answer.Nodes != nil {
				for _, node := range tt.answer.Nodes.Items {
					got = append(got, node.Name)
					if node.Labels["scheduler"] != "own" {
						t.Errorf("node %s is the extender's copy", node.Name)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantFailed, tt.answer.FailedNodes); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantUnresolvable, tt.answer.FailedAndUnresolvableNodes); diff != "" {
				t.Errorf("failed and unresolvable (-want +got):\n%s", diff)
			}
			expectCounted(t, label, "filter", tt.wantUnknown)
		})
	}
}

func TestKeepHosts(t *testing.T) {
	prefix, label := extenderOf(t)
	answer := extenderv1.HostPriorityList{{Host: "b", Score: 3}, {Host: "x", Score: 10}, {Host: "b", Score: 10}, {Host: "a", Score: 1}}
	nodes := sent("a", "b")
	KeepHosts(prefix, &v1.Pod{}, []*v1.Node{nodes["a"], nodes["b"]}, &answer)
	if diff := cmp.Diff(extenderv1.HostPriorityList{{Host: "b", Score: 3}, {Host: "a", Score: 1}}, answer); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	expectCounted(t, label, "prioritize", 1)
}

// TestKeepVictims is also about answers that upstream's conversion panics at.
func TestKeepVictims(t *testing.T) {
	tests := []struct {
		name        string
		answer      string
		want        map[string]int
		wantCounted float64
	}{
		{
			name:   "for two nodes that were not sent",
			answer: `{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"pod-a"}]},"x":{"Pods":[]},"y":{"Pods":[]}}}`,
			want:   map[string]int{"a": 1}, wantCounted: 2,
		},
		{name: "null for a node", answer: `{"NodeNameToMetaVictims":{"a":null,"b":{"Pods":[{"UID":"pod-b"}]}}}`, want: map[string]int{"b": 1}, wantCounted: 1},
		{name: "null for a pod", answer: `{"NodeNameToMetaVictims":{"a":{"Pods":[null]}}}`, wantCounted: 1},
		{name: "null for one of two pods", answer: `{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"pod-a"},null]},"b":{"Pods":[{"UID":"pod-b"}]}}}`, want: map[string]int{"b": 1}, wantCounted: 1},
		{name: "null for a node that was not sent", answer: `{"NodeNameToMetaVictims":{"x":null}}`, wantCounted: 1},
		{name: "null for the pods of a node, of which there are none then", answer: `{"NodeNameToMetaVictims":{"a":{"Pods":null}}}`, want: map[string]int{"a": 0}},
		{name: "null for everything", answer: `{"NodeNameToMetaVictims":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prefix, label := extenderOf(t)
			var answer extenderv1.ExtenderPreemptionResult
			if err := json.Unmarshal([]byte(tt.answer), &answer); err != nil {
				t.Fatal(err)
			}
			KeepVictims(prefix, &v1.Pod{}, map[string]*extenderv1.Victims{"a": {}, "b": {}}, &answer)
			var got map[string]int
			for node, victims := range answer.NodeNameToMetaVictims {
				if got == nil {
					got = map[string]int{}
				}
				got[node] = len(victims.Pods)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("number of victims by node (-want +got):\n%s", diff)
			}
			expectCounted(t, label, "preempt", tt.wantCounted)
		})
	}
}

// TestAnswersAreCountedInParallel is for the race detector: prioritize is called for all extenders at once.
func TestAnswersAreCountedInParallel(t *testing.T) {
	prefix, label := extenderOf(t)
	var done sync.WaitGroup
	for i := 0; i < 16; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			KeepHosts(prefix, &v1.Pod{}, nil, &extenderv1.HostPriorityList{{Host: "x"}})
		}()
	}
	done.Wait()
	expectCounted(t, label, "prioritize", 16)
}

func TestURLsAreShownWithoutCredentials(t *testing.T) {
	for prefix, want := range map[string]string{
		"http://user:secret@example.com:80/a": "http://example.com:80/a",
		"https://example.com":                 "https://example.com",
		"http://user:sec ret@example.com":     "(not a URL)",
	} {
		if got := WithoutCredentials(prefix); got != want {
			t.Errorf("%s is shown as %s, want %s", prefix, got, want)
		}
	}
}
