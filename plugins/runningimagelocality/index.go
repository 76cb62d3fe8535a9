// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"math"
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// index knows which node runs how many containers of which image, so that no scheduling cycle walks over pods.
//
// Informers write to it, each from its own goroutine, and scheduling cycles read from it: each call takes the one lock,
// for about a microsecond, and a reader for about a nanosecond per node that runs the images it asks for. What a reader
// gets is its own and does not change until it gives it back.
//
// It holds nothing that neither runs nor exists: an image goes with its last container, a pod with its last container
// or its deletion, and a node when both its object and its pods are gone. What the index keeps of a pod is what it
// counted for it, by the pod's name, so that it takes back exactly that, whatever an event says that the pod had been
// before.
type index struct {
	names *names

	mu sync.Mutex
	// images are by normalised name.
	images map[string]*image
	// pods are those that run something.
	pods   map[types.NamespacedName]podRecord
	nodes  nodeTable
	sizes  sizeTable
	worths worthPool
}

// image is an image that runs, and where: by the number of the node, in rising order.
type image struct {
	name  string
	nodes []nodeCount
}

type nodeCount struct {
	node, containers int32
}

// podRecord is what was counted for a pod: an image appears for each of the pod's containers, under each of its names.
type podRecord struct {
	node   *nodeRecord
	images []*image
}

func newIndex(names *names) *index {
	return &index{
		names:  names,
		images: map[string]*image{},
		pods:   map[types.NamespacedName]podRecord{},
		nodes:  newNodeTable(),
		sizes:  newSizeTable(),
	}
}

// setPod says what a pod runs and where: the normalised image names of its running containers, one for each container
// or two, the second by digest. None means that it runs nothing any more. It returns how many images run now.
func (x *index) setPod(pod types.NamespacedName, node string, images []string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, known := x.pods[pod]
	if known && old.equal(node, images) || !known && len(images) == 0 {
		return len(x.images)
	}
	// The new ones first, so that what stays is not made again.
	if len(images) > 0 {
		x.pods[pod] = x.count(node, images)
	} else {
		delete(x.pods, pod)
	}
	if known {
		x.takeBack(old)
	}
	return len(x.images)
}

func (x *index) count(node string, images []string) podRecord {
	record := podRecord{node: x.nodes.record(node), images: make([]*image, len(images))}
	record.node.pods++
	for i, name := range images {
		found, ok := x.images[name]
		if !ok {
			found = &image{name: name}
			x.images[name] = found
		}
		found.add(record.node.number, 1)
		record.images[i] = found
	}
	return record
}

func (x *index) takeBack(record podRecord) {
	for _, image := range record.images {
		image.add(record.node.number, -1)
		if len(image.nodes) == 0 {
			delete(x.images, image.name)
		}
	}
	record.node.pods--
	x.nodes.release(record.node)
}

func (r podRecord) equal(node string, images []string) bool {
	if r.node.name != node || len(r.images) != len(images) {
		return false
	}
	for i := range images {
		if r.images[i].name != images[i] {
			return false
		}
	}
	return true
}

// add changes the number of containers on a node. A node without any is not kept.
func (i *image) add(node, containers int32) {
	at := sort.Search(len(i.nodes), func(at int) bool { return i.nodes[at].node >= node })
	if at == len(i.nodes) || i.nodes[at].node != node {
		i.nodes = append(i.nodes, nodeCount{})
		copy(i.nodes[at+1:], i.nodes[at:])
		i.nodes[at] = nodeCount{node: node}
	}
	i.nodes[at].containers += containers
	if i.nodes[at].containers == 0 {
		i.nodes = append(i.nodes[:at], i.nodes[at+1:]...)
	}
}

// setNode says that a node exists, and what sizes of images it reports.
func (x *index) setNode(name string, sizes reportedSizes) {
	x.mu.Lock()
	defer x.mu.Unlock()
	record := x.nodes.record(name)
	if !record.exists {
		record.exists = true
		x.nodes.existing++
	}
	x.sizes.replace(x.names, record.sizes, sizes)
	record.sizes = sizes
}

