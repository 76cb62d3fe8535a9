// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// modes are the two ways in which a scheduler sends nodes. The tests use upstream's client where they can.
var modes = []string{"whole nodes", "names"}

func args(mode string, nodes ...*corev1.Node) *extenderv1.ExtenderArgs {
	list, names := &corev1.NodeList{}, []string{}
	for _, node := range nodes {
		list.Items, names = append(list.Items, *node), append(names, node.Name)
	}
	if mode == "names" {
		return &extenderv1.ExtenderArgs{Pod: newPod(), NodeNames: &names}
	}
	return &extenderv1.ExtenderArgs{Pod: newPod(), Nodes: list}
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

func namesOf(nodes []*corev1.Node) []string {
	names := []string{}
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return names
}

func TestFilter(t *testing.T) {
	ssd, hdd, bare := diskNode("ssd", "ssd"), diskNode("hdd", "hdd"), bareNode("bare")
	none := extenderv1.FailedNodesMap{}
	for name, test := range map[string]struct {
		configuration        string
		passed               []string
		failed, unresolvable extenderv1.FailedNodesMap
	}{
		"by a label of the nodes": {byDiskType, []string{"ssd", "hdd"}, none,
			extenderv1.FailedNodesMap{"bare": `node(s) didn't have the label "disktype"`}},
		// Preemption could help, so it is not among the unresolvable.
		"by the pods on the nodes": {enabling("name: Alone"), []string{"hdd", "bare"},
			extenderv1.FailedNodesMap{"ssd": "1 pods are there"}, none},
	} {
		for _, mode := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				nodes := []*corev1.Node{ssd, hdd, bare}
				f := newFixture(t, test.configuration, generous, objects(nodes, onNode("there", "ssd"))...)
				client := upstreamsClient(t, extenderConfig(f.url, in(mode)))
				passed, failed, unresolvable, err := client.Filter(newPod(), nodes)
				if err != nil || !slices.Equal(namesOf(passed), test.passed) ||
					!reflect.DeepEqual(failed, test.failed) || !reflect.DeepEqual(unresolvable, test.unresolvable) {
					t.Errorf("passed %v, failed %v, unresolvable %v, %v", namesOf(passed), failed, unresolvable, err)
				}
				if passed, _, _, err := client.Filter(newPod(), nil); err != nil || len(passed) != 0 {
					t.Errorf("no nodes: %v, %v", passed, err)
				}
			})
		}
	}
}

func TestWholeNodesReplaceWatchedOnes(t *testing.T) {
	f := newFixture(t, byDiskType, generous, bareNode("known"))
	client := upstreamsClient(t, extenderConfig(f.url, in("whole nodes")))
	scores, _, err := client.Prioritize(newPod(), []*corev1.Node{diskNode("known", "hdd"), diskNode("new", "ssd")})
	if want := (extenderv1.HostPriorityList{{Host: "known", Score: 5}, {Host: "new", Score: 10}}); err != nil || !reflect.DeepEqual(*scores, want) {
		t.Errorf("scores %v, %v, want %v", scores, err, want)
	}
}

func TestUnknownNames(t *testing.T) {
	nodes := []*corev1.Node{diskNode("known", "ssd"), diskNode("stranger", "ssd")}
	f := newFixture(t, byDiskType, generous, nodes[0])
	passed, failed, unresolvable, err := upstreamsClient(t, extenderConfig(f.url, in("names"))).Filter(newPod(), nodes)
	if err != nil || !slices.Equal(namesOf(passed), []string{"known"}) || len(unresolvable) != 0 ||
		failed["stranger"] != "node(s) not known to the extender (yet)" {
		t.Errorf("passed %v, failed %v, unresolvable %v, %v", namesOf(passed), failed, unresolvable, err)
	}
	// Without a score for the unknown node there is none for any.
	if text := checkFailure(t, f, "prioritize", args("names", nodes...), 500); !strings.Contains(text, "stranger") {
		t.Errorf("prioritize: %q", text)
	}
}

