// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestChangedSince changes a cluster at random. It compares the lists of nodes with affinity pods with rebuilt lists,
// and the reported changes with the generations of all nodes.
func TestChangedSince(t *testing.T) {
	for seed := int64(1); seed <= 20; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testChanges(t, rand.New(rand.NewSource(seed))) })
	}
}

func testChanges(t *testing.T, random *rand.Rand) {
	cache := newSchedulerCache(time.Hour, time.Hour, nil)
	snapshot := NewEmptySnapshot()
	type pair struct{ affinity, antiAffinity []*framework.NodeInfo }
	copied := func(p pair) pair {
		return pair{append([]*framework.NodeInfo{}, p.affinity...), append([]*framework.NodeInfo{}, p.antiAffinity...)}
	}
	lists := func() pair {
		return pair{snapshot.havePodsWithAffinityNodeInfoList, snapshot.havePodsWithRequiredAntiAffinityNodeInfoList}
	}
	var position int64
	var known int
	generations := make(map[*framework.NodeInfo]int64)
	nodes := make(map[int]*v1.Node)
	var pods []*v1.Pod
	for step := 0; step < 200; step++ {
		for n := []int{1, 1, 2, 30}[random.Intn(4)]; n > 0; n-- {
			i := random.Intn(40)
			switch what := random.Intn(60); {
			case nodes[i] == nil && (step == 0 || what < 4):
				name, zone := fmt.Sprintf("node-%d", i), fmt.Sprint(i%3)
				nodes[i] = st.MakeNode().Name(name).Label(v1.LabelTopologyZone, zone).Obj()
				cache.AddNode(nodes[i])
			case nodes[i] == nil:
			case what == 0:
				if err := cache.RemoveNode(nodes[i]); err != nil {
					t.Fatal(err)
				}
				delete(nodes, i)
			case what < 30 && len(pods) > 0:
				last := len(pods) - 1
				pick := random.Intn(len(pods))
				pods[pick], pods[last] = pods[last], pods[pick]
				if err := cache.RemovePod(pods[last]); err != nil {
					t.Fatal(err)
				}
				pods = pods[:last]
			default:
				name := fmt.Sprintf("pod-%d-%d-%d", step, n, i)
				pod := st.MakePod().Name(name).Node(nodes[i].Name)
				switch random.Intn(3) {
				case 0:
					pod = pod.PodAffinityExists("app", "zone", st.PodAffinityWithPreferredReq)
				case 1:
					pod = pod.PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq)
				}
				pod.Obj().UID = types.UID(name)
				if err := cache.AddPod(pod.Obj()); err != nil {
					t.Fatal(err)
				}
				pods = append(pods, pod.Obj())
			}
		}
		given, before := lists(), copied(lists())
		if err := cache.UpdateSnapshot(snapshot); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(copied(given), before) {
			t.Fatal("a list that was handed out was changed")
		}
		got := copied(lists())
		cache.updateNodeInfoSnapshotList(snapshot, false)
		if want := copied(lists()); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: the lists are %v, want %v", step, got, want)
		}
		if random.Intn(3) == 0 {
			continue
		}
		changed, now, ok := snapshot.ChangedSince(position)
		if ok {
			known++
			for _, node := range changed {
				generations[node] = node.Generation
			}
			for _, node := range snapshot.nodeInfoList {
				if generations[node] != node.Generation {
					t.Fatalf("step %d: the change of %s is not reported", step, node.Node().Name)
				}
			}
			if len(generations) != len(snapshot.nodeInfoList) {
				t.Fatalf("step %d: the removal of nodes is not reported", step)
			}
		}
		position, generations = now, make(map[*framework.NodeInfo]int64)
		for _, node := range snapshot.nodeInfoList {
			generations[node] = node.Generation
		}
	}
	if known < 20 {
		t.Errorf("changes were known only %d times", known)
	}
}

func TestChangedSinceIsBounded(t *testing.T) {
	var c changes
	c.forget()
	start := c.now()
	var added []*framework.NodeInfo
	for i := 0; i < 3*maxChanges; i++ {
		added = append(added, framework.NewNodeInfo())
		c.add(added[i])
	}
	for i := range added {
		changed, ok := c.since(start + int64(i))
		if ok != (i >= len(added)-len(c.nodes)) {
			t.Fatalf("after %d of %d changes, known: %v", i, len(added), ok)
		}
		if ok && (len(changed) != len(added)-i || changed[0] != added[i]) {
			t.Fatalf("after %d of %d changes, got %d", i, len(added), len(changed))
		}
	}
	if n := len(c.nodes); n < maxChanges/2 || n > maxChanges {
		t.Errorf("the list holds %d changes", n)
	}
	now := c.now()
	if changed, ok := c.since(now); !ok || len(changed) != 0 {
		t.Errorf("without changes, got %v, %v", changed, ok)
	}
	c.forget()
	if _, ok := c.since(now); ok {
		t.Error("a position before nodes were added or removed is still valid")
	}
	if _, _, ok := NewEmptySnapshot().ChangedSince(0); ok {
		t.Error("position 0 is valid")
	}
}
