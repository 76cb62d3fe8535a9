// SPDX-License-Identifier: Apache-2.0

package interpodaffinity

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	plugintesting "k8s.io/kubernetes/pkg/scheduler/framework/plugins/testing"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
)

// generator creates random objects that often match each other.
type generator struct {
	*rand.Rand
	made int
}

func (g *generator) one(values ...string) string { return values[g.Intn(len(values))] }

func (g *generator) node(i int) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
	if g.Intn(8) > 0 {
		node.Labels = map[string]string{"zone": g.one("a", "b", "c"), "host": node.Name}
		if g.Intn(3) == 0 {
			delete(node.Labels, g.one("zone", "host"))
		}
		if g.Intn(2) == 0 {
			node.Labels["rack"] = g.one("", "1")
		}
	}
	return node
}

func (g *generator) selector() *metav1.LabelSelector {
	switch g.Intn(7) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		operator := metav1.LabelSelectorOperator(g.one("Exists", "DoesNotExist"))
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: g.one("app", "tier"), Operator: operator},
		}}
	case 3:
		operator := metav1.LabelSelectorOperator(g.one("In", "NotIn"))
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: operator, Values: []string{g.one("x", "y"), g.one("", "y", "z")}},
		}}
	case 4:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": g.one("x", "y"), "tier": g.one("", "1")}}
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{g.one("app", "tier"): g.one("", "x", "1")}}
	}
}

func (g *generator) terms() (terms []v1.PodAffinityTerm) {
	for n := []int{0, 0, 1, 1, 2, 3}[g.Intn(6)]; n > 0; n-- {
		term := v1.PodAffinityTerm{TopologyKey: g.one("zone", "host", "rack", "none"), LabelSelector: g.selector()}
		for n := g.Intn(3); n > 0; n-- {
			term.Namespaces = append(term.Namespaces, g.one("red", "blue", "unknown"))
		}
		switch g.Intn(4) {
		case 0:
			term.NamespaceSelector = &metav1.LabelSelector{}
		case 1:
			color := g.one("red", "blue")
			term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"color": color}}
		}
		terms = append(terms, term)
	}
	return terms
}

func (g *generator) weighted() (terms []v1.WeightedPodAffinityTerm) {
	for _, term := range g.terms() {
		terms = append(terms, v1.WeightedPodAffinityTerm{Weight: int32(1 + g.Intn(2)), PodAffinityTerm: term})
	}
	return terms
}

func (g *generator) pod() *v1.Pod {
	g.made++
	name := fmt.Sprintf("pod-%d", g.made)
	namespace := g.one("red", "blue", "unknown")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Namespace: namespace}}
	pod.Labels = map[string]string{"app": g.one("x", "y", "z"), "tier": g.one("", "1")}
	if g.Intn(3) == 0 {
		delete(pod.Labels, g.one("app", "tier"))
	}
	if g.Intn(3) == 0 {
		return pod
	}
	pod.Spec.Affinity = &v1.Affinity{}
	if g.Intn(3) > 0 {
		pod.Spec.Affinity.PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  g.terms(),
			PreferredDuringSchedulingIgnoredDuringExecution: g.weighted(),
		}
	}
	if g.Intn(3) > 0 {
		pod.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  g.terms(),
			PreferredDuringSchedulingIgnoredDuringExecution: g.weighted(),
		}
	}
	return pod
}

// TestIndex changes a cluster at random, and compares the plugin's results with a scan of all pods.
func TestIndex(t *testing.T) {
	for seed := int64(1); seed <= 24; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testIndex(t, &generator{Rand: rand.New(rand.NewSource(seed))}) })
	}
}

func testIndex(t *testing.T, g *generator) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	known := cache.New(time.Hour, ctx.Done())
	snapshot := cache.NewEmptySnapshot()
	var namespaces []runtime.Object
	for _, name := range []string{"red", "blue"} {
		namespaces = append(namespaces, &v1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"color": name}},
		})
	}
	args := &config.InterPodAffinityArgs{HardPodAffinityWeight: int32(g.Intn(3))}
	features := feature.Features{EnablePodAffinityNamespaceSelector: g.Intn(4) > 0}
	factory := frameworkruntime.FactoryAdapter(features, New)
	pl := plugintesting.SetupPluginWithInformers(ctx, t, factory, args, snapshot, namespaces).(*InterPodAffinity)

	nodes := make(map[int]*v1.Node)
	var pods []*v1.Pod
	remove := func(i int) {
		if err := known.RemovePod(pods[i]); err != nil {
			t.Fatal(err)
		}
		pods = append(pods[:i], pods[i+1:]...)
	}
	for step := 0; step < 60; step++ {
		changes := g.Intn(4)
		if step == 0 {
			changes = 400
		}
		for ; changes >= 0; changes-- {
			i := g.Intn(2 * podindex.MinNodes)
			node := nodes[i]
			switch what := g.Intn(10); {
			case node == nil:
				nodes[i] = g.node(i)
				known.AddNode(nodes[i])
			case what == 0:
				if err := known.RemoveNode(node); err != nil {
					t.Fatal(err)
				}
				delete(nodes, i)
			case what == 1:
				nodes[i] = g.node(i)
				known.UpdateNode(node, nodes[i])
			case what < 4 && len(pods) > 0:
				remove(g.Intn(len(pods)))
			case what == 4 && len(pods) > 0:
				i := g.Intn(len(pods))
				updated := pods[i].DeepCopy()
				updated.Labels = g.pod().Labels
				if err := known.UpdatePod(pods[i], updated); err != nil {
					t.Fatal(err)
				}
				pods[i] = updated
			default:
				pod := g.pod()
				pod.Spec.NodeName = node.Name
				if err := known.AddPod(pod); err != nil {
					t.Fatal(err)
				}
				pods = append(pods, pod)
			}
		}
		if err := known.UpdateSnapshot(snapshot); err != nil {
			t.Fatal(err)
		}
		if g.Intn(3) > 0 {
			compare(ctx, t, pl, g.pod())
		}
		if mismatches := pl.CompareCache(known.Dump().Nodes); len(mismatches) > 0 {
			t.Error(mismatches)
		}
		if t.Failed() {
			t.Fatalf("at step %d", step)
		}
	}
}

