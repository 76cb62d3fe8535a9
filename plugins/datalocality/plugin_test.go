// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// arguments are those of most tests: hosts, racks and zones, and all ways in which a node can hold data.
func arguments(change func(*config.DataLocalityArgs)) *config.DataLocalityArgs {
	args := &config.DataLocalityArgs{
		DatasetsAnnotation: pointer.String(annotationKey), NodeAnnotation: pointer.String(annotationKey), NodeLabelPrefix: "data/",
		Servers: []config.DataLocalityServer{{
			Namespaces: []string{"storage"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "datanode"}}, DatasetLabel: "dataset",
		}},
		Levels: []config.DataLocalityLevel{
			{TopologyKey: v1.LabelHostname, Percent: 100}, {TopologyKey: rackKey, Percent: 80}, {TopologyKey: v1.LabelTopologyZone, Percent: 50},
		},
	}
	if change != nil {
		change(args)
	}
	return args
}

// within has the filter require data in the same zone.
func within(args *config.DataLocalityArgs) { args.RequireWithin = v1.LabelTopologyZone }

func mustNew(t testing.TB, args *config.DataLocalityArgs, lister framework.SharedLister) *DataLocality {
	t.Helper()
	return plugintest.New(t, New, t.Name(), args, lister).(*DataLocality)
}

// reader makes a pod that reads data.
func reader(datasets string) *v1.Pod {
	pod := st.MakePod().Name("reader").UID("reader").Obj()
	pod.Annotations = map[string]string{annotationKey: datasets}
	return pod
}

// scoresOf calls the plugin as the framework does.
func scoresOf(t testing.TB, pl *DataLocality, pod *v1.Pod, nodes ...string) []int64 {
	t.Helper()
	ctx, state := context.Background(), framework.NewCycleState()
	for _, status := range []*framework.Status{pl.PreFilter(ctx, state, pod), pl.PreScore(ctx, state, pod, nil)} {
		if !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	var scores []int64
	for _, name := range nodes {
		score, status := pl.Score(ctx, state, pod, name)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		scores = append(scores, score)
	}
	at, infos := make(framework.NodeScoreList, len(nodes)), make([]*framework.NodeInfo, len(nodes))
	for i := range at {
		at[i] = framework.NodeScore{Name: nodes[i], Score: -1}
		var err error
		if infos[i], err = pl.handle.SnapshotSharedLister().NodeInfos().Get(nodes[i]); err != nil {
			t.Fatal(err)
		}
	}
	if status := pl.ScoreNodes(state, pod, infos, at); !status.IsSuccess() {
		t.Fatal(status)
	}
	for i := range at {
		if at[i].Score != scores[i] {
			t.Errorf("at once, %s scores %d, want %d", at[i].Name, at[i].Score, scores[i])
		}
	}
	return scores
}

// racks are four nodes in three racks and two zones: n1 and n2 in one rack, n3 in the same zone, n4 in another one.
func racks(datasets ...string) []runtime.Object {
	places := [][2]string{{"r1", "z1"}, {"r1", "z1"}, {"r2", "z1"}, {"r3", "z2"}}
	var objects []runtime.Object
	for i, place := range places {
		text := ""
		if i < len(datasets) {
			text = datasets[i]
		}
		objects = append(objects, nodeWith(fmt.Sprintf("n%d", i+1), place[0], place[1], text))
	}
	return objects
}

func TestScoreIsTheShareOfNearBytes(t *testing.T) {
	label := func(node runtime.Object, dataset string) runtime.Object {
		node.(*v1.Node).Labels["data/"+dataset] = "anything"
		return node
	}
	labelled := racks()
	labelled[0] = label(labelled[0], "a")
	tests := []struct {
		name    string
		objects []runtime.Object
		reads   string
		want    []int64
	}{
		{name: "on a node, by its annotation: there, in its rack, in its zone, elsewhere", objects: racks("a"), reads: "a=1Gi", want: []int64{100, 80, 50, 0}},
		{name: "by its label", objects: labelled, reads: "a=1Gi", want: []int64{100, 80, 50, 0}},
		{name: "by a pod that serves it", objects: append(racks(), serverOn("s", "n1", "a")), reads: "a=1Gi", want: []int64{100, 80, 50, 0}},
		{name: "the nearest of three replicas counts", objects: racks("a", "", "a", "a"), reads: "a=1Gi", want: []int64{100, 80, 100, 100}},
		{
			name: "by size: a is on n1 and b on n4, three times as large: n1 (100×1)/4, n2 (80×1)/4, n3 (50×1)/4, n4 (100×3)/4", objects: racks("a", "", "", "b"),
			reads: "a=1Gi,b=3Gi", want: []int64{25, 20, 12, 75},
		},
		{name: "without sizes, half of each", objects: racks("a", "", "", "b"), reads: "a,b", want: []int64{50, 40, 25, 50}},
		{name: "what no node holds is left out", objects: racks("a"), reads: "a=1Gi,unknown=100Ti", want: []int64{100, 80, 50, 0}},
		{name: "what is ignored is left out", objects: racks("a,b"), reads: "a=1Gi,b=much", want: []int64{100, 80, 50, 0}},
		{name: "a pod that reads nothing known", objects: racks("a"), reads: "b", want: []int64{0, 0, 0, 0}},
		{name: "an annotation that says nothing", objects: racks("a"), reads: "", want: []int64{0, 0, 0, 0}},
		{name: "sizes of the nodes do not matter", objects: racks("a=1Ti", "a=1Ki"), reads: "a=1Gi", want: []int64{100, 100, 50, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, change := range []func(*config.DataLocalityArgs){nil, within} {
				pl := mustNew(t, arguments(change), plugintest.NewCluster(t, tt.objects...))
				if got := scoresOf(t, pl, reader(tt.reads), "n1", "n2", "n3", "n4"); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("scores %v, want %v", got, tt.want)
				}
			}
		})
	}
}

