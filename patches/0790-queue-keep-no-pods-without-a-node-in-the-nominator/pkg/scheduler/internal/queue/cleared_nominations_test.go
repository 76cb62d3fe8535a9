// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestNominatorForgetsPodsWithoutANode(t *testing.T) {
	pod := st.MakePod().Name("pod").UID("pod")
	to := func(node string) *framework.NominatingInfo {
		return &framework.NominatingInfo{NominatingMode: framework.ModeOverride, NominatedNodeName: node}
	}
	for _, test := range []struct {
		name        string
		nominations []*framework.NominatingInfo
	}{
		{"an attempt found no node", []*framework.NominatingInfo{to("")}},
		{"a later attempt found no node", []*framework.NominatingInfo{to("node"), to("")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			nominator := NewPodNominator(nil).(*nominator)
			for _, info := range test.nominations {
				nominator.AddNominatedPod(framework.NewPodInfo(pod.Obj()), info)
			}
			nominator.UpdateNominatedPod(pod.Obj(), framework.NewPodInfo(pod.Obj()))
			if len(nominator.nominatedPods) != 0 || len(nominator.nominatedPodToNode) != 0 {
				t.Errorf("the nominator has %v and %v, want nothing", nominator.nominatedPods, nominator.nominatedPodToNode)
			}
		})
	}
}
