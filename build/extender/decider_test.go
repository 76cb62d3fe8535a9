// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// modes are the two ways in which a scheduler sends nodes.
var modes = map[string]func(nodes ...*corev1.Node) *extenderv1.ExtenderArgs{
	"whole nodes": func(nodes ...*corev1.Node) *extenderv1.ExtenderArgs {
		list := &corev1.NodeList{}
		for _, node := range nodes {
			list.Items = append(list.Items, *node)
		}
		return &extenderv1.ExtenderArgs{Pod: newPod(), Nodes: list}
	},
	"names": func(nodes ...*corev1.Node) *extenderv1.ExtenderArgs {
		names := []string{}
		for _, node := range nodes {
			names = append(names, node.Name)
		}
		return &extenderv1.ExtenderArgs{Pod: newPod(), NodeNames: &names}
	},
}

func objects(nodes []*corev1.Node, pods ...*corev1.Pod) []runtime.Object {
	var objects []runtime.Object
	for _, node := range nodes {
		objects = append(objects, node)
	}
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	return objects
}

// passed gives the names of the nodes that an answer lets the pod onto.
func passed(t testing.TB, mode string, result extenderv1.ExtenderFilterResult) []string {
	t.Helper()
	if result.Error != "" {
		t.Fatalf("error: %s", result.Error)
	}
	names := []string{}
	switch {
	case mode == "names" && result.Nodes == nil && result.NodeNames != nil:
		names = append(names, *result.NodeNames...)
	case mode != "names" && result.Nodes != nil && result.NodeNames == nil:
		for i := range result.Nodes.Items {
			names = append(names, result.Nodes.Items[i].Name)
		}
	default:
		t.Fatalf("%s were sent, and the answer has nodes %v, names %v", mode, result.Nodes, result.NodeNames)
	}
	return names
}

func TestFilterCountsThePodsThatRunOnTheNodes(t *testing.T) {
	ended := onNode("ended", "free")
	ended.Status.Phase = corev1.PodSucceeded
	nodes := []*corev1.Node{diskNode("taken", "ssd"), diskNode("free", "ssd")}
	for mode, args := range modes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, enabling("name: Alone"), generous, objects(nodes, onNode("there", "taken"), ended)...)
			var result extenderv1.ExtenderFilterResult
			f.post(t, "filter", args(nodes...), &result)
			if got := passed(t, mode, result); !slices.Equal(got, []string{"free"}) {
				t.Errorf("passed %v", got)
			}
			// It could be helped by preemption, so it is not among the unresolvable.
			if !strings.HasPrefix(result.FailedNodes["taken"], "1 pods are there") || len(result.FailedAndUnresolvableNodes) != 0 {
				t.Errorf("failed %v, unresolvable %v", result.FailedNodes, result.FailedAndUnresolvableNodes)
			}
		})
	}
}

// TestWholeNodesCountMoreThanKnownOnes sends a node that differs from the one that is watched, and one that is not
// known.
func TestWholeNodesCountMoreThanKnownOnes(t *testing.T) {
	f := newFixture(t, byDiskType, generous, bareNode("known"))
	var result extenderv1.ExtenderFilterResult
	f.post(t, "filter", modes["whole nodes"](diskNode("known", "hdd"), diskNode("new", "ssd")), &result)
	if got := passed(t, "whole nodes", result); !slices.Equal(got, []string{"known", "new"}) {
		t.Errorf("passed %v", got)
	}
	var scores extenderv1.HostPriorityList
	f.post(t, "prioritize", modes["whole nodes"](diskNode("known", "hdd"), diskNode("new", "ssd")), &scores)
	if want := (extenderv1.HostPriorityList{{Host: "known", Score: 5}, {Host: "new", Score: 10}}); !reflect.DeepEqual(scores, want) {
		t.Errorf("scores %v, want %v", scores, want)
	}
}

