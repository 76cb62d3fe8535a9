// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/changes"
)

// index maps the running images to nodes of the scheduler's snapshot. PreScore applies the changes since the last
// cycle, and Score only reads it, in goroutines that start later.
type index struct {
	names *names
	// sized is set if the sizes of images are needed.
	sized bool

	follower changes.Follower
	// images are the running images, by normalised name.
	images map[string]*image
	// nodes have the number of running containers of each image.
	nodes map[string]map[*image]int32
	// unread are the changed nodes whose sizes of images must be read.
	unread map[string]*v1.Node
}

// image is a running image.
type image struct {
	name string
	// nodes is the number of nodes that run it.
	nodes int
	// size is the largest size in bytes that a node running it has reported, or 0.
	size int64
}

func newIndex(names *names, sized bool) *index {
	return &index{names: names, sized: sized, images: map[string]*image{}, nodes: map[string]map[*image]int32{}, unread: map[string]*v1.Node{}}
}

// NodeChanged implements changes.Observer.
func (x *index) NodeChanged(before, after *v1.Node, _ []*v1.Pod) {
	switch {
	case after == nil:
		delete(x.nodes, before.Name)
		delete(x.unread, before.Name)
	case before == nil:
		x.nodes[after.Name] = map[*image]int32{}
	case x.sized:
		x.unread[after.Name] = after
	}
}

// PodAdded implements changes.Observer.
func (x *index) PodAdded(node *v1.Node, pod *v1.Pod) {
	on := x.nodes[node.Name]
	x.names.running(pod, func(name string) {
		found, ok := x.images[name]
		if !ok {
			found = &image{name: name}
			x.images[name] = found
		}
		if on[found] == 0 {
			found.nodes++
			if x.sized {
				x.unread[node.Name] = node
			}
		}
		on[found]++
	})
}

// PodRemoved implements changes.Observer. An image is removed with the last node that runs it.
func (x *index) PodRemoved(node *v1.Node, pod *v1.Pod) {
	on := x.nodes[node.Name]
	x.names.running(pod, func(name string) {
		found := x.images[name]
		if on[found]--; on[found] > 0 {
			return
		}
		delete(on, found)
		if found.nodes--; found.nodes == 0 {
			delete(x.images, name)
		}
	})
}

// readSizes reads the sizes of the images that a node runs. A node reports its 50 largest images (kubelet's
// nodeStatusMaxImages).
func (x *index) readSizes(node *v1.Node) {
	on := x.nodes[node.Name]
	if len(on) == 0 {
		return
	}
	reported := node.Status.Images
	for i := range reported {
		for _, written := range reported[i].Names {
			name, _ := x.names.normalise(written)
			if image := x.images[name]; on[image] > 0 && image.size < reported[i].SizeBytes {
				image.size = reported[i].SizeBytes
			}
		}
	}
}

// match applies the changes of a snapshot, and returns the running images of the pod.
func (x *index) match(snapshot framework.SharedLister, pod *v1.Pod, valuation valuation) (*matches, error) {
	if err := x.follower.Follow(snapshot, x); err != nil {
		return nil, err
	}
	for name, node := range x.unread {
		x.readSizes(node)
		delete(x.unread, name)
	}
	found := &matches{}
	for _, name := range x.names.wanted(pod) {
		if image, runs := x.images[name]; runs {
			worth := valuation.worth(image.size, image.nodes, len(x.nodes))
			found.images = append(found.images, match{image: image, worth: worth})
		}
	}
	return found, nil
}

// score returns the worth of a node, in millionths of a match. It is at most math.MaxInt32: 2,147 matches of full
// worth, more than the containers on a node. A node that is not in the index runs nothing yet.
func (x *index) score(nodeName string, found *matches, valuation valuation) int64 {
	if len(found.images) == 0 {
		return 0
	}
	on := x.nodes[nodeName]
	var sum int64
	for i := range found.images {
		match := &found.images[i]
		containers := int64(on[match.image])
		if containers == 0 {
			continue
		}
		atomic.StoreUint32(&match.scored, 1)
		if !valuation.containers {
			containers = 1
		}
		sum += match.worth * containers
	}
	if sum > math.MaxInt32 {
		return math.MaxInt32
	}
	return sum
}
