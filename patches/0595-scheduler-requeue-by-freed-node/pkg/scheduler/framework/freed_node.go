// SPDX-License-Identifier: Apache-2.0

package framework

import (
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// NodeFilter judges nodes for waiting pods that have the same priority, and the same result on each node.
type NodeFilter struct {
	Priority int32
	Fits     func(node *NodeInfo) bool
}

// FreedNode is the node of a pod that was deleted. It may take a waiting pod if the pod fits after preemption of all
// pods of lower priority: then an attempt places it, or finds victims.
type FreedNode struct {
	node *v1.Node
	pods []*PodInfo
	// without are copies of the node without pods of lower priority. Clones of the cache's NodeInfo would share its
	// counts of claims.
	without map[int32]*NodeInfo
	takes   map[*NodeFilter]bool
}

// NewFreedNode returns the FreedNode of a node with the pods that stay. It must not be used in parallel.
func NewFreedNode(node *v1.Node, pods []*PodInfo) *FreedNode {
	return &FreedNode{node, pods, map[int32]*NodeInfo{}, map[*NodeFilter]bool{}}
}

// MayTake reports whether the node may take a pod. It is true if it is not known which nodes the pod fits.
func (f *FreedNode) MayTake(podInfo *QueuedPodInfo) bool {
	if f == nil || podInfo.NodeFilter == nil {
		return true
	}
	takes, known := f.takes[podInfo.NodeFilter]
	if !known {
		takes = podInfo.NodeFilter.Fits(f.withoutBelow(podInfo.NodeFilter.Priority))
		f.takes[podInfo.NodeFilter] = takes
	}
	return takes
}

func (f *FreedNode) withoutBelow(priority int32) *NodeInfo {
	node := f.without[priority]
	if node == nil {
		node = NewNodeInfo()
		node.SetNode(f.node)
		for _, podInfo := range f.pods {
			if corev1helpers.PodPriority(podInfo.Pod) >= priority {
				node.AddPodInfo(podInfo)
			}
		}
		f.without[priority] = node
	}
	return node
}
