// SPDX-License-Identifier: Apache-2.0

package framework

import v1 "k8s.io/api/core/v1"

// NodeTable has the nodes of a snapshot by their index in its list. Its slices are dense, so that a search reads memory in
// order, and touches no NodeInfo that it does not need. It is valid until the list of nodes is made again.
type NodeTable struct {
	NodeInfos []*NodeInfo
	Nodes     []*v1.Node
	// Names are those of Nodes, and Generations those of NodeInfos: a NodeInfo that changes gets one that no other
	// NodeInfo had before.
	Names       []string
	Generations []int64

	index map[*NodeInfo]int32
}

// NewNodeTable returns the table of a list of nodes.
func NewNodeTable(nodeInfos []*NodeInfo) *NodeTable {
	n := len(nodeInfos)
	t := &NodeTable{NodeInfos: nodeInfos, Nodes: make([]*v1.Node, n), Names: make([]string, n), Generations: make([]int64, n),
		index: make(map[*NodeInfo]int32, n)}
	for i, nodeInfo := range nodeInfos {
		t.index[nodeInfo] = int32(i)
		t.Names[i] = nodeInfo.Node().Name
		t.Update(nodeInfo)
	}
	return t
}

// Index returns the index of a NodeInfo of the snapshot.
func (t *NodeTable) Index(nodeInfo *NodeInfo) (int32, bool) {
	i, ok := t.index[nodeInfo]
	return i, ok
}

// Refresh reads all NodeInfos, which a plugin may have changed in the snapshot.
func (t *NodeTable) Refresh() {
	for i, nodeInfo := range t.NodeInfos {
		t.Nodes[i], t.Generations[i] = nodeInfo.Node(), nodeInfo.Generation
	}
}

// Update reads a NodeInfo of the snapshot that has changed.
func (t *NodeTable) Update(nodeInfo *NodeInfo) {
	if i, ok := t.index[nodeInfo]; ok {
		t.Nodes[i], t.Generations[i] = nodeInfo.Node(), nodeInfo.Generation
	}
}