func TestNamesThatAreNotKnown(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("known", "ssd"))
	args := modes["names"](diskNode("known", "ssd"), diskNode("stranger", "ssd"))
	var result extenderv1.ExtenderFilterResult
	f.post(t, "filter", args, &result)
	if got := passed(t, "names", result); !slices.Equal(got, []string{"known"}) {
		t.Errorf("passed %v", got)
	}
	if !strings.Contains(result.FailedNodes["stranger"], "not known to the extender") || len(result.FailedAndUnresolvableNodes) != 0 {
		t.Errorf("failed %v, unresolvable %v", result.FailedNodes, result.FailedAndUnresolvableNodes)
	}
	// There is no score for what is not known, so there is none at all.
	var failure errorBody
	if status := f.post(t, "prioritize", args, &failure); status != 500 || !strings.Contains(failure.Error, "stranger") {
		t.Errorf("prioritize: status %d, error %q", status, failure.Error)
	}
}

func TestNoNodesInNoNodesOut(t *testing.T) {
	for mode, args := range modes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, byDiskType, generous, diskNode("known", "ssd"))
			var result extenderv1.ExtenderFilterResult
			f.post(t, "filter", args(), &result)
			if got := passed(t, mode, result); len(got) != 0 {
				t.Errorf("passed %v", got)
			}
			var scores extenderv1.HostPriorityList
			if status := f.post(t, "prioritize", args(), &scores); status != http.StatusOK || scores == nil || len(scores) != 0 {
				t.Errorf("status %d, scores %#v", status, scores)
			}
		})
	}
}

func TestPodThatIsRefusedAsSuch(t *testing.T) {
	nodes := []*corev1.Node{diskNode("a", "ssd"), diskNode("b", "ssd")}
	for mode, args := range modes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, enabling("name: Refusing"), generous, objects(nodes)...)
			var result extenderv1.ExtenderFilterResult
			f.post(t, "filter", args(nodes...), &result)
			if got := passed(t, mode, result); len(got) != 0 {
				t.Errorf("passed %v", got)
			}
			want := extenderv1.FailedNodesMap{"a": "not this pod", "b": "not this pod"}
			if !reflect.DeepEqual(result.FailedAndUnresolvableNodes, want) {
				t.Errorf("unresolvable %v", result.FailedAndUnresolvableNodes)
			}
		})
	}
}

// TestNodesGoBackAsTheyCame sends a node with what this release does not know, and with what Go's encoder would escape.
func TestNodesGoBackAsTheyCame(t *testing.T) {
	f := newFixture(t, byDiskType, generous)
	node := `{"metadata":{"name":"a","labels":{"disktype":"ssd"},"annotations":{"x":"<&>"}},"spec":{"later":[1.50]}}`
	var result struct {
		Nodes struct{ Items []json.RawMessage }
	}
	f.post(t, "filter", `{"Pod":`+podJSON+`,"Nodes":{"items":[`+node+`]}}`, &result)
	if len(result.Nodes.Items) != 1 || string(result.Nodes.Items[0]) != node {
		t.Errorf("got %s, want %s", result.Nodes.Items, node)
	}
}

