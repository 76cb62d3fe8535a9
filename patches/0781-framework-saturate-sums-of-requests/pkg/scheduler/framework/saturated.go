// SPDX-License-Identifier: Apache-2.0

package framework

import "math"

// isSaturated reports whether the pods of the node request more of a resource than an int64 can hold. Filters limit the
// sum, but not for pods that are created with a node's name.
func (n *NodeInfo) isSaturated() bool {
	for _, amount := range n.Requested.ScalarResources {
		if amount == math.MaxInt64 {
			return true
		}
	}
	return n.Requested.MilliCPU == math.MaxInt64 || n.Requested.Memory == math.MaxInt64 ||
		n.Requested.EphemeralStorage == math.MaxInt64 ||
		n.NonZeroRequested.MilliCPU == math.MaxInt64 || n.NonZeroRequested.Memory == math.MaxInt64
}

// recountRequests sets the requests of the node to those of its pods: a saturated sum minus a request would be too small.
func (n *NodeInfo) recountRequests() {
	count := &NodeInfo{Requested: &Resource{}, NonZeroRequested: &Resource{}, UsedPorts: HostPortInfo{}, PVCRefCounts: map[string]int{}}
	for _, podInfo := range n.Pods {
		count.AddPodInfo(podInfo)
	}
	n.Requested, n.NonZeroRequested = count.Requested, count.NonZeroRequested
}
