// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const rackKey, annotationKey = "rack", "data-locality.scheduler/datasets"

// nodeWith makes a node in a rack and a zone, with datasets in its annotation. Its host's name is its own.
func nodeWith(name, rack, zone, datasets string) *v1.Node {
	node := st.MakeNode().Name(name).Label(v1.LabelHostname, name).Obj()
	for key, value := range map[string]string{rackKey: rack, v1.LabelTopologyZone: zone} {
		if value != "" {
			node.Labels[key] = value
		}
	}
	if datasets != "" {
		node.Annotations = map[string]string{annotationKey: datasets}
	}
	return node
}

// serverOn makes a running pod that serves a dataset on a node.
func serverOn(name, node, dataset string) *v1.Pod {
	pod := st.MakePod().Namespace("storage").Name(name).UID(name).Node(node).Label("app", "datanode").Label("dataset", dataset).Obj()
	pod.Status.Phase = v1.PodRunning
	return pod
}

// testIndex knows all ways in which a node can hold data, in hosts, racks and zones.
func testIndex() *index {
	x := newIndex([]string{v1.LabelHostname, rackKey, v1.LabelTopologyZone}, func(place, reason, int) {})
	x.annotation, x.labelPrefix = annotationKey, "data/"
	x.servers = []server{{
		namespaces: sets.NewString("storage"), selector: labels.SelectorFromSet(labels.Set{"app": "datanode"}), label: "dataset",
	}}
	return x
}

// content returns which nodes hold which datasets, and checks that the parts of the index agree with one another.
func (x *index) content(t testing.TB) map[string]map[string]bool {
	t.Helper()
	content, holdings, ignored := map[string]map[string]bool{}, 0, 0
	names := map[*node]string{}
	for object, n := range x.nodes {
		names[n] = object.Name
	}
	for name, held := range x.datasets {
		content[name] = map[string]bool{}
		for n, reasons := range held.holders {
			if names[n] == "" || reasons <= 0 {
				t.Fatalf("dataset %s is held by %q, which must be known, for %d reasons", name, names[n], reasons)
			}
			content[name][names[n]] = true
			holdings++
		}
		if len(held.holders) == 0 || held.name != name {
			t.Fatalf("dataset %s is known as %+v", name, held)
		}
	}
	marks := map[*mark]int{}
	for _, n := range x.nodes {
		ignored += n.ignored
		for _, m := range n.marks {
			if m != nil {
				marks[m]++
			}
		}
	}
	for domain, m := range x.marks {
		if marks[m] != m.nodes || m.nodes == 0 {
			t.Fatalf("%s has a mark of %d nodes, want %d", domain.Value, m.nodes, marks[m])
		}
	}
	for _, held := range x.serving {
		if held == nil {
			ignored++
		}
	}
	if len(marks) != len(x.marks) || holdings != x.holdings || ignored != x.ignored {
		t.Fatalf("%d marks, %d holdings and %d ignored names are counted, want %d, %d and %d",
			len(x.marks), x.holdings, x.ignored, len(marks), holdings, ignored)
	}
	return content
}

// TestIndexHasTheDatasetsOfNodes changes nodes and pods at random, and compares with what they say.
func TestIndexHasTheDatasetsOfNodes(t *testing.T) {
	for seed := int64(1); seed <= 20; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			c, x := plugintest.NewCluster(t), testIndex()
			nodes, pods := map[string]*v1.Node{}, map[string]*v1.Pod{}
			for step := 0; step < 300; step++ {
				for n := random.Intn(4); n > 0; n-- {
					happen(c, random, nodes, pods)
				}
				c.Must(x.update(c))
				want := holding(nodes, pods)
				if got := x.content(t); !reflect.DeepEqual(got, want) {
					t.Fatalf("step %d: it knows %v, want %v", step, got, want)
				}
				compareMarks(t, x, nodes, want)
			}
		})
	}
}

func happen(c *plugintest.Cluster, random *rand.Rand, nodes map[string]*v1.Node, pods map[string]*v1.Pod) {
	one := func(of ...string) string { return of[random.Intn(len(of))] }
	name := one("n1", "n2", "n3", "n4", "n5")
	made := nodeWith(name, one("", "r1", "r2", "r3"), one("", "z1", "z2"), one("", "a", "a=1Gi,b", "b,c,b", "a b,c", "d/1,d/2"))
	if random.Intn(3) == 0 {
		made.Labels["data/"+one("a", "e")] = ""
	}
	node := nodes[name]
	switch what := random.Intn(10); {
	case node == nil:
		nodes[name] = made
		c.AddNode(made)
	case what == 0:
		for pod := range pods {
			if pods[pod].Spec.NodeName == name {
				c.Must(c.RemovePod(pods[pod]))
				delete(pods, pod)
			}
		}
		c.Must(c.RemoveNode(node))
		delete(nodes, name)
	case what < 4:
		nodes[name] = made
		c.UpdateNode(node, made)
	default:
		pod := serverOn("p"+one("1", "2", "3", "4", "5", "6"), name, one("a", "b", "s"))
		pod.Namespace = one("storage", "storage", "other")
		pod.Labels["app"] = one("datanode", "datanode", "client")
		pod.Status.Phase = v1.PodPhase(one("Running", "Running", "Pending", "Succeeded"))
		if random.Intn(5) == 0 {
			pod.DeletionTimestamp = &metav1.Time{}
		}
		before := pods[pod.Name]
		if before != nil && (random.Intn(2) == 0 || before.Spec.NodeName != name) {
			c.Must(c.RemovePod(before))
			delete(pods, pod.Name)
			return
		}
		pods[pod.Name] = pod
		if before == nil {
			c.Must(c.AddPod(pod))
		} else {
			c.Must(c.UpdatePod(before, pod))
		}
	}
}