func TestScoresAreWeightedMeansFrom0To10(t *testing.T) {
	node := func(name, score, other string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"score": score, "other": other}}}
	}
	for name, test := range map[string]struct {
		plugins []string
		want    map[*corev1.Node]int64
	}{
		"one plugin, rounded from the middle up": {
			[]string{"{name: Labelled, weight: 7}"},
			map[*corev1.Node]int64{
				node("0", "0", "0"): 0, node("4", "4", "0"): 0, node("5", "5", "0"): 1,
				node("94", "94", "0"): 9, node("95", "95", "0"): 10, node("100", "100", "0"): 10,
			},
		},
		"two, by their weights": {
			[]string{"{name: Labelled, weight: 3}", "{name: Other}"}, // no weight is 1
			// (3 × 100 + 1 × 0) ÷ 4 = 75, (3 × 0 + 1 × 100) ÷ 4 = 25, (3 × 40 + 1 × 20) ÷ 4 = 35, (3 × 30 + 1 × 46) ÷ 4
			// = 34
			map[*corev1.Node]int64{
				node("75", "100", "0"): 8, node("25", "0", "100"): 3, node("35", "40", "20"): 4, node("34", "30", "46"): 3,
			},
		},
		"none": {
			[]string{"name: Alone"},
			map[*corev1.Node]int64{node("any", "100", "100"): 0, node("other", "0", "0"): 0},
		},
		"none that counts": {
			[]string{"{name: MyScorePlugin, weight: 2}"},
			map[*corev1.Node]int64{node("any", "100", "100"): 0},
		},
	} {
		for mode, args := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				var nodes []*corev1.Node
				want := map[string]int64{}
				for node, score := range test.want {
					nodes, want[node.Name] = append(nodes, node), score
				}
				f := newFixture(t, enabling(test.plugins...), generous, objects(nodes)...)
				var scores extenderv1.HostPriorityList
				if status := f.post(t, "prioritize", args(nodes...), &scores); status != http.StatusOK {
					t.Fatalf("status %d", status)
				}
				got := map[string]int64{}
				for i, score := range scores {
					got[score.Host] = score.Score
					if score.Host != nodes[i].Name {
						t.Errorf("place %d is of %s, not of %s", i, score.Host, nodes[i].Name)
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		}
	}
}

// TestPreempt asks in both forms about a node that is free without its pods, one that is not, and one that is unknown.
func TestPreempt(t *testing.T) {
	nodes := []*corev1.Node{diskNode("freed", "ssd"), diskNode("crowded", "ssd")}
	pods := []*corev1.Pod{
		onNode("freed-1", "freed"), onNode("freed-2", "freed"), onNode("crowded-1", "crowded"), onNode("crowded-2", "crowded"),
	}
	for name, args := range map[string]*extenderv1.ExtenderPreemptionArgs{
		"meta victims": {Pod: newPod(), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
			"freed":    {Pods: []*extenderv1.MetaPod{{UID: "freed-2"}, {UID: "freed-1"}}, NumPDBViolations: 1},
			"crowded":  {Pods: []*extenderv1.MetaPod{{UID: "crowded-1"}}},
			"stranger": {Pods: []*extenderv1.MetaPod{{UID: "x"}}},
		}},
		"whole victims": {Pod: newPod(), NodeNameToVictims: map[string]*extenderv1.Victims{
			"freed":    {Pods: []*corev1.Pod{pods[1], pods[0]}, NumPDBViolations: 1},
			"crowded":  {Pods: []*corev1.Pod{pods[2]}},
			"stranger": {Pods: []*corev1.Pod{onNode("x", "stranger")}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, enabling("name: Alone"), generous, objects(nodes, pods...)...)
			var result extenderv1.ExtenderPreemptionResult
			if status := f.post(t, "preempt", args, &result); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			// All victims, in the order in which they came.
			want := map[string]*extenderv1.MetaVictims{
				"freed": {Pods: []*extenderv1.MetaPod{{UID: "freed-2"}, {UID: "freed-1"}}, NumPDBViolations: 1},
			}
			if !reflect.DeepEqual(result.NodeNameToMetaVictims, want) {
				t.Errorf("got %+v, want %+v", result.NodeNameToMetaVictims, want)
			}
			// The pods were gone for that question only.
			var after extenderv1.ExtenderFilterResult
			f.post(t, "filter", modes["names"](nodes...), &after)
			if got := passed(t, "names", after); len(got) != 0 {
				t.Errorf("passed %v", got)
			}
		})
	}
}