// TestFilterResultIsUpstreams fails when upstream's type has a field that ours does not.
func TestFilterResultIsUpstreams(t *testing.T) {
	ours, upstreams := reflect.TypeOf(filterResult{}), reflect.TypeOf(extenderv1.ExtenderFilterResult{})
	for i := range upstreams.NumField() {
		if name := upstreams.Field(i).Name; ours.NumField() != upstreams.NumField() || ours.Field(i).Name != name {
			t.Errorf("field %d is not %s", i, name)
		}
	}
}

// TestNodesAreReturnedByteForByte sends a field that this release does not know, and text that Go's encoder would escape.
func TestNodesAreReturnedByteForByte(t *testing.T) {
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
	for name, test := range map[string]struct {
		plugins []string
		// scores are those of Labelled and Other, and the expected one.
		scores [][3]int64
	}{
		"one plugin, rounded half up": {
			[]string{"{name: Labelled, weight: 7}"},
			[][3]int64{{0, 0, 0}, {4, 0, 0}, {5, 0, 1}, {94, 0, 9}, {95, 0, 10}, {100, 0, 10}},
		},
		"two, by their weights": {
			[]string{"{name: Labelled, weight: 3}", "{name: Other}"}, // no weight is 1
			// (3 × 100 + 1 × 0) ÷ 4 = 75, (3 × 0 + 1 × 100) ÷ 4 = 25, (3 × 40 + 1 × 20) ÷ 4 = 35, (3 × 30 + 1 × 46) ÷ 4
			// = 34
			[][3]int64{{100, 0, 8}, {0, 100, 3}, {40, 20, 4}, {30, 46, 3}},
		},
		"none": {[]string{"name: Alone"}, [][3]int64{{100, 100, 0}, {0, 0, 0}}},
	} {
		for _, mode := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				var nodes []*corev1.Node
				var want extenderv1.HostPriorityList
				for i, scores := range test.scores {
					name := fmt.Sprint("node-", i)
					nodes = append(nodes, st.MakeNode().Name(name).
						Label("score", fmt.Sprint(scores[0])).Label("other", fmt.Sprint(scores[1])).Obj())
					want = append(want, extenderv1.HostPriority{Host: name, Score: scores[2]})
				}
				f := newFixture(t, enabling(test.plugins...), generous, objects(nodes)...)
				got, weight, err := upstreamsClient(t, extenderConfig(f.url, in(mode))).Prioritize(newPod(), nodes)
				if err != nil || weight != 25 || !reflect.DeepEqual(*got, want) {
					t.Errorf("got %v, weight %d, %v, want %v", got, weight, err, want)
				}
			})
		}
	}
}

