// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/topology"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func newArgs() *config.WorkloadTopologyArgs {
	return &config.WorkloadTopologyArgs{
		PodSelector: &metav1.LabelSelector{}, GroupBy: []string{"app"},
		Levels: []config.WorkloadTopologyLevel{
			{TopologyKey: v1.LabelHostname, Cost: 0}, {TopologyKey: v1.LabelTopologyZone, Cost: 10}, {TopologyKey: v1.LabelTopologyRegion, Cost: 50},
		},
		Edges: []config.WorkloadTopologyEdge{{Weight: pointer.Int32(1)}},
	}
}

// cluster is a snapshot whose nodes and pods a test changes.
type cluster struct{ all []*framework.NodeInfo }

func (c *cluster) NodeInfos() framework.NodeInfoLister { return fake.NodeInfoLister(c.all) }

func newCluster(nodes ...*v1.Node) *cluster {
	c := &cluster{}
	for _, node := range nodes {
		c.all = append(c.all, plugintest.NodeInfo(node))
	}
	return c
}

func (c *cluster) node(name string) *framework.NodeInfo {
	nodeInfo, err := c.NodeInfos().Get(name)
	if err != nil {
		panic(err)
	}
	return nodeInfo
}

// place puts pods of a group on a node: "node app component".
func (c *cluster) place(node, app, component string, n int) {
	for i := 0; i < n; i++ {
		name := fmt.Sprintf("%s-%s-%s-%d", app, component, node, len(c.node(node).Pods))
		c.node(node).AddPod(st.MakePod().Namespace("default").Name(name).UID(name).Node(node).Label("app", app).Label("component", component).Obj())
	}
}

func newNode(name, zone, region string) *v1.Node {
	node := st.MakeNode().Name(name).Label(v1.LabelHostname, name)
	if zone != "" {
		node.Label(v1.LabelTopologyZone, zone)
	}
	if region != "" {
		node.Label(v1.LabelTopologyRegion, region)
	}
	return node.Obj()
}

// counted is what an index holds, in words that can be compared.
func (x *index) counted() map[string]int64 {
	words := make(map[string]int64)
	for group, pods := range x.groups {
		for object, on := range x.nodes {
			if n := pods.on[on]; n > 0 {
				words[fmt.Sprintf("group %s on %s", group, object.Name)] = int64(n)
				if pods.full[object.Name] != (n >= x.maxPerNode) {
					words[fmt.Sprintf("group %s and %s are wrongly full", group, object.Name)] = int64(n)
				}
			}
		}
		for side := range pods.peers {
			words[fmt.Sprintf("side %d of %s", side, group)] = pods.peers[side].total
			for domain, n := range pods.peers[side].at {
				words[fmt.Sprintf("side %d of %s in %d %s", side, group, domain.Level, domain.Value)] = n
			}
		}
		words["nodes of the group "+group] = int64(len(pods.on))
		words["full nodes of the group "+group] = int64(len(pods.full))
	}
	return words
}

// TestIndexEqualsANewOne changes nodes, pods and the labels of both at random.
func TestIndexEqualsANewOne(t *testing.T) {
	args := newArgs()
	args.Edges = []config.WorkloadTopologyEdge{
		{Weight: pointer.Int32(1)},
		{From: labelled("component", "a"), To: labelled("component", "b"), Weight: pointer.Int32(2)},
		{From: labelled("component", "a"), To: labelled("app", "app-1"), Weight: pointer.Int32(3)},
		{From: labelled("component", "a"), To: labelled("component", "c"), Weight: pointer.Int32(3)},
	}
	args.MaxPerNode = pointer.Int32(2)
	for seed := int64(1); seed <= 10; seed++ {
		random := rand.New(rand.NewSource(seed))
		x, err := newIndex(args)
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster()
		for step := 0; step < 150; step++ {
			for n := random.Intn(4); n > 0; n-- {
				c.change(t, random, step)
			}
			if err := x.follower.Follow(c, x); err != nil {
				t.Fatal(err)
			}
			// The marks of one group, of two, and of none; the same ones for some steps.
			group, weights := "", sides{}
			if step/20%3 > 0 {
				group, weights[step/20%3] = fmt.Sprintf("x/app-%d", step/20%3), 3+int64(step/7%2)
				weights[0] = 5
			}
			x.mark(group, weights)
			x.marked(t, group, weights)
			if step%10 != 0 {
				continue
			}
			fresh, _ := newIndex(args)
			if err := fresh.follower.Follow(c, fresh); err != nil {
				t.Fatal(err)
			}
			if got, want := x.counted(), fresh.counted(); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: got %v\nwant %v", seed, step, got, want)
			}
		}
		c.all = nil
		if err := x.follower.Follow(c, x); err != nil {
			t.Fatal(err)
		}
		if len(x.counted()) != 0 || len(x.nodes) != 0 || len(x.groups) != 0 {
			t.Errorf("without nodes the index holds %v, %v", x.counted(), x.nodes)
		}
	}
}

