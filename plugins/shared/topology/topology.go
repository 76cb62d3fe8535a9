// SPDX-License-Identifier: Apache-2.0

// Package topology says which domains nodes are in: their host, rack, zone and so on, from near to far.
package topology

import v1 "k8s.io/api/core/v1"

// Domain is one value of a level's topology key, such as a zone. Nodes are in the same domain if they have the very same
// pointer.
type Domain struct {
	// Level is the number of the level, 0 for the nearest.
	Level int
	// Value is the value of its topology key.
	Value string
	// Number is one that no other domain has meanwhile. They are small, so that what is known of domains can be kept in
	// a slice: pointers to thousands of hosts are in no processor's cache.
	Number int
	nodes  int
}

// Domains are those of all nodes that there are. They are for one goroutine at a time.
type Domains struct {
	keys   []string
	levels []map[string]*Domain
	// free are numbers of domains that are gone, below next.
	free []int
	next int
}

// New returns domains of levels, which are labels of nodes, the nearest first.
func New(keys []string) *Domains {
	d := &Domains{keys: keys, levels: make([]map[string]*Domain, len(keys))}
	for level := range d.levels {
		d.levels[level] = make(map[string]*Domain)
	}
	return d
}

// Enter returns a node's domains, one for each level; nil for a level whose label the node does not have, or has empty.
func (d *Domains) Enter(node *v1.Node) []*Domain {
	domains := make([]*Domain, len(d.keys))
	for level, key := range d.keys {
		value := node.Labels[key]
		if value == "" {
			continue
		}
		domain, found := d.levels[level][value]
		if !found {
			domain = &Domain{Level: level, Value: value, Number: d.number()}
			d.levels[level][value] = domain
		}
		domain.nodes++
		domains[level] = domain
	}
	return domains
}

// number returns one that no domain has.
func (d *Domains) number() int {
	if last := len(d.free) - 1; last >= 0 {
		number := d.free[last]
		d.free = d.free[:last]
		return number
	}
	d.next++
	return d.next - 1
}

// Numbers returns what all numbers are below.
func (d *Domains) Numbers() int { return d.next }

// Leave takes a node out of the domains that Enter returned for it. A domain goes with its last node.
func (d *Domains) Leave(domains []*Domain) {
	for level, domain := range domains {
		if domain == nil {
			continue
		}
		if domain.nodes--; domain.nodes == 0 {
			delete(d.levels[level], domain.Value)
			d.free = append(d.free, domain.Number)
		}
	}
}

// Same says whether a node is still in the domains that Enter returned for it.
func (d *Domains) Same(domains []*Domain, node *v1.Node) bool {
	for level, key := range d.keys {
		value := node.Labels[key]
		if domain := domains[level]; domain == nil && value != "" || domain != nil && domain.Value != value {
			return false
		}
	}
	return true
}