// holding is what nodes and pods say, by dataset and node.
func holding(nodes map[string]*v1.Node, pods map[string]*v1.Pod) map[string]map[string]bool {
	content := map[string]map[string]bool{}
	add := func(dataset, node string) {
		if content[dataset] == nil {
			content[dataset] = map[string]bool{}
		}
		content[dataset][node] = true
	}
	for name, node := range nodes {
		for _, part := range strings.Split(node.Annotations[annotationKey], ",") {
			if dataset := strings.Split(part, "=")[0]; dataset != "" && !strings.Contains(dataset, " ") {
				add(dataset, name)
			}
		}
		for key := range node.Labels {
			if strings.HasPrefix(key, "data/") {
				add(strings.TrimPrefix(key, "data/"), name)
			}
		}
	}
	for _, pod := range pods {
		if pod.Namespace == "storage" && pod.Labels["app"] == "datanode" && pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
			add(pod.Labels["dataset"], pod.Spec.NodeName)
		}
	}
	return content
}

// compareMarks marks all datasets and compares what each node has near, by level.
func compareMarks(t *testing.T, x *index, nodes map[string]*v1.Node, content map[string]map[string]bool) {
	t.Helper()
	var datasets []*dataset
	for _, held := range x.datasets {
		datasets = append(datasets, held)
	}
	x.mark(datasets)
	for name, node := range nodes {
		held := x.held(node)
		for level, key := range []string{v1.LabelHostname, rackKey, v1.LabelTopologyZone} {
			var want set
			for i := range datasets {
				for holder := range content[datasets[i].name] {
					if value := node.Labels[key]; value != "" && nodes[holder].Labels[key] == value {
						want |= 1 << uint(i)
					}
				}
			}
			if held[level] != want {
				t.Fatalf("node %s has %b in its %s, want %b", name, held[level], key, want)
			}
		}
	}
}

func TestIndexLimits(t *testing.T) {
	tests := []struct {
		name   string
		limits limits
		want   string
	}{
		{name: "of a node", limits: limits{datasets: 100, ofNode: 2, holdings: 100}, want: "map[a:map[n1:true] b:map[n1:true] c:map[n2:true]]"},
		{name: "of all names", limits: limits{datasets: 2, ofNode: 100, holdings: 100}, want: "map[a:map[n1:true] b:map[n1:true]]"},
		{name: "of all holdings", limits: limits{datasets: 100, ofNode: 100, holdings: 1}, want: "map[a:map[n1:true]]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := testIndex()
			x.limits = tt.limits
			told := map[string]int{}
			x.ignore = func(of place, why reason, count int) { told[string(of)+" "+string(why)] += count }
			one, two := nodeWith("n1", "", "", "a,b,d,d"), nodeWith("n2", "", "", "")
			c := plugintest.NewCluster(t, one)
			c.Must(x.update(c))
			c.Add(two, serverOn("s", "n2", "c"))
			c.Must(x.update(c))
			if ignored := 1 - len(x.content(t)["c"]); told["server too_many"] != ignored {
				t.Errorf("told of %v, want %d names of servers to be too many", told, ignored)
			}
			if got := fmt.Sprint(x.content(t)); got != tt.want {
				t.Errorf("it knows %s, want %s", got, tt.want)
			}
			if x.ignored < 2 || told["node too_many"] < 2 {
				t.Errorf("%d names are ignored, and told of %v", x.ignored, told)
			}
			// With the bounds away, the node's next change of any kind has its names read again.
			x.limits = standard
			one = c.Change(one, func(node *v1.Node) { node.Labels["any"] = "" })
			c.Must(x.update(c))
			if got := x.content(t); len(got["a"]) != 1 || len(got["b"]) != 1 || len(got["d"]) != 1 || x.nodes[one].ignored != 0 {
				t.Errorf("with room for it, it knows %v", got)
			}
		})
	}
}

