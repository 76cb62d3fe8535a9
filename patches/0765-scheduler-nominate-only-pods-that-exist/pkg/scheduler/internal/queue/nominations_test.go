// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestNominationOfAPodThatIsGone nominates db-0 when another pod has its name. Its deletion was handled already, so
// nothing would remove the nomination.
func TestNominationOfAPodThatIsGone(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	if err := factory.Core().V1().Pods().Informer().GetStore().Add(st.MakePod().Namespace("shop").Name("db-0").UID("new").Obj()); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[string]int{"old": 0, "new": 1} {
		nominator := NewPodNominator(factory.Core().V1().Pods().Lister())
		pod := st.MakePod().Namespace("shop").Name("db-0").UID(uid).Obj()
		nominator.AddNominatedPod(framework.NewPodInfo(pod), &framework.NominatingInfo{NominatingMode: framework.ModeOverride, NominatedNodeName: "node"})
		if got := len(nominator.NominatedPodsForNode("node")); got != want {
			t.Errorf("the %s pod: %d nominated pods, want %d", uid, got, want)
		}
	}
}