func TestScoreCountsRunningServers(t *testing.T) {
	tests := []struct {
		name   string
		change func(pod *v1.Pod)
		serves bool
	}{
		{name: "a running pod", change: func(*v1.Pod) {}, serves: true},
		{name: "one that starts", change: func(pod *v1.Pod) { pod.Status.Phase = v1.PodPending }},
		{name: "one that has ended", change: func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }},
		{name: "one that is about to end", change: func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} }},
		{name: "one of another namespace", change: func(pod *v1.Pod) { pod.Namespace = "default" }},
		{name: "one of another kind", change: func(pod *v1.Pod) { pod.Labels["app"] = "client" }},
		{name: "one without a dataset", change: func(pod *v1.Pod) { delete(pod.Labels, "dataset") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := plugintest.NewCluster(t, racks()...)
			pl := mustNew(t, arguments(nil), c)
			server := serverOn("s", "n1", "a")
			tt.change(server)
			c.Add(server)
			want := []int64{0, 0}
			if tt.serves {
				want = []int64{100, 0}
			}
			if got := scoresOf(t, pl, reader("a"), "n1", "n4"); !reflect.DeepEqual(got, want) {
				t.Errorf("scores %v, want %v", got, want)
			}
			c.Must(c.RemovePod(server))
			if got := scoresOf(t, pl, reader("a"), "n1", "n4"); !reflect.DeepEqual(got, []int64{0, 0}) {
				t.Errorf("without the pod: scores %v, want none", got)
			}
		})
	}
}

