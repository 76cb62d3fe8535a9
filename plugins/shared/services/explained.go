// SPDX-License-Identifier: Apache-2.0

package services

import "k8s.io/kubernetes/pkg/scheduler/framework"

// mostExplained is the maximum number of nodes that a plugin explains in a decision record.
const mostExplained = 5

// Explained returns the first of the named nodes, without those that the snapshot lacks.
func Explained(handle framework.Handle, names []string) (nodes []*framework.NodeInfo) {
	if len(names) > mostExplained {
		names = names[:mostExplained]
	}
	for _, name := range names {
		if nodeInfo, err := handle.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
			nodes = append(nodes, nodeInfo)
		}
	}
	return nodes
}
