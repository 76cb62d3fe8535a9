// SPDX-License-Identifier: Apache-2.0

package nodecost

import (
	"sort"

	v1 "k8s.io/api/core/v1"
)

// index holds the price of each node of the scheduler's snapshot. It is a changes.Observer: it determines a price once
// for each object of a node.
type index struct {
	prices *prices
	// nodes have the objects of nodes as keys, which never change in place.
	nodes map[*v1.Node]node
	// sorted are the prices of the nodes with one, the lowest first. Inserting or removing one copies some kilobytes,
	// and happens only when a node's price changes, or a node is added or removed.
	sorted []int64
	// from is the number of nodes for each source of their price, and ignored the number of nodes with invalid prices.
	from    [sources]int
	ignored int
	// changed is set if these numbers differ from the metrics.
	changed bool
}

// node is small, because a cycle reads hundreds of them.
type node struct {
	// price is in billionths per hour. It is valid only with a source.
	price int64
	from  source
	// ignored is set if the node's annotation or label is not a price.
	ignored bool
	spot    bool
}

func newIndex(prices *prices) *index {
	return &index{prices: prices, nodes: map[*v1.Node]node{}}
}

// NodeChanged implements changes.Observer.
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
	// Most changes are status updates by a kubelet, which do not affect the price.
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

// position returns the index of a price in sorted, or the index at which to insert it.
func (x *index) position(price int64) int {
	return sort.Search(len(x.sorted), func(i int) bool { return x.sorted[i] >= price })
}

// median returns the median of the prices above 0, rounded down. It ignores free nodes, because otherwise many of them
// would make nodes without a price free. Without prices above 0, it is 0: then all nodes cost the same.
func (x *index) median() int64 {
	above := x.sorted[x.position(1):]
	n := len(above)
	if n == 0 {
		return 0
	}
	// The sum of two prices is at most a fourth of math.MaxInt64.
	return (above[(n-1)/2] + above[n/2]) / 2
}

// PodAdded implements changes.Observer. Prices do not depend on pods.
func (x *index) PodAdded(*v1.Node, *v1.Pod) {}

// PodRemoved implements changes.Observer.
func (x *index) PodRemoved(*v1.Node, *v1.Pod) {}