// TestPreemptLeavesOutNodesWithUnknownVictims, which may just have ended, or have been placed a moment ago.
func TestPreemptLeavesOutNodesWithUnknownVictims(t *testing.T) {
	nodes := []*corev1.Node{diskNode("a", "ssd"), diskNode("b", "ssd")}
	f := newFixture(t, enabling("name: Alone"), generous, objects(nodes, onNode("on-a", "a"), onNode("on-b", "b"))...)
	for name, victim := range map[string]string{"unknown": "x", "on another node": "on-a"} {
		var result extenderv1.ExtenderPreemptionResult
		status := f.post(t, "preempt", &extenderv1.ExtenderPreemptionArgs{Pod: newPod(), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
			"a": {Pods: []*extenderv1.MetaPod{{UID: "on-a"}}}, "b": {Pods: []*extenderv1.MetaPod{{UID: victim}}},
		}}, &result)
		if status != http.StatusOK || len(result.NodeNameToMetaVictims) != 1 || result.NodeNameToMetaVictims["a"] == nil {
			t.Errorf("%s: status %d, %+v, want node a alone", name, status, result)
		}
	}
}

func TestPreemptForPodThatIsRefusedAsSuch(t *testing.T) {
	f := newFixture(t, enabling("name: Refusing"), generous, diskNode("a", "ssd"), onNode("on-a", "a"))
	var result extenderv1.ExtenderPreemptionResult
	status := f.post(t, "preempt", &extenderv1.ExtenderPreemptionArgs{Pod: newPod(), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
		"a": {Pods: []*extenderv1.MetaPod{{UID: "on-a"}}},
	}}, &result)
	if status != http.StatusOK || result.NodeNameToMetaVictims == nil || len(result.NodeNameToMetaVictims) != 0 {
		t.Errorf("status %d, %+v", status, result)
	}
}

// TestPluginsSeeTheWholeCluster looks at the snapshot after a question about one of three nodes.
func TestPluginsSeeTheWholeCluster(t *testing.T) {
	nodes := []*corev1.Node{diskNode("c", "ssd"), diskNode("b", "ssd"), diskNode("a", "ssd")}
	f := newFixture(t, byDiskType, generous, objects(nodes, onNode("on-a", "a"))...)
	lister := f.decider.framework.SnapshotSharedLister().NodeInfos
	if before, err := lister().List(); err != nil || len(before) != 0 {
		t.Errorf("before the first question: %v, %v", before, err)
	}
	f.post(t, "filter", modes["whole nodes"](diskNode("b", "changed")), &extenderv1.ExtenderFilterResult{})
	all, err := lister().List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range all {
		names = append(names, info.Node().Name)
	}
	if want := []string{"b", "a", "c"}; !slices.Equal(names, want) {
		t.Errorf("nodes %v, want the one in question and then the others: %v", names, want)
	}
	if all[0].Node().Labels["disktype"] != "changed" || len(all[1].Pods) != 1 {
		t.Errorf("labels %v, pods %v", all[0].Node().Labels, all[1].Pods)
	}
	if info, err := lister().Get("a"); err != nil || info != all[1] {
		t.Errorf("a is %v, %v", info, err)
	}
	if _, err := lister().Get("stranger"); err == nil {
		t.Error("a stranger is there")
	}
}

// TestAnswersNameOnlyWhatWasAsked asks many questions at once; each answer is about its own nodes.
func TestAnswersNameOnlyWhatWasAsked(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 40 {
		nodes = append(nodes, diskNode(fmt.Sprintf("node-%d", i), []string{"ssd", "hdd"}[i%2]))
	}
	f := newFixture(t, byDiskType, generous, objects(nodes)...)
	var group sync.WaitGroup
	for i := range 16 {
		for mode, args := range modes {
			group.Go(func() {
				asked := nodes[i : i+10]
				names := sets.NewString()
				for _, node := range asked {
					names.Insert(node.Name)
				}
				var result extenderv1.ExtenderFilterResult
				f.post(t, "filter", args(asked...), &result)
				if got := sets.NewString(passed(t, mode, result)...); !got.Equal(names) {
					t.Errorf("asked about %v, got %v", names.List(), got.List())
				}
				var scores extenderv1.HostPriorityList
				f.post(t, "prioritize", args(asked...), &scores)
				for j, score := range scores {
					if want := []int64{10, 5}[(i+j)%2]; score.Host != asked[j].Name || score.Score != want {
						t.Errorf("%s scores %+v, want %d", asked[j].Name, score, want)
					}
				}
			})
		}
	}
	group.Wait()
}
