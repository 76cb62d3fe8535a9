// SPDX-License-Identifier: Apache-2.0

package capacityscheduling

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"sigs.k8s.io/scheduler-plugins/pkg/util"
)

// unlimited is the limit of CPU, memory, storage and pods that are not limited. Extended resources that are missing
// are not limited.
const unlimited = math.MaxInt64

// maxLimit returns a quota's max. A resource that is missing in it is not limited.
func maxLimit(max v1.ResourceList) *framework.Resource {
	limit := framework.NewResource(max)
	if _, ok := max[v1.ResourceCPU]; !ok {
		limit.MilliCPU = unlimited
	}
	if _, ok := max[v1.ResourceMemory]; !ok {
		limit.Memory = unlimited
	}
	return limit
}

// minLimit returns a quota's min; all usage beyond it is borrowed from other quotas. total is the sum of min over all
// quotas. A resource that is missing in min is zero, but one that no quota guarantees cannot be borrowed and is not
// limited.
func minLimit(min, total *framework.Resource) *framework.Resource {
	limit := &framework.Resource{MilliCPU: min.MilliCPU, Memory: min.Memory}
	if total.MilliCPU == 0 {
		limit.MilliCPU = unlimited
	}
	if total.Memory == 0 {
		limit.Memory = unlimited
	}
	for name, quantity := range total.ScalarResources {
		if quantity > 0 {
			limit.SetScalar(name, min.ScalarResources[name])
		}
	}
	return limit
}

// setMinLimits sets the minLimit of all quotas of a snapshot.
func (e ElasticQuotaInfos) setMinLimits() {
	total := framework.NewResource(nil)
	for _, info := range e {
		total.Add(util.ResourceList(info.Min))
	}
	for _, info := range e {
		info.minLimit = minLimit(info.Min, total)
	}
}

func (e *ElasticQuotaInfo) min() *framework.Resource {
	if e.minLimit != nil {
		return e.minLimit
	}
	return e.Min
}
