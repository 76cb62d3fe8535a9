// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
)

// Cluster is the scheduler's own cache, and a lister of its nodes as they are now.
type Cluster struct {
	cache.Cache
	// Snapshot shows the nodes as they were at the last call of NodeInfos.
	Snapshot *cache.Snapshot
	t        testing.TB
	mu       sync.Mutex
}

// NewCluster returns a cluster with nodes, and pods that have a node.
func NewCluster(t testing.TB, objects ...runtime.Object) *Cluster {
	t.Helper()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	c := &Cluster{Cache: cache.New(time.Hour, stop), Snapshot: cache.NewEmptySnapshot(), t: t}
	c.Add(objects...)
	return c
}

// NodeInfos returns the nodes as they are now.
func (c *Cluster) NodeInfos() framework.NodeInfoLister {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.UpdateSnapshot(c.Snapshot); err != nil {
		c.t.Error(err)
	}
	return c.Snapshot.NodeInfos()
}

// All returns all nodes.
func (c *Cluster) All() []*framework.NodeInfo {
	c.t.Helper()
	all, err := c.NodeInfos().List()
	c.Must(err)
	return all
}

// Node returns a node with its pods.
func (c *Cluster) Node(name string) *framework.NodeInfo {
	c.t.Helper()
	info, err := c.NodeInfos().Get(name)
	c.Must(err)
	return info
}

// Add adds nodes, and pods that have a node.
func (c *Cluster) Add(objects ...runtime.Object) {
	c.t.Helper()
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.Node:
			c.AddNode(object)
		case *v1.Pod:
			c.Must(c.AddPod(object))
		}
	}
}

// Change replaces a node by a changed copy, which it returns.
func (c *Cluster) Change(node *v1.Node, change func(*v1.Node)) *v1.Node {
	changed := node.DeepCopy()
	change(changed)
	c.UpdateNode(node, changed)
	return changed
}

// Must ends the test on an error.
func (c *Cluster) Must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}
