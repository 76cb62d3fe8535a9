// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// snapshot is one whose nodes a test changes.
type snapshot struct {
	framework.NodeInfoLister
	all []*framework.NodeInfo
	err error
}

func (s *snapshot) NodeInfos() framework.NodeInfoLister  { return s }
func (s *snapshot) List() ([]*framework.NodeInfo, error) { return s.all, s.err }

// telling is a snapshot that knows what has changed.
type telling struct {
	snapshot
	changed []*framework.NodeInfo
	now     int64
	ok      bool
	asked   []int64
}

func (s *telling) ChangedSince(position int64) ([]*framework.NodeInfo, int64, bool) {
	s.asked = append(s.asked, position)
	return s.changed, s.now, s.ok
}

// told records what an observer was told, and fails a test at an impossible change.
type told struct {
	t     *testing.T
	nodes map[string]*v1.Node
	pods  map[string]map[*v1.Pod]bool
	calls int
}

func newTold(t *testing.T) *told {
	return &told{t: t, nodes: map[string]*v1.Node{}, pods: map[string]map[*v1.Pod]bool{}}
}

func (o *told) NodeChanged(before, after *v1.Node, pods []*v1.Pod) {
	o.calls++
	name := ""
	if before != nil {
		name = before.Name
	} else {
		name = after.Name
	}
	if o.nodes[name] != before {
		o.t.Errorf("node %s was %p, and is said to have been %p", name, o.nodes[name], before)
	}
	if len(pods) != len(o.pods[name]) {
		o.t.Errorf("node %s changes with %d pods, and %d were told", name, len(pods), len(o.pods[name]))
	}
	if after == nil {
		delete(o.nodes, name)
		delete(o.pods, name)
		return
	}
	o.nodes[name] = after
	if o.pods[name] == nil {
		o.pods[name] = map[*v1.Pod]bool{}
	}
}

func (o *told) PodAdded(node *v1.Node, pod *v1.Pod) {
	o.calls++
	if o.nodes[node.Name] != node || o.pods[node.Name][pod] {
		o.t.Errorf("pod %s is told to come to %s, which is not known so, or has it", pod.Name, node.Name)
	}
	o.pods[node.Name][pod] = true
}

func (o *told) PodRemoved(node *v1.Node, pod *v1.Pod) {
	o.calls++
	if o.nodes[node.Name] != node || !o.pods[node.Name][pod] {
		o.t.Errorf("pod %s is told to leave %s, which is not known so, or does not have it", pod.Name, node.Name)
	}
	delete(o.pods[node.Name], pod)
}

// holds compares what was told with the nodes.
func (o *told) holds(all []*framework.NodeInfo) {
	o.t.Helper()
	nodes, pods := map[string]*v1.Node{}, map[string]map[*v1.Pod]bool{}
	for _, nodeInfo := range all {
		node := nodeInfo.Node()
		nodes[node.Name], pods[node.Name] = node, map[*v1.Pod]bool{}
		for _, podInfo := range nodeInfo.Pods {
			pods[node.Name][podInfo.Pod] = true
		}
	}
	for name, node := range nodes {
		// DeepEqual would take a copy of the node for it.
		if o.nodes[name] != node {
			o.t.Fatalf("another object is told for %s than there is", name)
		}
	}
	if len(o.nodes) != len(nodes) || !reflect.DeepEqual(o.pods, pods) {
		o.t.Fatalf("what was told is not what there is")
	}
}

// TestFollow changes nodes and pods at random.
func TestFollow(t *testing.T) {
	for seed := int64(1); seed <= 20; seed++ {
		random := rand.New(rand.NewSource(seed))
		s, o, f := &snapshot{}, newTold(t), &Follower{}
		for step := 0; step < 200; step++ {
			for n := random.Intn(5); n > 0; n-- {
				change(t, s, random, step)
			}
			if err := f.Follow(s, o); err != nil {
				t.Fatal(err)
			}
			o.holds(s.all)
			before := o.calls
			if err := f.Follow(s, o); err != nil || o.calls != before {
				t.Fatalf("nothing has changed, and there were %d calls and the error %v", o.calls-before, err)
			}
		}
	}
}

