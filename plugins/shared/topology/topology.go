// SPDX-License-Identifier: Apache-2.0

// Package topology determines the domains of nodes: their host, rack, zone and so on, from near to far.
package topology

import v1 "k8s.io/api/core/v1"

// Domain is a value of a level's topology key, such as a zone. Nodes are in the same domain if they have the same
// pointer.
type Domain struct {
	// Level is the number of the level, 0 for the nearest.
	Level int
	// Value is the value of its topology key.
	Value string
	// Number is unique among the current domains. Numbers are small, so that data about domains can be in a slice:
	// pointers to thousands of hosts do not fit into the processor's cache.
	Number int
	nodes  int
}

// Domains holds the domains of all nodes. It must not be used in parallel.
type Domains struct {
	keys   []string
	levels []map[string]*Domain
	// free are the numbers of removed domains, below next.
	free []int
	next int
}

// New returns empty domains of levels, which are labels of nodes, the nearest first.
func New(keys []string) *Domains {
	d := &Domains{keys: keys, levels: make([]map[string]*Domain, len(keys))}
	for level := range d.levels {
		d.levels[level] = make(map[string]*Domain)
	}
	return d
}

// Enter adds a node and returns its domains, one for each level, or nil for a level whose label is missing or empty.
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

// number returns an unused number.
func (d *Domains) number() int {
	if last := len(d.free) - 1; last >= 0 {
		number := d.free[last]
		d.free = d.free[:last]
		return number
	}
	d.next++
	return d.next - 1
}

// Numbers returns an upper bound: all numbers are below it.
func (d *Domains) Numbers() int { return d.next }

// Leave removes a node from the domains that Enter returned for it. A domain is removed with its last node.
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

// Same reports whether a node is still in the domains that Enter returned for it.
func (d *Domains) Same(domains []*Domain, node *v1.Node) bool {
	for level, key := range d.keys {
		value := node.Labels[key]
		if domain := domains[level]; domain == nil && value != "" || domain != nil && domain.Value != value {
			return false
		}
	}
	return true
}