// TestIndexCopiesNames, which would be kept for it.
func TestIndexCopiesNames(t *testing.T) {
	x, random := testIndex(), rand.New(rand.NewSource(1))
	node := nodeWith("n", "", "", "stays")
	c := plugintest.NewCluster(t, node)
	c.Must(x.update(c))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := 0; i < 100; i++ {
		// Each annotation brings one name that stays.
		text := make([]byte, 200000)
		for n := range text {
			text[n] = byte('a' + random.Intn(26))
		}
		datasets := fmt.Sprintf("stays-%d,%s", i, text)
		other := nodeWith(fmt.Sprintf("n%d", i), "", "", fmt.Sprintf("stays-%d", i))
		node = c.Change(node, func(node *v1.Node) { node.Annotations[annotationKey] = datasets })
		c.Must(x.update(c))
		c.Add(other)
		c.Must(x.update(c))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 5000000 {
		t.Errorf("%d bytes more are kept, want about those of a hundred names", grown)
	}
	if got := len(x.datasets); got != 100 {
		t.Errorf("%d datasets are known, want 100", got)
	}
	runtime.KeepAlive(x)
}

func TestIndexCountsARepeatedNameOnce(t *testing.T) {
	x := testIndex()
	told := map[string]int{}
	x.ignore = func(of place, why reason, count int) { told[string(of)+" "+string(why)] += count }
	node := nodeWith("n1", "", "", strings.Repeat("a,", 9999)+"b,a")
	node.Labels["data/b"] = ""
	c := plugintest.NewCluster(t, node)
	c.Must(x.update(c))
	if got, want := fmt.Sprint(x.content(t)), "map[a:map[n1:true] b:map[n1:true]]"; got != want {
		t.Errorf("it knows %s, want %s", got, want)
	}
	if n := x.nodes[node]; cap(n.own) > 8 || n.ignored != 0 || told["node repeated"] != 10000 {
		t.Errorf("%d datasets are kept in %d places, %d names are ignored, and told of %v", len(n.own), cap(n.own), n.ignored, told)
	}
	node = c.Change(node, func(node *v1.Node) { node.Annotations[annotationKey], node.Labels = "a,a", nil })
	c.Must(x.update(c))
	if got, want := fmt.Sprint(x.content(t)), "map[a:map[n1:true]]"; got != want {
		t.Errorf("it knows %s, want %s", got, want)
	}
	c.Must(c.RemoveNode(node))
	c.Must(x.update(c))
	if got := x.content(t); len(got) != 0 {
		t.Errorf("without the node it knows %v", got)
	}
}

// TestIndexDropsOldObjects, though the new one says the same.
func TestIndexDropsOldObjects(t *testing.T) {
	x, data := testIndex(), func(text string) uintptr { return (*reflect.StringHeader)(unsafe.Pointer(&text)).Data }
	node := nodeWith("n1", "", "", "a,b")
	c := plugintest.NewCluster(t, node)
	c.Must(x.update(c))
	node = c.Change(node, func(node *v1.Node) { node.Annotations[annotationKey] = string([]byte("a,b")) })
	c.Must(x.update(c))
	if data(x.nodes[node].annotation) != data(node.Annotations[annotationKey]) {
		t.Error("the index has the text of another object")
	}
}

// BenchmarkIndexAtItsLimits is the most that an index can have: names of 253 bytes, each on ten nodes.
func BenchmarkIndexAtItsLimits(b *testing.B) {
	const nodes, each = 5000, 400
	c := plugintest.NewCluster(b)
	for i := 0; i < nodes; i++ {
		var names []string
		for n := 0; n < each; n++ {
			names = append(names, fmt.Sprintf("%0253d", (i*each+n)%standard.datasets))
		}
		c.Add(nodeWith(fmt.Sprintf("node-%04d", i), "r", "z", strings.Join(names, ",")))
	}
	c.NodeInfos()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := testIndex()
		c.Must(x.update(c))
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		if len(x.datasets) != standard.datasets || x.holdings != standard.holdings {
			b.Errorf("%d datasets are known, on %d nodes in all", len(x.datasets), x.holdings)
		}
		runtime.KeepAlive(x)
	}
}

// BenchmarkIndex makes the index of 5,000 nodes with 100,000 datasets, each on three of them.
func BenchmarkIndex(b *testing.B) {
	const nodes, datasets, replicas = 5000, 100000, 3
	random := rand.New(rand.NewSource(1))
	held := make([][]string, nodes)
	for i := 0; i < datasets; i++ {
		for n := 0; n < replicas; n++ {
			on := random.Intn(nodes)
			held[on] = append(held[on], fmt.Sprintf("warehouse/table-%06d", i))
		}
	}
	c := plugintest.NewCluster(b)
	for i := range held {
		c.Add(nodeWith(fmt.Sprintf("node-%04d", i), fmt.Sprintf("rack-%d", i/20), fmt.Sprintf("zone-%d", i%3), strings.Join(held[i], ",")))
	}
	c.NodeInfos()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := testIndex()
		began := time.Now()
		c.Must(x.update(c))
		took := time.Since(began)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(took.Milliseconds()), "ms/index")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/datasets, "B/dataset")
		if len(x.datasets) < datasets*9/10 {
			b.Errorf("%d datasets are known", len(x.datasets))
		}
	}
}
