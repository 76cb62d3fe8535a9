// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// named returns a requirement on a node's name.
func named(operator v1.NodeSelectorOperator, names ...string) v1.NodeSelectorRequirement {
	return v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: operator, Values: names}
}

func termOf(fields ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: fields}
}

func pinnedPod(terms ...v1.NodeSelectorTerm) *v1.Pod {
	pod := st.MakePod().Name("p").UID("p").Obj()
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms},
	}}
	return pod
}

func TestPinnedNodeName(t *testing.T) {
	in := func(names ...string) v1.NodeSelectorTerm { return termOf(named(v1.NodeSelectorOpIn, names...)) }
	both := in("a")
	both.MatchExpressions = []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpExists}}
	for name, test := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"no affinity":                 {st.MakePod().Obj(), ""},
		"no terms":                    {pinnedPod(), ""},
		"a node":                      {pinnedPod(in("a")), "a"},
		"a node with a label":         {pinnedPod(both), "a"},
		"the same node twice":         {pinnedPod(in("a"), both), "a"},
		"two nodes":                   {pinnedPod(in("a", "b")), ""},
		"a node or another one":       {pinnedPod(in("a"), in("b")), ""},
		"a node or what has a label":  {pinnedPod(in("a"), v1.NodeSelectorTerm{MatchExpressions: both.MatchExpressions}), ""},
		"what has a label, or a node": {pinnedPod(v1.NodeSelectorTerm{MatchExpressions: both.MatchExpressions}, in("a")), ""},
		"all nodes but one":           {pinnedPod(termOf(named(v1.NodeSelectorOpNotIn, "a"))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pinnedNodeName(test.pod); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFindNodesThatFitPinnedPod(t *testing.T) {
	metrics.Register()
	toB := termOf(named(v1.NodeSelectorOpIn, "b"))
	for name, test := range map[string]struct {
		pod        *v1.Pod
		plugins    []string // filter plugins; NodeAffinity and Fake if nil
		rejects    map[string]framework.Code
		extender   *st.FakeExtender
		want       []string
		wantCalled int32 // of Fake
		wantStatus int   // nodes with a status in the diagnosis
	}{
		"its node fits": {pod: pinnedPod(toB), want: []string{"b"}, wantCalled: 1},
		"its node does not fit, and all nodes say why": {
			pod: pinnedPod(toB), rejects: map[string]framework.Code{"b": framework.Unschedulable}, wantCalled: 2, wantStatus: 3,
		},
		"its node is not there":    {pod: pinnedPod(termOf(named(v1.NodeSelectorOpIn, "z"))), wantStatus: 3},
		"two requirements clash":   {pod: pinnedPod(termOf(named(v1.NodeSelectorOpIn, "a"), named(v1.NodeSelectorOpIn, "b"))), wantStatus: 3},
		"no filter by affinity":    {pod: pinnedPod(toB), plugins: []string{"Fake"}, want: []string{"a", "b", "c"}, wantCalled: 3},
		"an extender is asked":     {pod: pinnedPod(toB), extender: &st.FakeExtender{Predicates: []st.FitPredicate{st.TruePredicateExtender}}, want: []string{"b"}, wantCalled: 1, wantStatus: 2},
		"an extender is not asked": {pod: pinnedPod(toB), extender: &st.FakeExtender{UnInterested: true}, want: []string{"b"}, wantCalled: 1},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &st.FakeFilterPlugin{FailedNodeReturnCodeMap: test.rejects}
			plugins := []st.RegisterPluginFunc{
				st.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
				st.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
			}
			if test.plugins == nil {
				plugins = append(plugins, st.RegisterFilterPlugin(nodeaffinity.Name, nodeaffinity.New))
			}
			plugins = append(plugins, st.RegisterFilterPlugin("Fake", func(runtime.Object, framework.Handle) (framework.Plugin, error) { return fake, nil }))
			fwk, err := st.NewFramework(plugins, "", frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(nil)))
			if err != nil {
				t.Fatal(err)
			}
			g := makeScheduler(makeNodeList([]string{"a", "b", "c"}))
			g.nextStartNodeIndex = 2
			var extenders []framework.Extender
			if test.extender != nil {
				extenders = append(extenders, test.extender)
			}
			measured := func() uint64 {
				t.Helper()
				count, err := testutil.GetHistogramMetricCount(metrics.FrameworkExtensionPointDuration.WithLabelValues(frameworkruntime.Filter, "Success", ""))
				if err != nil {
					t.Fatal(err)
				}
				return count
			}
			before := measured()
			nodes, diagnosis, err := g.findNodesThatFitPod(context.Background(), extenders, fwk, framework.NewCycleState(), test.pod)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, node := range nodes {
				got[node.Name] = true
			}
			for _, name := range test.want {
				if !got[name] {
					t.Errorf("plugin %s not found", name)
				}
			}
			if len(nodes) != len(test.want) || fake.NumFilterCalled != test.wantCalled || len(diagnosis.NodeToStatusMap) != test.wantStatus {
				t.Errorf("%d nodes, %d calls, %d statuses; want %d, %d, %d",
					len(nodes), fake.NumFilterCalled, len(diagnosis.NodeToStatusMap), len(test.want), test.wantCalled, test.wantStatus)
			}
			if n := measured() - before; n != 1 {
				t.Errorf("filtering is measured %d times, want once", n)
			}
			if g.nextStartNodeIndex != 2 {
				t.Errorf("the next search begins at %d, want 2, where a search over all nodes ends", g.nextStartNodeIndex)
			}
		})
	}
}