// marked compares what is noted of all domains with a sum from nothing.
func (x *index) marked(t *testing.T, group string, weights sides) {
	t.Helper()
	sums, total := map[*topology.Domain]int64{}, int64(0)
	if counted := x.groups[group]; counted != nil {
		for side := range counted.peers {
			total += weights[side] * counted.peers[side].total
			for domain, n := range counted.peers[side].at {
				sums[domain] += weights[side] * n
			}
		}
	}
	if x.marks.total != total {
		t.Fatalf("the peers of %s weigh %d, want %d", group, x.marks.total, total)
	}
	for _, on := range x.nodes {
		if pods := x.groups[group]; pods != nil && on.podsIn(x.marks.round) != pods.on[on] || pods == nil && on.podsIn(x.marks.round) != 0 {
			t.Fatalf("%d pods of %s are noted of a node", on.podsIn(x.marks.round), group)
		}
		for _, domain := range on.domains {
			if domain != nil && x.marks.sums[domain.Number] != sums[domain] {
				t.Fatalf("the peers of %s weigh %d in %s, want %d", group, x.marks.sums[domain.Number], domain.Value, sums[domain])
			}
		}
	}
}

func (c *cluster) change(t *testing.T, random *rand.Rand, step int) {
	pick := func(values ...string) string { return values[random.Intn(len(values))] }
	what := random.Intn(12)
	if len(c.all) < 3 || what == 0 {
		node := newNode(fmt.Sprintf("node-%d-%d", step, len(c.all)), pick("", "a", "b"), pick("", "r", "s"))
		c.all = append(c.all, plugintest.NodeInfo(node))
		return
	}
	i := random.Intn(len(c.all))
	info := c.all[i]
	pod := func() *v1.Pod { return info.Pods[random.Intn(len(info.Pods))].Pod }
	switch {
	case what == 1:
		c.all = append(append([]*framework.NodeInfo{}, c.all[:i]...), c.all[i+1:]...)
	case what == 2:
		info.SetNode(newNode(info.Node().Name, pick("", "a", "b"), pick("", "r", "s")))
	case what < 5 && len(info.Pods) > 0:
		if err := info.RemovePod(pod()); err != nil {
			t.Fatal(err)
		}
	case what < 8 && len(info.Pods) > 0: // a pod that changes while it is assumed, or is to be deleted
		old := pod()
		if err := info.RemovePod(old); err != nil {
			t.Fatal(err)
		}
		changed := old.DeepCopy()
		if random.Intn(3) == 0 {
			now := metav1.Now()
			changed.DeletionTimestamp = &now
		} else {
			changed.Labels["component"] = pick("a", "b", "c")
		}
		info.AddPod(changed)
	default:
		name := fmt.Sprintf("pod-%d-%d", step, random.Int63())
		made := st.MakePod().Namespace(pick("x", "y")).Name(name).UID(name).Label("component", pick("a", "b", "c"))
		if app := pick("", "app-1", "app-2"); app != "" {
			made.Label("app", app)
		}
		pod := made.Obj()
		if random.Intn(4) == 0 {
			pod.Annotations = map[string]string{JobAnnotation: "app-1"}
		}
		info.AddPod(pod)
	}
}
