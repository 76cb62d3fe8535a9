// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import "k8s.io/kubernetes/pkg/scheduler/framework"

// largest is the most that a pod counts for of a resource: thousands of such pods do not overflow a quota. A sum that
// stopped at the bound of an int64 would be too small once a pod is subtracted.
const largest = 1 << 50

// bounded limits a pod's request to what a quota can count.
func bounded(request *framework.Resource) *framework.Resource {
	limit := func(amount int64) int64 {
		if amount > largest {
			return largest
		}
		return amount
	}
	request.MilliCPU, request.Memory = limit(request.MilliCPU), limit(request.Memory)
	for name, amount := range request.ScalarResources {
		request.ScalarResources[name] = limit(amount)
	}
	return request
}