func TestScoreAfterANodeChanges(t *testing.T) {
	objects := racks("a")
	c := plugintest.NewCluster(t, objects...)
	pl := mustNew(t, arguments(nil), c)
	pod := reader("a=1Gi")
	expect := func(what string, want ...int64) {
		t.Helper()
		if got := scoresOf(t, pl, pod, []string{"n1", "n2", "n3", "n4"}[:len(want)]...); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: scores %v, want %v", what, got, want)
		}
	}
	expect("at first", 100, 80, 50, 0)
	one := c.Change(objects[0].(*v1.Node), func(node *v1.Node) { node.Labels[rackKey], node.Labels[v1.LabelTopologyZone] = "r3", "z2" })
	expect("n1 is moved to the rack of n4", 100, 0, 0, 80)
	c.Change(one, func(node *v1.Node) { delete(node.Annotations, annotationKey) })
	expect("the data are gone", 0, 0, 0, 0)
	four := c.Change(objects[3].(*v1.Node), func(node *v1.Node) { node.Annotations = map[string]string{annotationKey: "b,a"} })
	expect("the data are on n4", 80, 0, 0, 100)
	c.Must(c.RemoveNode(four))
	expect("n4 is gone", 0, 0, 0)
	c.Add(four)
	expect("n4 is back", 80, 0, 0, 100)
}

