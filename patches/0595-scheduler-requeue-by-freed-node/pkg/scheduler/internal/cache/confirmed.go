// SPDX-License-Identifier: Apache-2.0

package cache

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ConfirmedPods returns a node and its pods without assumed ones, whose binding may fail; nil for an unknown node.
func (cache *schedulerCache) ConfirmedPods(name string) (node *v1.Node, pods []*framework.PodInfo) {
	cache.mu.RLock()
	defer cache.mu.RUnlock()
	item, found := cache.nodes[name]
	if !found || item.info.Node() == nil {
		return nil, nil
	}
	for _, podInfo := range item.info.Pods {
		if key, err := framework.GetPodKey(podInfo.Pod); err != nil || !cache.assumedPods.Has(key) {
			pods = append(pods, podInfo)
		}
	}
	return item.info.Node(), pods
}
