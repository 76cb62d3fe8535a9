// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// countPods adds the pods that already have a node to a new quota.
func (c *CapacityScheduling) countPods(info *ElasticQuotaInfo) {
	pods, err := c.podLister.Pods(info.Namespace).List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Failed to list the Pods of an elasticQuota", "elasticQuota", info.Namespace)
		return
	}
	for _, pod := range pods {
		if !assignedPod(pod) || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		if err := info.addPodIfNotPresent(pod); err != nil {
			klog.ErrorS(err, "Failed to add Pod to its associated elasticQuota", "pod", klog.KObj(pod))
		}
	}
}
