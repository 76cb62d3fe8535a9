// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestHugeRequestsLeaveNothingFree(t *testing.T) {
	free := framework.NewResource(nil)
	for i := 0; i < 2; i++ {
		add(free, &framework.Resource{MilliCPU: 4000, Memory: 1 << 33}, 1)
		requested := &framework.Resource{MilliCPU: math.MaxInt64, Memory: math.MaxInt64, EphemeralStorage: math.MaxInt64}
		requested.SetScalar("example.com/x", math.MaxInt64)
		add(free, requested, -1)
		add(free, requested, -1)
	}
	if free.MilliCPU >= 0 || free.Memory >= 0 || free.EphemeralStorage >= 0 || free.ScalarResources["example.com/x"] >= 0 {
		t.Errorf("%+v is free on full nodes", free)
	}
}
