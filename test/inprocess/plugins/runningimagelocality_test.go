// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/runningimagelocality"
	"kube-scheduler-fork/test/inprocess/decision"
)

// runningOn returns a pod of an application that runs on a node.
func runningOn(node *v1.Node) *v1.Pod {
	pod := application("running-on-" + node.Name)
	pod.Spec.NodeName = node.Name
	pod.Status.Phase = v1.PodRunning
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: image, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}
	return pod
}

// TestReplicasAreNotDrawnTogetherByDefault runs a replica on one of 20 nodes, and schedules 19 more. A replica takes
// more than a tenth of a node, which is about 11 points of NodeResourcesFit. An image on one node of 20 is worth 5
// points, so each replica gets its own node. If it were worth 100, the first node would get seven of them.
func TestReplicasAreNotDrawnTogetherByDefault(t *testing.T) {
	var nodes []*v1.Node
	for i := 0; i < 20; i++ {
		nodes = append(nodes, roomy(fmt.Sprintf("node-%d", i)))
	}
	s := decision.New(t, decision.Options{Config: with(runningimagelocality.Name, "{}"), Plugins: registered(), Nodes: nodes})
	s.Create(runningOn(nodes[0]))
	replicas := map[string]int{nodes[0].Name: 1}
	for _, made := range s.Schedule(pending(0, 19)...) {
		replicas[made.Node]++
	}
	for _, node := range nodes {
		if replicas[node.Name] != 1 {
			t.Errorf("%s has %d replicas, want 1", node.Name, replicas[node.Name])
		}
	}
}
