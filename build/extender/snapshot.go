// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// snapshot is the plugins' immutable view of the cluster during one request: first the nodes of the request, then all
// other known nodes.
//
// A NodeInfo costs about a microsecond for each of its pods, so those of the other nodes are built only when a plugin
// lists them. Plugins that look at one node at a time never do.
type snapshot struct {
	asked  []*framework.NodeInfo
	byName map[string]*framework.NodeInfo
	all    func() ([]*framework.NodeInfo, error)
}

// newSnapshot builds the NodeInfos of a request's nodes, whose names are distinct.
func newSnapshot(cluster *cluster, nodes []*corev1.Node) (*snapshot, error) {
	s := &snapshot{byName: make(map[string]*framework.NodeInfo, len(nodes))}
	for _, node := range nodes {
		info, err := cluster.nodeInfo(node)
		if err != nil {
			return nil, err
		}
		s.asked = append(s.asked, info)
		s.byName[node.Name] = info
	}
	s.all = sync.OnceValues(func() ([]*framework.NodeInfo, error) {
		others, err := cluster.others(s.byName)
		return append(s.asked[:len(s.asked):len(s.asked)], others...), err
	})
	return s, nil
}

// NodeInfos returns the lister of the nodes.
func (s *snapshot) NodeInfos() framework.NodeInfoLister { return s }

// List returns all nodes.
func (s *snapshot) List() ([]*framework.NodeInfo, error) { return s.all() }

// Get returns the node with a name.
func (s *snapshot) Get(name string) (*framework.NodeInfo, error) {
	if info := s.byName[name]; info != nil {
		return info, nil
	}
	all, err := s.all()
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("nodeinfo not found for node name %q", name)
}

// HavePodsWithAffinityList returns the nodes with pods that have an affinity.
func (s *snapshot) HavePodsWithAffinityList() ([]*framework.NodeInfo, error) {
	return s.having(func(info *framework.NodeInfo) bool { return len(info.PodsWithAffinity) > 0 })
}

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that have a required anti-affinity.
func (s *snapshot) HavePodsWithRequiredAntiAffinityList() ([]*framework.NodeInfo, error) {
	return s.having(func(info *framework.NodeInfo) bool { return len(info.PodsWithRequiredAntiAffinity) > 0 })
}

func (s *snapshot) having(condition func(*framework.NodeInfo) bool) ([]*framework.NodeInfo, error) {
	all, err := s.all()
	if err != nil {
		return nil, err
	}
	var having []*framework.NodeInfo
	for _, info := range all {
		if condition(info) {
			having = append(having, info)
		}
	}
	return having, nil
}

// currentSnapshot is the lister that plugins are created with: it returns the snapshot of the current request. There is
// one such request at a time; see Decider.
type currentSnapshot struct {
	snapshot atomic.Pointer[snapshot]
}

// NodeInfos returns the lister of the nodes. Before the first request there are none.
func (c *currentSnapshot) NodeInfos() framework.NodeInfoLister {
	if current := c.snapshot.Load(); current != nil {
		return current
	}
	return &snapshot{all: func() ([]*framework.NodeInfo, error) { return nil, nil }}
}
