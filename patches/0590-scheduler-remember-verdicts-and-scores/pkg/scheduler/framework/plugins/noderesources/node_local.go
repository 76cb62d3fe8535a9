// SPDX-License-Identifier: Apache-2.0

package noderesources

import (
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var (
	_ framework.NodeLocalPlugin = &Fit{}
	_ framework.NodeLocalPlugin = &BalancedAllocation{}
)

// NodeLocalKey appends the pod's requests, as Filter and Score compute them.
func (f *Fit) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	request := computePodResourceRequest(pod, f.enablePodOverhead)
	for _, n := range [...]int64{request.MilliCPU, request.Memory, request.EphemeralStorage, int64(len(request.ScalarResources))} {
		key = framework.AppendNumber(key, n)
	}
	if len(request.ScalarResources) > 0 {
		names := make([]string, 0, len(request.ScalarResources))
		for name := range request.ScalarResources {
			names = append(names, string(name))
		}
		sort.Strings(names)
		for _, name := range names {
			key = framework.AppendNumber(framework.AppendText(key, name), request.ScalarResources[v1.ResourceName(name)])
		}
	}
	return f.resourceAllocationScorer.appendKey(pod, key), true
}

// NodeLocalKey appends the pod's requests, as Score computes them.
func (ba *BalancedAllocation) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	return ba.resourceAllocationScorer.appendKey(pod, key), true
}

func (r *resourceAllocationScorer) appendKey(pod *v1.Pod, key []byte) []byte {
	for _, resource := range r.podResources(pod) {
		key = framework.AppendNumber(framework.AppendText(key, string(resource.name)), resource.request)
	}
	return key
}
