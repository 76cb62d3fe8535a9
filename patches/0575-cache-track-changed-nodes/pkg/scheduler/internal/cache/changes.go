// SPDX-License-Identifier: Apache-2.0

package cache

import "k8s.io/kubernetes/pkg/scheduler/framework"

// changes is the list of the latest changed nodes of a snapshot, in order. Positions count all changes since the
// start.
type changes struct {
	nodes []*framework.NodeInfo
	// forgotten is the number of earlier changes, which are no longer in the list.
	forgotten int64
	// table is that of the current list of nodes, once it was asked for twice.
	table *framework.NodeTable
	asked bool
}

// maxChanges is the length of the list. Callers with an older position must check all nodes.
const maxChanges = 1024

func (c *changes) add(node *framework.NodeInfo) {
	if len(c.nodes) == maxChanges {
		c.forgotten += maxChanges / 2
		c.nodes = append(make([]*framework.NodeInfo, 0, maxChanges), c.nodes[maxChanges/2:]...)
	}
	c.nodes = append(c.nodes, node)
	if c.table != nil {
		c.table.Update(node)
	}
}

// forget invalidates all positions returned so far, and the table.
func (c *changes) forget() {
	c.table, c.asked = nil, false
	c.forgotten = c.now() + 1
	c.nodes = nil
}

func (c *changes) now() int64 { return c.forgotten + int64(len(c.nodes)) }

// since returns the nodes that changed since a position. It returns false if the position is too old.
func (c *changes) since(position int64) (changed []*framework.NodeInfo, ok bool) {
	if position < c.forgotten || position > c.now() {
		return nil, false
	}
	return c.nodes[position-c.forgotten:], true
}

// ChangedSince returns the nodes whose NodeInfo changed since the snapshot was at a position, and its current
// position. Position 0 is always too old. ok is false if nodes were added or removed, or if there were too many
// changes: then every node of the list may have changed.
func (s *Snapshot) ChangedSince(position int64) (changed []*framework.NodeInfo, now int64, ok bool) {
	if position > 0 {
		changed, ok = s.changes.since(position)
	}
	return changed, s.changes.now(), ok
}

// NodeTable returns the nodes of the snapshot by their index in its list. It returns nil the first time that it is called for
// a list: a list that changes for each pod is not worth a table.
func (s *Snapshot) NodeTable() *framework.NodeTable {
	if c := &s.changes; c.table == nil && c.asked {
		c.table = framework.NewNodeTable(s.nodeInfoList)
	}
	s.changes.asked = true
	return s.changes.table
}

// OnUpdate makes each update of the snapshot end with a call, for plugins that keep data between cycles, and may not be
// asked in the next ones.
func (s *Snapshot) OnUpdate(call func()) { s.onUpdate = append(s.onUpdate, call) }

// maxMoves is the number of nodes up to which move is cheaper than rebuilding the lists.
const maxMoves = 8

// move inserts the nodes that changed since a position into the lists of nodes with affinity pods and with required
// anti-affinity pods, or removes them. The lists keep the order of all nodes. It returns false if the lists should be
// rebuilt instead.
func (s *Snapshot) move(position int64, affinity, requiredAntiAffinity bool) bool {
	if !affinity && !requiredAntiAffinity {
		return true
	}
	changed, ok := s.changes.since(position)
	if !ok || len(changed) > maxMoves {
		return false
	}
	for _, node := range changed {
		if affinity {
			list := &s.havePodsWithAffinityNodeInfoList
			*list = s.moved(*list, node, len(node.PodsWithAffinity) > 0)
		}
		if requiredAntiAffinity {
			list := &s.havePodsWithRequiredAntiAffinityNodeInfoList
			*list = s.moved(*list, node, len(node.PodsWithRequiredAntiAffinity) > 0)
		}
	}
	return true
}

// moved returns the list with or without the node. It does not change a list that was handed out.
func (s *Snapshot) moved(list []*framework.NodeInfo, node *framework.NodeInfo, listed bool) []*framework.NodeInfo {
	before := 0
	for _, other := range s.nodeInfoList {
		if other == node {
			break
		}
		if before < len(list) && list[before] == other {
			before++
		}
	}
	was := before < len(list) && list[before] == node
	if was == listed {
		return list
	}
	moved := append(make([]*framework.NodeInfo, 0, len(list)+1), list[:before]...)
	if listed {
		return append(append(moved, node), list[before:]...)
	}
	return append(moved, list[before+1:]...)
}
