// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"sync/atomic"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// rejections collects the nodes that filters rejected in one search. Searches reuse its memory; the results are
// copied into the diagnosis.
type rejections struct {
	list  []rejection
	count int32
}

type rejection struct {
	nodeInfo *framework.NodeInfo
	status   *framework.Status
}

// reset allocates room for the given number of nodes.
func (r *rejections) reset(nodes int) {
	if len(r.list) < nodes {
		r.list = make([]rejection, nodes)
	}
	r.count = 0
}

// add records a rejected node. Several goroutines may call it at once, once for each node.
func (r *rejections) add(nodeInfo *framework.NodeInfo, status *framework.Status) {
	r.list[atomic.AddInt32(&r.count, 1)-1] = rejection{nodeInfo, status}
}

// moveTo adds all rejected nodes to a diagnosis, and empties the list.
func (r *rejections) moveTo(diagnosis *framework.Diagnosis) {
	list := r.list[:r.count]
	if len(diagnosis.NodeToStatusMap) == 0 && len(list) > 0 {
		diagnosis.NodeToStatusMap = make(framework.NodeToStatusMap, len(list))
	}
	plugin := ""
	for i := range list {
		status := list[i].status
		diagnosis.NodeToStatusMap[list[i].nodeInfo.Node().Name] = status
		if failed := status.FailedPlugin(); i == 0 || failed != plugin {
			plugin = failed
			diagnosis.UnschedulablePlugins.Insert(plugin)
		}
		list[i] = rejection{}
	}
}