func newPlugin(t *testing.T, snapshot *cache.Snapshot) *InterPodAffinity {
	t.Helper()
	factory := frameworkruntime.FactoryAdapter(feature.Features{}, New)
	return plugintesting.SetupPlugin(t, factory, &config.InterPodAffinityArgs{}, snapshot).(*InterPodAffinity)
}

// compare compares the plugin's results for a pod with upstream's code.
func compare(ctx context.Context, t *testing.T, pl *InterPodAffinity, pod *v1.Pod) {
	t.Helper()
	nodes, _ := pl.sharedLister.NodeInfos().List()
	if len(nodes) == 0 {
		return
	}
	state := framework.NewCycleState()
	if status := pl.PreFilter(ctx, state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	got, err := getPreFilterState(state)
	if err != nil {
		t.Fatal(err)
	}
	want := got.Clone().(*preFilterState)
	enabled := pl.enableNamespaceSelector
	want.existingAntiAffinityCounts = pl.getExistingAntiAffinityCounts(pod, want.namespaceLabels, nodes, enabled)
	want.affinityCounts, want.antiAffinityCounts =
		pl.getIncomingAffinityAntiAffinityCounts(want.podInfo, nodes, enabled)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("PreFilter of %v:\n%v\n%v", pod, got, want)
	}

	filter := pl.PrepareFilter(state, pod)
	for _, node := range nodes {
		want := pl.Filter(ctx, state, pod, node)
		var got *framework.Status
		if filter != nil {
			got = filter(node)
		}
		if !got.Equal(want) || (got != nil && got.FailedPlugin() != Name) {
			t.Errorf("Filter of %v on %v: %v, want %v", pod, node, got, want)
		}
		if filter != nil {
			if got := filter(node.Clone()); !got.Equal(want) || (got != nil && got.FailedPlugin() != Name) {
				t.Errorf("Filter of %v on a copy of %v: %v, want %v", pod, node, got, want)
			}
		}
	}

	var asked []*v1.Node
	for _, node := range nodes {
		asked = append(asked, node.Node())
	}
	if status := pl.PreScore(ctx, state, pod, asked); !status.IsSuccess() {
		t.Fatal(status)
	}
	scored, err := getPreScoreState(state)
	if err != nil {
		t.Fatal(err)
	}
	sum := make(scoreMap)
	for _, node := range nodes {
		for _, existing := range node.Pods {
			pl.processExistingPod(scored, existing, node, pod, sum)
		}
	}
	stock := &preScoreState{topologyScore: sum}
	scores := make(framework.NodeScoreList, len(nodes))
	for i := range scores {
		// They may contain earlier scores.
		scores[i].Score = 17
	}
	if status := pl.ScoreNodes(state, pod, nodes, scores); !status.IsSuccess() {
		t.Fatal(status)
	}
	copies := make(framework.NodeScoreList, len(nodes))
	for i, node := range nodes {
		clone := []*framework.NodeInfo{node.Clone()}
		if status := pl.ScoreNodes(state, pod, clone, copies[i:i+1]); !status.IsSuccess() {
			t.Fatal(status)
		}
		want, status := pl.Score(ctx, state, pod, node.Node().Name)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		if sum := stock.score(node); want != sum || scores[i].Score != sum || copies[i].Score != sum {
			t.Errorf("the score of %v on %v: %d and %d, on a copy %d, want %d",
				pod, node, scores[i].Score, want, copies[i].Score, sum)
		}
	}
}

func TestPrepareFilterSkipsPods(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"host": "node"}}}
	running := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "running", UID: "running", Namespace: "red"}}
	running.Spec.NodeName = node.Name
	running.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: "host", LabelSelector: &metav1.LabelSelector{}},
		},
	}}
	other := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	snapshot := cache.NewSnapshot([]*v1.Pod{running}, []*v1.Node{node, other})
	pl := newPlugin(t, snapshot)
	for namespace, rejects := range map[string]bool{"red": true, "blue": false} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: namespace}}
		state := framework.NewCycleState()
		if filter := pl.PrepareFilter(state, pod); filter == nil {
			t.Error("without PreFilter, PrepareFilter passes all nodes")
		} else if info, err := snapshot.Get("node"); err != nil || filter(info).Code() != framework.Error {
			t.Errorf("without PreFilter: %v, %v", filter(info), err)
		}
		if status := pl.PreFilter(context.Background(), state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		if got := pl.PrepareFilter(state, pod) != nil; got != rejects {
			t.Errorf("in the namespace %s: a node may be rejected: %v", namespace, got)
		}
		compare(context.Background(), t, pl, pod)
	}
}