// verdicts runs PreFilter and Filter for the nodes of a cluster.
func verdicts(t testing.TB, pl *DataLocality, c *plugintest.Cluster, state *framework.CycleState, pod *v1.Pod) map[string]*framework.Status {
	t.Helper()
	if status := pl.PreFilter(context.Background(), state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	verdicts, prepared := map[string]*framework.Status{}, pl.PrepareFilter(state, pod)
	for _, nodeInfo := range c.All() {
		status := pl.Filter(context.Background(), state, pod, nodeInfo)
		verdicts[nodeInfo.Node().Name] = status
		var same *framework.Status
		if prepared != nil {
			same = prepared(nodeInfo)
		}
		if same.Code() != status.Code() || same.Message() != status.Message() || !same.IsSuccess() && same.FailedPlugin() != Name {
			t.Errorf("node %s: prepared, the filter says %v of %q, want %v", nodeInfo.Node().Name, same, same.FailedPlugin(), status)
		}
	}
	return verdicts
}

func TestFilterRejectsNodesOutsideTheLevel(t *testing.T) {
	tests := []struct {
		name, reads string
		require     string
		objects     []runtime.Object
		// want are the nodes that pass.
		want []string
	}{
		{name: "in the zone", reads: "a", require: v1.LabelTopologyZone, objects: racks("a"), want: []string{"n1", "n2", "n3"}},
		{name: "in the rack", reads: "a", require: rackKey, objects: racks("a"), want: []string{"n1", "n2"}},
		{name: "on the node", reads: "a", require: v1.LabelHostname, objects: racks("a"), want: []string{"n1"}},
		{name: "nothing is required", reads: "a", objects: racks("a"), want: []string{"n1", "n2", "n3", "n4"}},
		{name: "all datasets must be there", reads: "a,b", require: rackKey, objects: racks("a", "b", "a"), want: []string{"n1", "n2"}},
		{name: "datasets that are nowhere together", reads: "a,b", require: v1.LabelTopologyZone, objects: racks("a", "", "", "b")},
		{name: "what no node holds does not count", reads: "a,unknown", require: v1.LabelTopologyZone, objects: racks("a"), want: []string{"n1", "n2", "n3"}},
		{name: "nothing is known", reads: "unknown", require: v1.LabelHostname, objects: racks("a"), want: []string{"n1", "n2", "n3", "n4"}},
		{name: "what is ignored does not count", reads: "a=-1", require: v1.LabelHostname, objects: racks("a"), want: []string{"n1", "n2", "n3", "n4"}},
		{
			name: "a node without the level's label has what it holds itself", reads: "a", require: v1.LabelTopologyZone,
			objects: []runtime.Object{nodeWith("n1", "", "", "a"), nodeWith("n2", "", "", "")}, want: []string{"n1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := plugintest.NewCluster(t, tt.objects...)
			pl := mustNew(t, arguments(func(args *config.DataLocalityArgs) { args.RequireWithin = tt.require }), c)
			passing := map[string]bool{}
			for _, name := range tt.want {
				passing[name] = true
			}
			rejected := 0
			for name, status := range verdicts(t, pl, c, framework.NewCycleState(), reader(tt.reads)) {
				if status.IsSuccess() != passing[name] {
					t.Errorf("node %s: %v", name, status)
				}
				if status.IsSuccess() {
					continue
				}
				rejected++
				want := fmt.Sprintf("node(s) had not all data that the pod reads within their %q", tt.require)
				if status.Code() != framework.UnschedulableAndUnresolvable || status.Message() != want {
					t.Errorf("node %s: %v %q, want %v %q", name, status.Code(), status.Message(), framework.UnschedulableAndUnresolvable, want)
				}
			}
			if got := plugintest.MetricValue(t, rejections.WithLabelValues(t.Name())); got != float64(2*rejected) {
				t.Errorf("%g rejections are counted, want %d by each of the two ways to filter", got, rejected)
			}
		})
	}
}

// TestFilterAfterRemovePod simulates removals as preemption does: with a copy of the state and of the
// node.
func TestFilterAfterRemovePod(t *testing.T) {
	ctx := context.Background()
	onOne, alsoOnOne, onTwo := serverOn("on-1", "n1", "a"), serverOn("also-on-1", "n1", "a"), serverOn("on-2", "n2", "a")
	other, unrelated := serverOn("other", "n1", "b"), st.MakePod().Name("web").UID("web").Node("n1").Obj()
	tests := []struct {
		name    string
		require string
		objects []runtime.Object
		removed []*v1.Pod
		node    string
		fits    bool
	}{
		{name: "the node's only server", require: v1.LabelHostname, objects: []runtime.Object{onOne}, removed: []*v1.Pod{onOne}, node: "n1"},
		{name: "one of the node's two servers", require: v1.LabelHostname, objects: []runtime.Object{onOne, alsoOnOne}, removed: []*v1.Pod{onOne}, node: "n1", fits: true},
		{name: "both of them", require: v1.LabelHostname, objects: []runtime.Object{onOne, alsoOnOne}, removed: []*v1.Pod{onOne, alsoOnOne}, node: "n1"},
		{name: "a server of other data", require: v1.LabelHostname, objects: []runtime.Object{onOne, other}, removed: []*v1.Pod{other}, node: "n1", fits: true},
		{name: "a pod that serves nothing", require: v1.LabelHostname, objects: []runtime.Object{onOne, unrelated}, removed: []*v1.Pod{unrelated}, node: "n1", fits: true},
		{name: "another server is in the rack", require: rackKey, objects: []runtime.Object{onOne, onTwo}, removed: []*v1.Pod{onOne}, node: "n1", fits: true},
		{name: "another server is in the rack, but must be on the node", require: v1.LabelHostname, objects: []runtime.Object{onOne, onTwo}, removed: []*v1.Pod{onOne}, node: "n1"},
		{name: "the zone's only server, for another node of the zone", require: v1.LabelTopologyZone, objects: []runtime.Object{onOne}, removed: []*v1.Pod{onOne}, node: "n3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// n5 is far away, and names the data b.
			objects := append(append(racks(), nodeWith("n5", "r5", "z5", "b")), tt.objects...)
			c := plugintest.NewCluster(t, objects...)
			pl := mustNew(t, arguments(func(args *config.DataLocalityArgs) { args.RequireWithin = tt.require }), c)
			pod, state := reader("a"), framework.NewCycleState()
			if status := verdicts(t, pl, c, state, pod)[tt.node]; !status.IsSuccess() {
				t.Fatalf("with all pods: %v", status)
			}
			simulated := state.Clone()
			on := c.Node("n1").Clone()
			for _, removed := range tt.removed {
				c.Must(on.RemovePod(removed))
				if status := pl.PreFilterExtensions().RemovePod(ctx, simulated, pod, framework.NewPodInfo(removed), on); !status.IsSuccess() {
					t.Fatal(status)
				}
			}
			if tt.node != "n1" {
				on = c.Node(tt.node)
			}
			if status := pl.Filter(ctx, simulated, pod, on); status.IsSuccess() != tt.fits {
				t.Errorf("without %d pods: %v, want that it fits: %t", len(tt.removed), status, tt.fits)
			}
			if status := pl.Filter(ctx, state, pod, c.Node(tt.node)); !status.IsSuccess() {
				t.Errorf("a simulation changes the verdict of the cycle: %v", status)
			}
			for _, removed := range tt.removed {
				if status := pl.PreFilterExtensions().AddPod(ctx, simulated, pod, framework.NewPodInfo(removed), c.Node("n1")); !status.IsSuccess() {
					t.Fatal(status)
				}
			}
			if status := pl.Filter(ctx, simulated, pod, c.Node(tt.node)); !status.IsSuccess() {
				t.Errorf("with the pods back: %v", status)
			}
		})
	}
}