func change(t *testing.T, s *snapshot, random *rand.Rand, step int) {
	what := random.Intn(12)
	if len(s.all) == 0 || what == 0 {
		s.all = append(s.all, plugintest.NodeInfo(st.MakeNode().Name(fmt.Sprintf("node-%d-%d", step, len(s.all))).Obj()))
		return
	}
	i := random.Intn(len(s.all))
	info := s.all[i]
	switch {
	case what == 1:
		s.all = append(append([]*framework.NodeInfo{}, s.all[:i]...), s.all[i+1:]...)
	case what == 2: // another object of the node
		info.SetNode(info.Node().DeepCopy())
	case what == 3: // a node that goes and comes again between two looks
		s.all[i] = plugintest.NodeInfo(info.Node().DeepCopy())
	case what < 6 && len(info.Pods) > 0:
		if err := info.RemovePod(info.Pods[random.Intn(len(info.Pods))].Pod); err != nil {
			t.Fatal(err)
		}
	case what < 8 && len(info.Pods) > 0: // a pod's update
		old := info.Pods[random.Intn(len(info.Pods))].Pod
		if err := info.RemovePod(old); err != nil {
			t.Fatal(err)
		}
		info.AddPod(old.DeepCopy())
	default:
		name := fmt.Sprintf("pod-%d-%d", step, random.Int63())
		info.AddPod(st.MakePod().Name(name).UID(name).Obj())
	}
}

func TestFollowUsesTheListOfChanges(t *testing.T) {
	node := plugintest.NodeInfo(st.MakeNode().Name("node").Obj())
	other := plugintest.NodeInfo(st.MakeNode().Name("other").Obj())
	s := &telling{snapshot: snapshot{all: []*framework.NodeInfo{node, other}}, now: 7}
	o, f := newTold(t), &Follower{}
	follow := func() {
		t.Helper()
		if err := f.Follow(s, o); err != nil {
			t.Fatal(err)
		}
		o.holds(s.all)
	}
	follow()

	// The list is not looked at: it would fail.
	s.err = errors.New("not to be listed")
	node.AddPod(st.MakePod().Name("pod").UID("pod").Obj())
	s.changed, s.now, s.ok = []*framework.NodeInfo{node, node}, 9, true
	follow()

	// A node is gone, so the snapshot does not know what has changed.
	s.err, s.all, s.changed, s.now, s.ok = nil, []*framework.NodeInfo{other}, nil, 20, false
	follow()
	if want := []int64{0, 7, 9}; !reflect.DeepEqual(s.asked, want) {
		t.Errorf("asked for the changes since %v, want %v", s.asked, want)
	}
}

func TestFollowAfterAnError(t *testing.T) {
	s := &telling{snapshot: snapshot{err: errors.New("no list")}, now: 7}
	f := &Follower{}
	if err := f.Follow(s, newTold(t)); err == nil {
		t.Fatal("no error")
	}
	node := plugintest.NodeInfo(st.MakeNode().Name("node").Obj())
	s.err, s.all = nil, []*framework.NodeInfo{node}
	o := newTold(t)
	if err := f.Follow(s, o); err != nil {
		t.Fatal(err)
	}
	o.holds(s.all)
	if s.asked[1] != 0 {
		t.Errorf("after an error it asked for the changes since %d, want 0: all nodes", s.asked[1])
	}
}

// updating is a snapshot that calls after its updates.
type updating struct {
	telling
	calls []func()
}

func (s *updating) OnUpdate(call func()) { s.calls = append(s.calls, call) }

// TestFollowsLargeChangesByItself verifies that a plugin follows large changes although no cycle asks it.
func TestFollowsLargeChangesByItself(t *testing.T) {
	s, f, o := &updating{}, &Follower{}, newTold(t)
	for i := 0; i < 2*mostBehind; i++ {
		pod := st.MakePod().Name("pod").UID(fmt.Sprint(i)).Obj()
		s.all = append(s.all, plugintest.NodeInfo(st.MakeNode().Name(fmt.Sprint("node-", i)).Obj(), pod))
	}
	for i := 0; i < 2; i++ {
		if err := f.Follow(s, o); err != nil || len(s.calls) != 1 {
			t.Fatalf("%v, with %d calls", err, len(s.calls))
		}
	}
	s.ok = true
	for i, node := range s.all[:mostBehind] {
		if err := node.RemovePod(node.Pods[0].Pod); err != nil {
			t.Fatal(err)
		}
		s.changed = s.all[:i+1]
		before := len(f.nodes["node-0"].pods)
		s.calls[0]()
		if after := len(f.nodes["node-0"].pods); after != before && i < mostBehind-1 {
			t.Fatalf("it follows %d changed nodes", i+1)
		}
	}
	o.holds(s.all)
	s.ok, s.all = false, s.all[1:]
	s.calls[0]()
	o.holds(s.all)
}
