// SPDX-License-Identifier: Apache-2.0

// Package changes reports the changes of nodes and their pods in the scheduler's snapshot since the last scheduling
// cycle, for plugins with an index of nodes or pods.
//
// The snapshot has the bound and the assumed pods of all profiles, and all plugins of a cycle see the same. So an index
// is correct from the beginning of a cycle, and misses nothing between informers and assumed pods.
package changes

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Observer receives changes. An object that is removed is the same one that was added, even if it has changed in
// between.
type Observer interface {
	// NodeChanged is called when a node is added (before is nil), replaced by another object, or removed (after is
	// nil). The pods are those that were added on it so far. An added or removed node has none.
	NodeChanged(before, after *v1.Node, pods []*v1.Pod)
	// PodAdded is called for a new pod on a node.
	PodAdded(node *v1.Node, pod *v1.Pod)
	// PodRemoved is called for a removed pod, and before it is added as another object.
	PodRemoved(node *v1.Node, pod *v1.Pod)
}

// Follower holds the nodes and pods that an observer has received. After the first call of Follow, the snapshot makes
// it follow larger changes even if no cycle does, so that it holds few nodes and pods that are gone. It must not be
// used in parallel: a plugin calls Follow at the beginning of a cycle, and cycles do not run in parallel, neither in
// the scheduler nor in an extender.
type Follower struct {
	position int64
	nodes    map[string]*node
	// round counts the comparisons of all nodes.
	round int64
}

// node is the state of a node that the observer has received.
type node struct {
	generation int64
	object     *v1.Node
	pods       []*v1.Pod
	round      int64
}

// teller is a snapshot with a list of changes since a position (patch 0575). Upstream's snapshot has none: then the
// generations of all nodes are compared.
type teller interface {
	ChangedSince(position int64) (changed []*framework.NodeInfo, now int64, ok bool)
}

// caller is a teller that calls a function after each of its updates.
type caller interface {
	framework.SharedLister
	teller
	OnUpdate(call func())
}

// Follow reports the changes since the last call to an observer, which must be the same each time. After an error,
// nothing has changed.
func (f *Follower) Follow(lister framework.SharedLister, observer Observer) error {
	if f.nodes == nil {
		f.nodes = make(map[string]*node)
		if snapshot, calls := lister.(caller); calls {
			snapshot.OnUpdate(func() { f.tend(snapshot, observer) })
		}
	}
	var now int64
	if teller, tells := lister.(teller); tells {
		changed, position, ok := teller.ChangedSince(f.position)
		if ok {
			f.position = position
			for _, nodeInfo := range changed {
				f.look(nodeInfo, observer)
			}
			return nil
		}
		now = position
	}
	all, err := lister.NodeInfos().List()
	if err != nil {
		return err
	}
	f.position = now
	f.round++
	for _, nodeInfo := range all {
		f.look(nodeInfo, observer)
	}
	if len(f.nodes) > len(all) {
		f.forget(observer)
	}
	return nil
}

// mostBehind is the number of changed nodes from which tend follows.
const mostBehind = 16

// tend follows if many nodes have changed since the last cycle that did.
func (f *Follower) tend(snapshot caller, observer Observer) {
	if changed, _, ok := snapshot.ChangedSince(f.position); !ok || len(changed) >= mostBehind {
		// A cycle that follows gets the error.
		_ = f.Follow(snapshot, observer)
	}
}

// look reports the changes of a node.
func (f *Follower) look(nodeInfo *framework.NodeInfo, observer Observer) {
	object := nodeInfo.Node()
	if object == nil {
		return
	}
	known, found := f.nodes[object.Name]
	if !found {
		// No NodeInfo has this generation.
		known = &node{generation: -1}
		f.nodes[object.Name] = known
	}
	known.round = f.round
	if known.generation == nodeInfo.Generation {
		return
	}
	known.generation = nodeInfo.Generation
	if known.object != object {
		before := known.object
		known.object = object
		observer.NodeChanged(before, object, known.pods)
	}
	f.compare(known, nodeInfo.Pods, observer)
}

// compare reports the added and removed pods. Most pods have the same place in the list as before.
func (f *Follower) compare(known *node, now []*framework.PodInfo, observer Observer) {
	same := 0
	for same < len(now) && same < len(known.pods) && known.pods[same] == now[same].Pod {
		same++
	}
	if same == len(now) && same == len(known.pods) {
		return
	}
	// The first pods are the same. A node has few pods, and most changes are at the end. The new slice does not keep
	// removed pods in memory.
	before := known.pods[same:]
	known.pods = append(make([]*v1.Pod, 0, len(now)), known.pods[:same]...)
	for _, podInfo := range now[same:] {
		known.pods = append(known.pods, podInfo.Pod)
	}
	after := known.pods[same:]
	for _, pod := range before {
		if !contains(after, pod) {
			observer.PodRemoved(known.object, pod)
		}
	}
	for _, pod := range after {
		if !contains(before, pod) {
			observer.PodAdded(known.object, pod)
		}
	}
}

func contains(pods []*v1.Pod, pod *v1.Pod) bool {
	for _, other := range pods {
		if other == pod {
			return true
		}
	}
	return false
}

// forget reports the nodes that were missing in the last comparison of all nodes.
func (f *Follower) forget(observer Observer) {
	for name, gone := range f.nodes {
		if gone.round == f.round {
			continue
		}
		for _, pod := range gone.pods {
			observer.PodRemoved(gone.object, pod)
		}
		observer.NodeChanged(gone.object, nil, nil)
		delete(f.nodes, name)
	}
}