// TestFilterWithACopyOfThePod: preemption filters with copies of the pod and of the state.
func TestFilterWithACopyOfThePod(t *testing.T) {
	ctx, server := context.Background(), serverOn("s", "n1", "a")
	c := plugintest.NewCluster(t, append(racks(), server)...)
	pl := mustNew(t, arguments(within), c)
	plain := st.MakePod().Name("plain").UID("plain").Obj()
	for name, tt := range map[string]struct {
		pod  *v1.Pod
		fits bool
	}{
		"a pod without the annotation":         {pod: plain, fits: true},
		"one that reads nothing that is known": {pod: reader("unknown"), fits: true},
		"one whose data are in another zone":   {pod: reader("a"), fits: false},
	} {
		state := framework.NewCycleState()
		verdicts(t, pl, c, state, tt.pod)
		copied, pod := state.Clone(), tt.pod.DeepCopy()
		nodeInfo := c.Node("n4")
		if status := pl.Filter(ctx, copied, pod, nodeInfo); status.IsSuccess() != tt.fits || status.Code() == framework.Error {
			t.Errorf("%s: %v, want that it fits: %t", name, status, tt.fits)
		}
		if prepared := pl.PrepareFilter(copied, pod); prepared == nil != tt.fits {
			t.Errorf("%s: there is nothing to filter: %t, want %t", name, prepared == nil, tt.fits)
		}
		if tt.fits {
			// There is nothing that could be lost.
			pl.RemovePod(ctx, copied, pod, framework.NewPodInfo(server), nodeInfo)
			if r, err := removalsOf(state); err != nil || len(r.gone) != 0 {
				t.Errorf("%s: %+v are noted, %v", name, r, err)
			}
		}
	}
}

// TestAddPodRestoresServers, in copies of the state that do not know of each other.
func TestAddPodRestoresServers(t *testing.T) {
	ctx := context.Background()
	a, b := serverOn("a", "n1", "a"), serverOn("b", "n1", "b")
	c := plugintest.NewCluster(t, append(racks(), a, b)...)
	pl := mustNew(t, arguments(within), c)
	pod, state := reader("a"), framework.NewCycleState()
	verdicts(t, pl, c, state, pod)
	nodeInfo := c.Node("n1")
	simulated := state.Clone()
	pl.RemovePod(ctx, simulated, pod, framework.NewPodInfo(a), nodeInfo)
	pl.RemovePod(ctx, simulated, pod, framework.NewPodInfo(b), nodeInfo)
	copied := simulated.Clone()
	expect := func(what string, state *framework.CycleState, fits bool) {
		t.Helper()
		if status := pl.Filter(ctx, state, pod, nodeInfo); status.IsSuccess() != fits {
			t.Errorf("%s: %v, want that it fits: %t", what, status, fits)
		}
	}
	pl.AddPod(ctx, copied, pod, framework.NewPodInfo(b), nodeInfo)
	expect("with the server of other data back", copied, false)
	pl.AddPod(ctx, simulated, pod, framework.NewPodInfo(a), nodeInfo)
	expect("with the server back", simulated, true)
	expect("in the copy", copied, false)
}