// removeNode says that a node does not exist. Its pods may go later.
func (x *index) removeNode(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	record, ok := x.nodes.records[name]
	if !ok || !record.exists {
		return
	}
	record.exists = false
	x.nodes.existing--
	x.sizes.replace(x.names, record.sizes, nil)
	record.sizes = nil
	x.nodes.release(record)
}

// matches is what the nodes are worth to a pod, as the index was at one moment. nil is that no node runs any of the
// pod's images.
type matches struct {
	// numbers are the nodes' numbers by name, and worth is by number. worth is empty after recycle.
	numbers map[string]int32
	worth   []nodeWorth
}

// nodeWorth is what a node is worth, in millionths of a match: sum for all of its matches, and best for the most
// valuable.
type nodeWorth struct {
	sum, best int32
}

// match returns what the nodes are worth to a pod with the images of these normalised names, each given once.
func (x *index) match(images []string, valuation valuation) *matches {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found *matches
	for _, name := range images {
		image, ok := x.images[name]
		if !ok {
			continue
		}
		if found == nil {
			found = &matches{numbers: x.nodes.numbers(), worth: x.worths.take(x.nodes.next)}
		}
		worth := valuation.worth(x.sizes.of(name), len(image.nodes), x.nodes.existing)
		if valuation.containers {
			found.addContainers(image.nodes, worth)
		} else {
			found.addImage(image.nodes, worth)
		}
	}
	return found
}

// recycle lets the next reader have the memory of matches that are not used any more.
func (x *index) recycle(found *matches) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.worths.give(found.worth)
	found.worth = nil
}

// addImage adds one match for each node that runs the image.
func (m *matches) addImage(nodes []nodeCount, worth int64) {
	for _, on := range nodes {
		m.add(on.node, worth, 1)
	}
}

// addContainers adds one match for each container.
func (m *matches) addContainers(nodes []nodeCount, worth int64) {
	for _, on := range nodes {
		m.add(on.node, worth, on.containers)
	}
}

// add adds matches of the same worth, up to fullWorth, to a node's. What would not fit counts as 2,147 matches, more
// than a node runs containers.
func (m *matches) add(node int32, worth int64, matches int32) {
	on := &m.worth[node]
	sum := int64(on.sum) + worth*int64(matches)
	if sum > math.MaxInt32 {
		sum = math.MaxInt32
	}
	on.sum = int32(sum)
	if int32(worth) > on.best {
		on.best = int32(worth)
	}
}

// of returns what a node is worth. A node that the index does not know runs nothing yet.
func (m *matches) of(node string) nodeWorth {
	if m == nil {
		return nodeWorth{}
	}
	number, ok := m.numbers[node]
	if !ok || int(number) >= len(m.worth) {
		return nodeWorth{}
	}
	return m.worth[number]
}

// best returns the worth of the most valuable match among the nodes that are scored. What other nodes run does not
// matter to the pod: it cannot go there.
func (m *matches) best(scores framework.NodeScoreList) int64 {
	var best int32
	for i := range scores {
		if scores[i].Score == 0 {
			continue
		}
		if worth := m.of(scores[i].Name).best; worth > best {
			best = worth
		}
	}
	return int64(best)
}

// worthPool keeps the slices of a few scheduling cycles for the next ones. At 5,000 nodes a slice has 40 KB, and what
// the garbage collector takes for that would be most of what the plugin costs. It is not safe for parallel use; the
// index guards it.
type worthPool [][]nodeWorth

// take returns a slice of zeroes.
func (p *worthPool) take(length int32) []nodeWorth {
	if last := len(*p) - 1; last >= 0 {
		worth := (*p)[last]
		*p = (*p)[:last]
		if cap(worth) >= int(length) {
			worth = worth[:length]
			for i := range worth {
				worth[i] = nodeWorth{}
			}
			return worth
		}
	}
	return make([]nodeWorth, length)
}

// give takes a slice back. Scheduling cycles come one after the other, so that more than a few are needed by an
// extender only.
func (p *worthPool) give(worth []nodeWorth) {
	const kept = 4
	if cap(worth) > 0 && len(*p) < kept {
		*p = append(*p, worth)
	}
}
