// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
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

// A pod that is refused for a later field does not keep another one of its gang from being tried.
func TestLaterFieldsAreOfTheShape(t *testing.T) {
	defer func() { laterfields.Pods = laterfields.Store{} }()
	laterfields.Pods.Set("a", &laterfields.Found{Refusal: "no"})
	laterfields.Pods.Set("b", &laterfields.Found{Refusal: "no"})
	shape := func(uid types.UID) string { return Shape(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}, false) }
	if shape("a") != shape("b") || shape("a") == shape("c") {
		t.Errorf("the shapes are %q, %q and without a refusal %q", shape("a"), shape("b"), shape("c"))
	}
}