func TestPreFilterExtensions(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*config.DataLocalityArgs)
		want   bool
	}{
		"score alone":          {change: func(*config.DataLocalityArgs) {}},
		"a filter by nodes":    {change: func(args *config.DataLocalityArgs) { within(args); args.Servers = nil }},
		"a filter with server": {change: within, want: true},
	} {
		pl := mustNew(t, arguments(tt.change), plugintest.NewCluster(t))
		if got := pl.PreFilterExtensions() != nil; got != tt.want {
			t.Errorf("%s: extensions are given: %t, want %t", name, got, tt.want)
		}
	}
}

// TestAddPodOfANominatedServer: the framework adds nominated pods to a node before it filters.
func TestAddPodOfANominatedServer(t *testing.T) {
	ctx, c := context.Background(), plugintest.NewCluster(t, racks("", "", "", "a")...)
	pl := mustNew(t, arguments(within), c)
	pod, state := reader("a"), framework.NewCycleState()
	verdicts(t, pl, c, state, pod)
	nominated := serverOn("nominated", "n1", "a")
	nodeInfo := c.Node("n1")
	if status := pl.AddPod(ctx, state, pod, framework.NewPodInfo(nominated), nodeInfo); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := pl.Filter(ctx, state, pod, nodeInfo); status.IsSuccess() {
		t.Error("a nominated pod makes the node fit")
	}
}

func TestEventsToRegister(t *testing.T) {
	nodes := framework.ClusterEvent{
		Resource:   framework.Node,
		ActionType: framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
	}
	pods := framework.ClusterEvent{Resource: framework.Pod, ActionType: framework.All}
	for name, tt := range map[string]struct {
		change func(*config.DataLocalityArgs)
		want   []framework.ClusterEvent
	}{
		"score alone":         {change: func(*config.DataLocalityArgs) {}},
		"a filter by nodes":   {change: func(args *config.DataLocalityArgs) { within(args); args.Servers = nil }, want: []framework.ClusterEvent{nodes}},
		"a filter by servers": {change: within, want: []framework.ClusterEvent{nodes, pods}},
	} {
		if got := mustNew(t, arguments(tt.change), plugintest.NewCluster(t)).EventsToRegister(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: events %v, want %v", name, got, tt.want)
		}
	}
}

func TestEndHelps(t *testing.T) {
	pl := mustNew(t, arguments(within), plugintest.NewCluster(t))
	ended := serverOn("on-1", "n1", "a")
	ended.DeletionTimestamp, ended.Status.Phase = &metav1.Time{}, v1.PodSucceeded
	if !pl.EndHelps(ended, reader("a")) || pl.EndHelps(st.MakePod().Name("web").UID("web").Node("n1").Obj(), reader("a")) {
		t.Error("only the end of a pod that serves data helps")
	}
}

func TestFilterAndScoreWithoutTheirBeginning(t *testing.T) {
	c := plugintest.NewCluster(t, racks("a")...)
	pl := mustNew(t, arguments(within), c)
	if _, status := pl.Score(context.Background(), framework.NewCycleState(), reader("a"), "n1"); status.Code() != framework.Error {
		t.Errorf("Score without PreScore: %v, want an error", status)
	}
	if status := pl.ScoreNodes(framework.NewCycleState(), reader("a"), nil, nil); status.Code() != framework.Error {
		t.Errorf("ScoreNodes without PreScore: %v, want an error", status)
	}
	nodeInfo := c.Node("n1")
	if status := pl.Filter(context.Background(), framework.NewCycleState(), reader("a"), nodeInfo); status.Code() != framework.Error {
		t.Errorf("Filter without PreFilter: %v, want an error", status)
	}
	if status := pl.PrepareFilter(framework.NewCycleState(), reader("a"))(nodeInfo); status.Code() != framework.Error {
		t.Errorf("PrepareFilter without PreFilter: %v, want an error", status)
	}
	if status := pl.Filter(context.Background(), framework.NewCycleState(), reader("a"), framework.NewNodeInfo()); status.Code() != framework.Error {
		t.Errorf("a node that is gone: %v, want an error", status)
	}
}

