// SPDX-License-Identifier: Apache-2.0

package podindex

import (
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// cluster is a snapshot with an index.
type cluster struct {
	framework.SharedLister
	index Index
	infos []*framework.NodeInfo
	made  int
}

func (c *cluster) PodIndex() *Index { return &c.index }

func newCluster(nodes int) *cluster {
	c := &cluster{}
	for i := 0; i < nodes; i++ {
		info := framework.NewNodeInfo()
		info.SetNode(st.MakeNode().Name(fmt.Sprint("node-", i)).Label("zone", fmt.Sprint(i%3)).Obj())
		c.infos = append(c.infos, info)
	}
	return c
}

// add adds a pod to a node.
func (c *cluster) add(i int, pod *st.PodWrapper) {
	c.made++
	name := fmt.Sprint("pod-", c.made)
	c.infos[i].AddPod(pod.Namespace("default").Name(name).UID(name).Obj())
	c.index.Update(c.infos[i])
}

// ask reports whether the index can be asked with a label.
func (c *cluster) ask(terms bool, key string) bool {
	x := Begin(c, c.infos, terms, labels.SelectorFromSet(labels.Set{key: "1"}))
	if x != nil {
		x.End()
	}
	return x != nil
}

func (c *cluster) dump() map[string]*framework.NodeInfo {
	nodes := make(map[string]*framework.NodeInfo)
	for _, info := range c.infos {
		nodes[info.Node().Name] = info.Clone()
	}
	return nodes
}

// TestMatchingFollowsTheSnapshot changes a cluster at random.
func TestMatchingFollowsTheSnapshot(t *testing.T) {
	for seed := int64(0); seed < 20; seed++ {
		random := rand.New(rand.NewSource(seed))
		c, most := newCluster(2*MinNodes), int32(0)
		for step := 0; step < 300; step++ {
			i := random.Intn(len(c.infos))
			switch info := c.infos[i]; {
			case random.Intn(20) == 0 && len(c.infos) > MinNodes:
				c.index.Remove(info.Node().Name)
				c.infos = append(c.infos[:i], c.infos[i+1:]...)
			case random.Intn(20) == 0:
				c.infos = append(c.infos, newCluster(1).infos...)
				node := c.infos[len(c.infos)-1]
				node.SetNode(st.MakeNode().Name(fmt.Sprint("new-", seed, step)).Obj())
				c.index.Update(node)
			case len(info.Pods) > 0 && random.Intn(2) == 0:
				now := info.Clone()
				if err := now.RemovePod(info.Pods[random.Intn(len(info.Pods))].Pod); err != nil {
					t.Fatal(err)
				}
				*info = *now
				c.index.Update(info)
			default:
				c.infos[i] = info.Clone()
				pod := st.MakePod().Label([]string{"app", "tier"}[random.Intn(2)], fmt.Sprint(random.Intn(3)))
				if random.Intn(4) == 0 {
					pod.Terminating()
				}
				c.add(i, pod.PodAffinityExists("app", "zone", st.PodAffinityWithRequiredReq))
			}
			c.index.BeginUpdate()
			selector := labels.SelectorFromSet(labels.Set{[]string{"app", "tier"}[random.Intn(2)]: fmt.Sprint(random.Intn(3))})
			x := Begin(c, c.infos, true, selector)
			if x == nil {
				t.Fatalf("seed %d, step %d: there is no index", seed, step)
			}
			if n := int32(len(c.infos)); n > most {
				most = n
			}
			if x.Slots() > most {
				t.Fatalf("seed %d, step %d: %d slots for at most %d nodes", seed, step, x.Slots(), most)
			}
			pods := x.Matching("default", selector)
			for _, info := range c.infos {
				want := int32(0)
				for _, pod := range info.Pods {
					if pod.Pod.DeletionTimestamp == nil && selector.Matches(labels.Set(pod.Pod.Labels)) {
						want++
					}
				}
				if slot, ok := x.Slot(info.Node()); !ok || pods[slot] != want {
					t.Fatalf("seed %d, step %d: %d pods match %s, want %d", seed, step, pods[slot], selector, want)
				}
			}
			x.End()
			if differs := Compare(c, c.dump()); len(differs) > 0 {
				t.Fatalf("seed %d, step %d: %q", seed, step, differs)
			}
		}
	}
}

// TestUselessGroupsAreNotKept has a label and a term that each pod has of its own.
func TestUselessGroupsAreNotKept(t *testing.T) {
	c := newCluster(MinNodes)
	for i := 0; i < 2*fewGroups; i++ {
		own := fmt.Sprint("own-", i)
		c.add(i%len(c.infos), st.MakePod().Label("app", "1").Label("own", own).
			PodAffinityExists(own, "zone", st.PodAffinityWithPreferredReq))
	}
	if c.ask(false, "own") {
		t.Error("pods are grouped by a label of their own")
	}
	if c.index.slots != nil || len(c.index.kinds.in) > 0 {
		t.Error("useless groups are kept")
	}
	if !c.ask(false, "app") {
		t.Error("pods are not grouped by another label")
	}
	if c.ask(false, "own") {
		t.Error("pods are grouped by a refused label")
	}
	own := labels.SelectorFromSet(labels.Set{"own": "1"})
	if _, ok := c.index.missing([]labels.Selector{own}); ok {
		t.Error("a label is not refused")
	}
	c.index.updates += idleUpdates + 1
	if missing, ok := c.index.missing([]labels.Selector{own, own}); !ok || len(missing) != 1 {
		t.Errorf("later: missing %q, asked again: %v", missing, ok)
	}
	c.index.updates -= idleUpdates + 1
	if c.ask(true, "app") || len(c.index.terms.in) > 0 {
		t.Error("terms that no other pod has are grouped")
	}
	// The same happens to an index whose groups become useless.
	c = newCluster(MinNodes)
	if !c.ask(true, "own") {
		t.Fatal("there is no index of an empty cluster")
	}
	for i := 0; i < 2*fewGroups; i++ {
		c.add(i%len(c.infos), st.MakePod().Label("own", fmt.Sprint(i)))
	}
	c.index.replaced = 0
	if c.index.BeginUpdate(); c.index.slots != nil {
		t.Error("groups that became useless are kept")
	}
	// It costs more to follow many replaced pods than to read them.
	c = newCluster(1)
	for i := 0; i < 2*fewGroups; i++ {
		if c.ask(false, "app") != (i >= minPods) {
			t.Fatalf("there is an index of %d pods: %v", i, i < minPods)
		}
		c.add(0, st.MakePod())
		c.index.BeginUpdate()
	}
	for i := 0; i < 4*fewGroups; i++ {
		c.add(0, st.MakePod())
	}
	if c.index.BeginUpdate(); c.index.slots != nil {
		t.Error("the index follows when half of the pods are replaced")
	}
}

func TestIndexIsNotBuiltTooOften(t *testing.T) {
	c := newCluster(MinNodes)
	for i := 0; i < firstBuilds; i++ {
		if !c.ask(false, fmt.Sprint("key-", i)) {
			t.Fatalf("pods are not grouped by label %d", i)
		}
	}
	if c.ask(false, "one-more") {
		t.Error("the index is built once more")
	}
	for i := 0; i < updatesPerBuild; i++ {
		c.index.BeginUpdate()
	}
	if !c.ask(false, "one-more") {
		t.Error("the index is not built again")
	}
	for i := 0; len(c.index.keys) < maxKeys; i++ {
		c.index.builds = 0
		c.ask(false, fmt.Sprint("key-", i))
	}
	c.index.builds = 0
	if c.ask(false, "too-many") || !c.ask(false, "one-more") {
		t.Error("the number of labels is not bounded")
	}
	// Builds that were not used for long do not add up.
	c.index.updates = 100 * firstBuilds * updatesPerBuild
	c.index.clear()
	for i := 0; i <= firstBuilds; i++ {
		if c.ask(false, fmt.Sprint("key-", i)) != (i < firstBuilds) {
			t.Errorf("much later, the index is built for label %d: %v", i, i >= firstBuilds)
		}
	}
	if c.infos = c.infos[1:]; c.ask(false, "one-more") {
		t.Error("the index is used for other nodes than its own")
	}
}

// TestNothingIsKept has an index of pods that are gone, and then one that is not asked.
func TestNothingIsKept(t *testing.T) {
	c := newCluster(MinNodes)
	gone := make(chan struct{}, 1000)
	for i := range c.infos {
		c.add(i, st.MakePod().Label("app", fmt.Sprint(i)))
		runtime.SetFinalizer(c.infos[i].Pods[0].Pod, func(*v1.Pod) { gone <- struct{}{} })
	}
	c.ask(true, "app")
	for _, info := range c.infos {
		now := framework.NewNodeInfo()
		now.SetNode(info.Node())
		*info = *now
		c.index.Update(info)
	}
	err := wait.PollImmediate(10*time.Millisecond, wait.ForeverTestTimeout, func() (bool, error) {
		runtime.GC()
		return len(gone) == len(c.infos), nil
	})
	if err != nil {
		t.Errorf("%d of %d deleted pods are collected", len(gone), len(c.infos))
	}
	if n := c.index.kinds.count + c.index.terms.count + len(c.index.kinds.in); n > 0 {
		t.Errorf("%d groups are kept", n)
	}
	for i := 0; i <= idleUpdates; i++ {
		if c.index.slots == nil {
			t.Fatalf("the index is dropped after %d updates", i)
		}
		c.index.BeginUpdate()
	}
	if c.index.slots != nil {
		t.Error("an idle index is kept")
	}
}

// TestSumsAreUsedAgain sums by topology keys with few and with many values, in both orders, while nodes come and go.
func TestSumsAreUsedAgain(t *testing.T) {
	c := newCluster(MinNodes)
	for i := 0; i < 10*MinNodes; i++ {
		for _, keys := range [][]string{{"name", "zone"}, {"zone", "name"}} {
			x := Begin(c, c.infos, true)
			sums := []*Sums{x.NewSums(), x.NewSums()}
			for _, s := range sums {
				s.by(keys[0])
				s.by(keys[1])
			}
			for _, s := range sums {
				s.Take(func(string, string, int64) {})
			}
			if n := len(x.spare); n > 4 {
				t.Fatalf("%d sums are kept", n)
			}
			x.End()
		}
		at := i % len(c.infos)
		c.index.BeginUpdate()
		c.index.Remove(c.infos[at].Node().Name)
		c.infos[at] = framework.NewNodeInfo()
		c.infos[at].SetNode(st.MakeNode().Name(fmt.Sprint("new-", i)).Label("name", fmt.Sprint(i)).Label("zone", "0").Obj())
		c.index.Update(c.infos[at])
	}
}

// TestFewNodesRemain removes most nodes of an index.
func TestFewNodesRemain(t *testing.T) {
	c := newCluster(4 * MinNodes)
	c.ask(false, "app")
	for len(c.infos) > MinNodes {
		c.index.Remove(c.infos[0].Node().Name)
		c.infos = c.infos[1:]
		c.index.BeginUpdate()
	}
	if c.index.slots != nil || BeginExisting(c, c.infos) != nil {
		t.Error("an index with mostly free slots is kept")
	}
	if !c.ask(false, "app") || c.index.Slots() != MinNodes {
		t.Errorf("the new index has %d slots", c.index.Slots())
	}
	if x := BeginExisting(c, c.infos); x == nil {
		t.Error("there is no index")
	} else {
		x.End()
	}
}

func TestTopologies(t *testing.T) {
	c := newCluster(MinNodes)
	c.ask(false, "app")
	x := Begin(c, c.infos, false)
	defer x.End()
	for i := 0; i < 2*maxTopologies; i++ {
		x.updates++
		x.Topology(fmt.Sprint(i))
		x.Topology("zone")
	}
	if _, kept := x.topologies["zone"]; !kept || len(x.topologies) > maxTopologies {
		t.Errorf("%d topologies are kept, among them the one asked last: %v", len(x.topologies), kept)
	}
	given := x.Topology("zone")
	before := Values{Names: append([]string(nil), given.Names...), Numbers: make(map[string]int32)}
	for name, number := range given.Numbers {
		before.Numbers[name] = number
	}
	for i := 0; i < 1000; i++ {
		c.infos[0].SetNode(st.MakeNode().Name("node-0").Label("zone", fmt.Sprint("new-", i)).Obj())
		x.updates++
		x.update(c.infos[0])
		zone := x.Topology("zone")
		number := zone.BySlot[x.slots["node-0"]]
		if zone.Names[number] != fmt.Sprint("new-", i) || zone.Of(c.infos[0]) != number {
			t.Fatalf("node-0 has %s", zone.Names[number])
		}
		if len(zone.Names) > 4*MinNodes {
			t.Fatalf("%d values are kept", len(zone.Names))
		}
	}
	if !reflect.DeepEqual(given.Names, before.Names) || !reflect.DeepEqual(given.Numbers, before.Numbers) {
		t.Error("values changed after they were given")
	}
	for zone, want := range map[string]int32{"1": before.Numbers["1"], "new-1000": Unknown, "": NoValue} {
		node := st.MakeNode().Name("node-0")
		if zone != "" {
			node.Label("zone", zone)
		}
		// The node is not the one in its slot, or the topology is that of an earlier update.
		info := framework.NewNodeInfo()
		info.SetNode(node.Obj())
		now := x.Topology("zone")
		if number := now.Of(info); zone != "1" && number != want || zone == "1" && now.Names[number] != zone {
			t.Errorf("another node in zone %q has the number %d", zone, number)
		}
		x.update(info)
		if number := given.Of(info); number != want {
			t.Errorf("earlier, a node in zone %q has the number %d, want %d", zone, number, want)
		}
	}
}

// TestCompare corrupts the index, one entry at a time.
func TestCompare(t *testing.T) {
	only := func(gs groups) *group {
		for _, byText := range gs.in {
			for _, g := range byText {
				return g
			}
		}
		return nil
	}
	for name, change := range map[string]func(x *Index){
		"":                           func(*Index) {},
		"a pod is counted twice":     func(x *Index) { only(x.kinds).on[0].n++ },
		"a kind is missing":          func(x *Index) { delete(x.kinds.in, "default") },
		"the number of pods":         func(x *Index) { x.kinds.members++ },
		"a term is on another node":  func(x *Index) { only(x.terms).on[0].slot++ },
		"the value of a node":        func(x *Index) { x.topologies["zone"].Names[1] = "b" },
		"a pod of a node is missing": func(x *Index) { x.counted[0].pods = x.counted[0].pods[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(MinNodes)
			for i := range c.infos {
				c.add(i, st.MakePod().PodAffinityExists("app", "zone", st.PodAffinityWithRequiredReq))
			}
			x := Begin(c, c.infos, true)
			x.Topology("zone")
			change(x)
			x.End()
			if differs := Compare(c, c.dump()); (len(differs) > 0) != (name != "") {
				t.Errorf("differences: %q", differs)
			}
		})
	}
}
