// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

func TestResizedPodWakesOthers(t *testing.T) {
	s := newRequeueing(t, false, false, false)
	s.nodes(testNode("a", "a").Obj())
	large, small := testPod("1").Req(cpu("4")).Node("a").Obj(), testPod("1").Req(cpu("2")).Node("a").Obj()
	s.bound(large)
	s.try(testPod("waiting").Req(cpu("1")).Obj())
	s.updatePodInCache(large, large.DeepCopy())
	if where := s.where("waiting"); where != records.InUnschedulable {
		t.Fatalf("the pod is %q after an update without a resize", where)
	}
	s.updatePodInCache(large, small)
	if where := s.where("waiting"); where == records.InUnschedulable {
		t.Errorf("the pod is %q after a resize", where)
	}
}