func ignoredOf(t *testing.T, of place, why reason) float64 {
	t.Helper()
	return plugintest.MetricValue(t, ignoredNames.WithLabelValues(t.Name(), string(of), string(why)))
}

func TestIgnoredNamesAreCounted(t *testing.T) {
	c := plugintest.NewCluster(t, racks("a,b c,d")...)
	// With the filter, what the pod reads is found in PreFilter, and not once more in PreScore.
	pl := mustNew(t, arguments(within), c)
	pod := reader("a=1Gi,a=2Gi,b=x,c=0")
	scoresOf(t, pl, pod, "n1")
	if bad, twice, node := ignoredOf(t, ofPod, malformed), ignoredOf(t, ofPod, repeated), ignoredOf(t, ofNode, malformed); bad != 2 || twice != 1 || node != 1 {
		t.Errorf("counted are %g malformed and %g repeated names of pods, %g of nodes; want 2, 1 and 1", bad, twice, node)
	}
	if got := plugintest.MetricValue(t, knownDatasets.WithLabelValues(t.Name())); got != 2 {
		t.Errorf("%g datasets are known, want 2", got)
	}
	state := framework.NewCycleState()
	whatif.Mark(state)
	pl.PreScore(context.Background(), state, pod, nil)
	if again := ignoredOf(t, ofPod, malformed); again != 2 {
		t.Errorf("a question is counted: %g", again)
	}
}

