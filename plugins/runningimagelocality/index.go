// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// index knows which images run on which node, as the scheduler's snapshot has it. Each NodeInfo has a Generation, which
// is another one after every change of the node or of its pods: only the nodes with a new one are looked at. So a
// scheduling cycle compares a number for each node, and counts the containers of the few nodes that changed.
//
// There is no lock. A cycle updates the index in PreScore, and Score only reads it, from several goroutines that start
// later. No cycle runs beside another one, neither in the scheduler nor in an extender.
type index struct {
	names *names
	// sized says that sizes are looked up.
	sized bool

	// images are those that run, by normalised name.
	images map[string]*image
	nodes  map[string]*node
	// seen are the generations of the snapshot's nodes at the last update, in the order of its list.
	seen []int64
	// spare is an empty map for the next node that changes.
	spare map[*image]int32
}

// image is an image that runs.
type image struct {
	name string
	// nodes is how many nodes run it.
	nodes int
	// size is the largest size in bytes that a node which runs it has reported; 0 if none has.
	size int64
}

// node is what runs on a node, as of a generation of its NodeInfo.
type node struct {
	generation int64
	containers map[*image]int32
}

func newIndex(names *names, sized bool) *index {
	return &index{names: names, sized: sized, images: map[string]*image{}, nodes: map[string]*node{}, spare: map[*image]int32{}}
}

// update looks at the nodes of a snapshot that changed since the last one, and forgets those that are gone.
func (x *index) update(all []*framework.NodeInfo) {
	for i, nodeInfo := range all {
		if i == len(x.seen) {
			x.seen = append(x.seen, 0)
		}
		if x.seen[i] == nodeInfo.Generation || nodeInfo.Node() == nil {
			continue
		}
		x.seen[i] = nodeInfo.Generation
		name := nodeInfo.Node().Name
		known, found := x.nodes[name]
		if !found {
			known = &node{containers: map[*image]int32{}}
			x.nodes[name] = known
		}
		if !found || known.generation != nodeInfo.Generation {
			known.generation = nodeInfo.Generation
			x.count(known, nodeInfo)
		}
	}
	x.seen = x.seen[:len(all)]
	if len(x.nodes) > len(all) {
		x.forgetOthers(all)
	}
}

// count counts what runs on a node, and takes back what was counted for it before.
func (x *index) count(on *node, nodeInfo *framework.NodeInfo) {
	now, before := x.spare, on.containers
	for _, podInfo := range nodeInfo.Pods {
		x.names.running(podInfo.Pod, func(name string) {
			found, ok := x.images[name]
			if !ok {
				found = &image{name: name}
				x.images[name] = found
			}
			if now[found] == 0 {
				found.nodes++
			}
			now[found]++
		})
	}
	on.containers = now
	x.takeBack(before)
	x.spare = before
	if x.sized && len(now) > 0 {
		x.readSizes(on, nodeInfo)
	}
}

// takeBack empties what was counted for a node. An image goes with the last node that runs it.
func (x *index) takeBack(containers map[*image]int32) {
	for image := range containers {
		delete(containers, image)
		if image.nodes--; image.nodes == 0 {
			delete(x.images, image.name)
		}
	}
}

// readSizes reads what a node reports of the images that it runs. It reports its 50 largest ones (kubelet's
// nodeStatusMaxImages).
func (x *index) readSizes(on *node, nodeInfo *framework.NodeInfo) {
	reported := nodeInfo.Node().Status.Images
	for i := range reported {
		for _, written := range reported[i].Names {
			name, _ := x.names.normalise(written)
			if image := x.images[name]; on.containers[image] > 0 && image.size < reported[i].SizeBytes {
				image.size = reported[i].SizeBytes
			}
		}
	}
}

// forgetOthers forgets the nodes that are not in the list.
func (x *index) forgetOthers(all []*framework.NodeInfo) {
	listed := sets.NewString()
	for _, nodeInfo := range all {
		if nodeInfo.Node() != nil {
			listed.Insert(nodeInfo.Node().Name)
		}
	}
	for name, gone := range x.nodes {
		if !listed.Has(name) {
			x.takeBack(gone.containers)
			delete(x.nodes, name)
		}
	}
}

// match brings the index up to date with a snapshot's nodes. It returns those of the pod's images that run, and how
// many images run altogether.
func (x *index) match(all []*framework.NodeInfo, pod *v1.Pod, valuation valuation) (found *matches, running int) {
	x.update(all)
	found = &matches{}
	for _, name := range x.names.wanted(pod) {
		if image, runs := x.images[name]; runs {
			worth := valuation.worth(image.size, image.nodes, len(all))
			found.images = append(found.images, match{image: image, worth: worth})
		}
	}
	return found, len(x.images)
}

// score returns what a node is worth, in millionths of a match. It is at most math.MaxInt32: 2,147 matches of full
// worth, more than a node runs containers. A node that the index does not know runs nothing yet.
func (x *index) score(nodeName string, found *matches, valuation valuation) int64 {
	if len(found.images) == 0 {
		return 0
	}
	on, known := x.nodes[nodeName]
	if !known {
		return 0
	}
	var sum int64
	for i := range found.images {
		match := &found.images[i]
		containers := int64(on.containers[match.image])
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
