// SPDX-License-Identifier: Apache-2.0

// Package changes tells a plugin that keeps something of nodes and their pods what has changed on the nodes of the
// scheduler's snapshot since its last scheduling cycle.
//
// The snapshot holds the pods that are bound and those that are assumed, of all profiles, as all other plugins of the
// cycle see them. So what is kept is right at the first look of a cycle, and nothing is lost between informers and
// assumptions.
package changes

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Observer is told what has changed. Each object is told gone as the very one that was told to be there, however it has
// changed meanwhile.
type Observer interface {
	// NodeChanged: a node came (before is nil), is another object, or goes (after is nil). The pods are those on it, as
	// told so far; there are none when it comes or goes.
	NodeChanged(before, after *v1.Node, pods []*v1.Pod)
	// PodAdded: a pod is on a node.
	PodAdded(node *v1.Node, pod *v1.Pod)
	// PodRemoved: it is there no more, or comes as another object.
	PodRemoved(node *v1.Node, pod *v1.Pod)
}

// Follower knows the nodes and pods that an observer was told of. It is for one goroutine at a time: a plugin follows
// where a cycle begins, and no cycle runs beside another one, neither in the scheduler nor in an extender.
type Follower struct {
	position int64
	nodes    map[string]*node
	// round counts the looks at all nodes.
	round int64
}

// node is what was told of a node.
type node struct {
	generation int64
	object     *v1.Node
	pods       []*v1.Pod
	round      int64
}

// teller is a snapshot that knows what has changed since a position (patch 0575). Upstream's does not: then the
// generations of all nodes are looked at.
type teller interface {
	ChangedSince(position int64) (changed []*framework.NodeInfo, now int64, ok bool)
}

// Follow tells an observer what has changed since the last call. The observer must be the same each time. An error
// changes nothing.
func (f *Follower) Follow(lister framework.SharedLister, observer Observer) error {
	if f.nodes == nil {
		f.nodes = make(map[string]*node)
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

// look tells what has changed on a node.
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

// compare tells which pods came and went. Most stand where they stood.
func (f *Follower) compare(known *node, now []*framework.PodInfo, observer Observer) {
	same := 0
	for same < len(now) && same < len(known.pods) && known.pods[same] == now[same].Pod {
		same++
	}
	if same == len(now) && same == len(known.pods) {
		return
	}
	// From the first that differs on. Pods are few on a node, and most changes are at the end. A new slice keeps none that
	// are gone.
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

// forget tells of the nodes that were not in the last look at all of them.
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