func TestExplain(t *testing.T) {
	long := strings.Repeat("x", 50)
	for name, tt := range map[string]struct{ reads, want string }{
		"a pod that reads nothing": {},
		"data on some nodes, and not on others": {
			reads: "a=120Gi,b=3Ti",
			want: "The pod reads 3192Gi of 2 dataset(s). n1: 120Gi in its kubernetes.io/hostname, 3072Gi further away. " +
				"n2: 120Gi in its rack, 3072Gi further away. n4: 3072Gi in its kubernetes.io/hostname, 120Gi further away.",
		},
		"data that no node holds": {reads: "c,d", want: `No node holds "c", "d".`},
		"what is ignored": {
			reads: "a=100,b=0,a," + long + " " + long + ",c=1e3,d=x,e",
			want: `The pod reads 100 of 1 dataset(s). n1: 100 in its kubernetes.io/hostname. n2: 100 in its rack. n4: 100 further away. ` +
				`No node holds "e". Ignored in the annotation: "b=0" (malformed), "a" (repeated), "` + long[:40] + `"… (malformed), 2 more.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pl := mustNew(t, arguments(nil), plugintest.NewCluster(t, racks("a", "", "", "b")...))
			pod, state := reader(tt.reads), framework.NewCycleState()
			if tt.reads == "" {
				pod.Annotations = nil
			}
			if got := pl.Explain(state, pod, []string{"n1"}); got != "" {
				t.Errorf("without a cycle it says %q", got)
			}
			pl.PreScore(context.Background(), state, pod, nil)
			if got := pl.Explain(state, pod, []string{"n1", "n2", "n4", "n9"}); got != tt.want {
				t.Errorf("it says %q\nwant %q", got, tt.want)
			}
		})
	}
	pl := mustNew(t, arguments(nil), plugintest.NewCluster(t, racks("a,b c")...))
	pod := reader("a=1")
	pl.PreScore(context.Background(), framework.NewCycleState(), pod, nil)
	want := "The pod reads 1 of 1 dataset(s). 1 name(s) of nodes and servers are ignored: malformed or too many."
	if got := pl.Explain(nil, pod, nil); got != want {
		t.Errorf("it says %q\nwant %q", got, want)
	}
	nodes := []string{"n1", "n1", "n1", "n1", "n1", "n1", "n1"}
	if got := strings.Count(pl.Explain(nil, pod, nodes), "n1:"); got != 5 {
		t.Errorf("it tells of %d nodes, want 5", got)
	}
}

// TestBeginMarksOnceForEqualReads: until something changes, and only one after the other.
func TestBeginMarksOnceForEqualReads(t *testing.T) {
	objects := racks("a", "b")
	c := plugintest.NewCluster(t, objects...)
	pl := mustNew(t, arguments(nil), c)
	var cycle int64
	expect := func(what, reads string, marks int64, want ...int64) {
		t.Helper()
		if got := scoresOf(t, pl, reader(reads), []string{"n2", "n1"}[:len(want)]...); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: scores %v, want %v", what, got, want)
		}
		if got := pl.index.cycle - cycle; got != marks {
			t.Errorf("%s: marks %d times, want %d", what, got, marks)
		}
		cycle = pl.index.cycle
	}
	expect("the first pod", "a", 1, 80, 100)
	expect("one like it", "a", 0, 80, 100)
	pl.PreScore(context.Background(), framework.NewCycleState(), st.MakePod().Obj(), nil)
	expect("one after a pod that reads nothing", "a", 0, 80, 100)
	c.Change(objects[3].(*v1.Node), func(node *v1.Node) { node.Labels["other"] = "label" })
	c.Add(st.MakePod().Name("web").UID("web").Node("n1").Obj())
	expect("after changes that are about no data", "a", 0, 80, 100)
	expect("one that reads something else", "b", 1, 100, 80)
	expect("the first again", "a", 1, 80, 100)
	c.Add(serverOn("s", "n2", "a"))
	expect("with a server more", "a", 1, 100, 100)
	one := c.Change(objects[0].(*v1.Node), func(node *v1.Node) { node.Labels[rackKey] = "r9" })
	expect("in another rack", "a", 1, 100, 100)
	c.Must(c.RemoveNode(one))
	expect("without a node", "a", 1, 100)
	c.Add(one)
	expect("with the node", "a", 1, 100, 100)
}

// TestScoreDoesNotAllocate, nor does Filter for a node that passes.
func TestScoreDoesNotAllocate(t *testing.T) {
	c := plugintest.NewCluster(t, racks("a", "b")...)
	pl := mustNew(t, arguments(within), c)
	pod, state := reader("a,b"), framework.NewCycleState()
	verdicts(t, pl, c, state, pod)
	pl.PreScore(context.Background(), state, pod, nil)
	nodeInfo := c.Node("n1")
	plugintest.ExpectAllocations(t, "Filter and Score", 0, func() {
		pl.Filter(context.Background(), state, pod, nodeInfo)
		pl.Score(context.Background(), state, pod, "n1")
	})
}

// TestFilterAndScoreInParallel is for the race detector: 16 workers filter and score, some with pods that they take for
// gone.
func TestFilterAndScoreInParallel(t *testing.T) {
	ctx, server := context.Background(), serverOn("s", "n1", "a")
	c := plugintest.NewCluster(t, append(racks("", "", "", "b"), server)...)
	pl := mustNew(t, arguments(within), c)
	pod := reader("a=1Gi,b=1Gi")
	for round := 0; round < 20; round++ {
		state := framework.NewCycleState()
		verdicts(t, pl, c, state, pod)
		pl.PreScore(ctx, state, pod, nil)
		nodeInfo := c.Node("n1")
		plugintest.InParallel(16, func(worker int) {
			own := state
			if worker%2 == 0 {
				own = state.Clone()
				pl.RemovePod(ctx, own, pod, framework.NewPodInfo(server), nodeInfo)
			}
			for i := 0; i < 20; i++ {
				pl.Filter(ctx, own, pod, nodeInfo)
				if score, status := pl.Score(ctx, own, pod, "n1"); score != 50 || !status.IsSuccess() {
					t.Errorf("the score is %d, %v, want 50", score, status)
				}
			}
		})
		serverBefore := server
		server = server.DeepCopy()
		c.Must(c.UpdatePod(serverBefore, server))
	}
}