// TestPreempt sends a node that is free without its victims, one that is not, and others about which too little is known.
func TestPreempt(t *testing.T) {
	nodes := []*corev1.Node{bareNode("freed"), bareNode("crowded"), bareNode("moved"), bareNode("stranger")}
	pods := map[string]*corev1.Pod{}
	for name, node := range map[string]string{"f1": "freed", "f2": "freed", "c1": "crowded", "c2": "crowded", "m": "moved"} {
		pods[name] = onNode(name, node)
	}
	victims := map[string]*extenderv1.Victims{
		"freed":    {Pods: []*corev1.Pod{pods["f2"], pods["f1"]}, NumPDBViolations: 1},
		"crowded":  {Pods: []*corev1.Pod{pods["c1"]}},
		"moved":    {Pods: []*corev1.Pod{pods["c2"]}}, // on another node
		"stranger": {Pods: []*corev1.Pod{onNode("x", "stranger")}},
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, enabling("name: Alone"), generous, objects(nodes[:3], pods["f1"], pods["f2"], pods["c1"], pods["c2"], pods["m"])...)
			// What upstream's client looks up the victims in.
			if _, err := f.decider.cluster.look(nodes[:3]); err != nil {
				t.Fatal(err)
			}
			client := upstreamsClient(t, extenderConfig(f.url, in(mode)))
			got, err := client.ProcessPreemption(newPod(), victims, f.decider.cluster.NodeInfos())
			// All victims, in the order in which they were sent.
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got["freed"].Pods, victims["freed"].Pods) {
				t.Errorf("got %+v, %v", got, err)
			}
			// Upstream's client drops the number of violations (kubernetes#105853).
			var raw extenderv1.ExtenderPreemptionResult
			f.post(t, "preempt", &extenderv1.ExtenderPreemptionArgs{Pod: newPod(), NodeNameToVictims: victims}, &raw)
			if len(raw.NodeNameToMetaVictims) != 1 || raw.NodeNameToMetaVictims["freed"].NumPDBViolations != 1 {
				t.Errorf("got %+v", raw)
			}
			// The pods were removed for that request only.
			if passed, _, _, err := client.Filter(newPod(), nodes[:3]); err != nil || len(passed) != 0 {
				t.Errorf("passed %v, %v", passed, err)
			}
		})
	}
	rejecting := ofPlugin("PodFilter", "{rules: [{name: not-this, action: Deny, podNames: [incoming]}]}")
	f := newFixture(t, rejecting, generous, objects(nodes, pods["m"])...)
	client := upstreamsClient(t, extenderConfig(f.url, in("names")))
	if got, err := client.ProcessPreemption(newPod(), victims, nil); err != nil || len(got) != 0 {
		t.Errorf("a pod that PreFilter rejects: %v, %v", got, err)
	}
}

// TestPluginsSeeTheWholeCluster reads the snapshot after a request with one of three nodes.
func TestPluginsSeeTheWholeCluster(t *testing.T) {
	nodes := []*corev1.Node{diskNode("c", "ssd"), diskNode("b", "ssd"), diskNode("a", "ssd")}
	f := newFixture(t, byDiskType, generous, objects(nodes, onNode("on-a", "a"))...)
	f.post(t, "filter", args("whole nodes", diskNode("b", "changed")), &extenderv1.ExtenderFilterResult{})
	lister := f.decider.framework.SnapshotSharedLister().NodeInfos()
	all, err := lister.List()
	if err != nil || len(all) != 3 || all[0].Node().Labels["disktype"] != "changed" || all[1].Node().Name != "a" || len(all[1].Pods) != 1 {
		t.Fatalf("got %v, %v, want the node of the request, and then the others by name", all, err)
	}
	if info, err := lister.Get("a"); err != nil || info != all[1] {
		t.Errorf("a is %v, %v", info, err)
	}
	if _, err := lister.Get("stranger"); err == nil {
		t.Error("an unknown node is found")
	}
}

// TestConcurrentRequests checks that each response is about the nodes of its own request.
func TestConcurrentRequests(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 40 {
		nodes = append(nodes, diskNode(fmt.Sprint("node-", i), []string{"ssd", "hdd"}[i%2]))
	}
	f := newFixture(t, byDiskType, generous, objects(nodes)...)
	var group sync.WaitGroup
	for i := range 16 {
		for _, mode := range modes {
			group.Go(func() {
				asked := nodes[i : i+10]
				client := upstreamsClient(t, extenderConfig(f.url, in(mode)))
				if passed, _, _, err := client.Filter(newPod(), asked); err != nil || !slices.Equal(namesOf(passed), namesOf(asked)) {
					t.Errorf("sent %v, got %v, %v", namesOf(asked), namesOf(passed), err)
				}
				scores, _, err := client.Prioritize(newPod(), asked)
				for j, score := range *scores {
					if want := []int64{10, 5}[(i+j)%2]; err != nil || score.Host != asked[j].Name || score.Score != want {
						t.Errorf("%s scores %+v, %v, want %d", asked[j].Name, score, err, want)
					}
				}
			})
		}
	}
	group.Wait()
}
