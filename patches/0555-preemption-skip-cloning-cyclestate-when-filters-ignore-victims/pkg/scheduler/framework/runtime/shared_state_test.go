// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
)

// unprepared is a filter without PrepareFilter.
type unprepared struct{ *TestPlugin }

func TestNodeState(t *testing.T) {
	snapshot := internalcache.NewSnapshot(nil, []*v1.Node{named("node")})
	nodeInfo, _ := snapshot.Get("node")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", Labels: map[string]string{"a": "b"}}}
	newer, changed := pod.DeepCopy(), pod.DeepCopy()
	changed.Spec.NodeName = "other"
	passes, here := &preparing{name: "passes", passes: true}, &preparing{name: "here", here: true}
	for name, test := range map[string]struct {
		plugins []framework.Plugin
		pod     *v1.Pod
		shared  bool
	}{
		"plugins that go by the node, or pass all": {[]framework.Plugin{passes, here}, pod, true},
		"another copy of the pod":                  {[]framework.Plugin{passes, here}, newer, true},
		"the pod was changed":                      {[]framework.Plugin{passes, here}, changed, false},
		"one counts pods of other nodes":           {[]framework.Plugin{passes, &preparing{name: "counts"}}, pod, false},
		"one is asked for each node":               {[]framework.Plugin{passes, unprepared{&TestPlugin{name: "unprepared"}}}, pod, false},
	} {
		t.Run(name, func(t *testing.T) {
			fwk := frameworkOf(t, snapshot, 1, test.plugins...)
			state := framework.NewCycleState()
			fwk.RunPreFilterPlugins(context.Background(), state, pod)
			got := fwk.NodeState(state, test.pod)
			if (got != nil) != test.shared {
				t.Fatalf("got %v", got)
			}
			if got == nil {
				return
			}
			fwk.RunPreFilterExtensionRemovePod(context.Background(), got, test.pod, framework.NewPodInfo(pod), nodeInfo)
			if status := fwk.RunFilterPluginsWithNominatedPods(context.Background(), got, test.pod, nodeInfo); status.Message() != "once" {
				t.Errorf("the filters returned %q", status.Message())
			}
			state.Write("key", &framework.PodsToActivate{})
			if _, err := got.Clone().Read("key"); err != nil || got.Clone().IsShared() {
				t.Errorf("a clone lacks the data of the CycleState: %v", err)
			}
		})
	}
}
