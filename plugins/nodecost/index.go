// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"sort"

	v1 "k8s.io/api/core/v1"
)

// index knows the price of each node of the scheduler's snapshot. It is a changes.Observer: a price is found once for each
// object of the node.
type index struct {
	prices *prices
	// nodes are known by their objects, which never change in place.
	nodes map[*v1.Node]node
	// sorted are the prices of the nodes that have one, from the lowest. To put one in or take one out moves some
	// kilobytes, and happens only when a node's price changes, or a node comes or goes.
	sorted []int64
	// from is how many nodes have their price from where, and ignored of how many something else was passed over.
	from    [sources]int
	ignored int
	// changed says that one of these numbers is another one than the metrics show.
	changed bool
}

// node is what is known of a node. It is small, because a cycle looks at hundreds of them.
type node struct {
	// price is in billionths per hour; it counts only if it comes from somewhere.
	price int64
	from  source
	// ignored says that the node's annotation or label is no price.
	ignored bool
	spot    bool
}

func newIndex(prices *prices) *index {
	return &index{prices: prices, nodes: map[*v1.Node]node{}}
}

// NodeChanged is told when a node comes, goes or is another object.
func (x *index) NodeChanged(before, after *v1.Node, _ []*v1.Pod) {
	var was, is node
	if before != nil {
		was = x.nodes[before]
		delete(x.nodes, before)
	}
	if after != nil {
		is.price, is.from, is.ignored = x.prices.of(after)
		is.spot = x.prices.isSpot(after)
		x.nodes[after] = is
	}
	// Most changes are news of a kubelet that have nothing to do with its price.
	if before != nil && after != nil && was.price == is.price && was.from == is.from && was.ignored == is.ignored {
		return
	}
	x.changed = true
	if before != nil {
		x.count(was, -1)
		if was.from != nowhere {
			at := x.position(was.price)
			x.sorted = append(x.sorted[:at], x.sorted[at+1:]...)
		}
	}
	if after != nil {
		x.count(is, 1)
		if is.from != nowhere {
			at := x.position(is.price)
			x.sorted = append(x.sorted, 0)
			copy(x.sorted[at+1:], x.sorted[at:])
			x.sorted[at] = is.price
		}
	}
}

func (x *index) count(n node, by int) {
	x.from[n.from] += by
	if n.ignored {
		x.ignored += by
	}
}

// position returns where a price stands, or would.
func (x *index) position(price int64) int {
	return sort.Search(len(x.sorted), func(i int) bool { return x.sorted[i] >= price })
}

// median returns the price in the middle of those above 0, of two the mean, rounded down. Free nodes do not count, so that
// many of them do not make a node free whose price is not known. If no node has a price above 0 it is 0: then all nodes
// cost the same.
func (x *index) median() int64 {
	above := x.sorted[x.position(1):]
	n := len(above)
	if n == 0 {
		return 0
	}
	// The sum of two prices is at most a fourth of what an int64 holds.
	return (above[(n-1)/2] + above[n/2]) / 2
}

// PodAdded is told of a pod on a node, which does not change what it costs.
func (x *index) PodAdded(*v1.Node, *v1.Pod) {}

// PodRemoved is told of one that is gone.
func (x *index) PodRemoved(*v1.Node, *v1.Pod) {}
