// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestAStartedContainerIsSeenByTheNextDecision changes only the pod's status, which is in the scheduler's cache.
func TestAStartedContainerIsSeenByTheNextDecision(t *testing.T) {
	nodes := nodesOf(5, "100")
	s := decision.New(t, decision.Options{
		Config: with(runningimagelocality.Name, "{spreadWeight: 0}"), Plugins: registered(), Nodes: nodes,
	})
	for i, node := range nodes {
		running := s.Complete(runningOn(node))[0]
		starting := running.DeepCopy()
		starting.Status = v1.PodStatus{Phase: v1.PodPending}
		s.Create(starting)
		if _, err := s.Client.CoreV1().Pods("default").UpdateStatus(context.Background(), running, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the scheduler knows that the pod runs", func() bool {
			known, err := s.SchedulerCache.GetPod(running)
			return err == nil && known.Status.Phase == v1.PodRunning
		})
		if made := s.Schedule(application(fmt.Sprintf("pod-%d", i)))[0]; made.Node != node.Name {
			t.Errorf("%s went to %s while only %s ran its image", made.Pod, made.Node, node.Name)
		}
		if err := s.Client.CoreV1().Pods("default").Delete(context.Background(), running.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the scheduler knows that the pod is gone", func() bool {
			_, err := s.SchedulerCache.GetPod(running)
			return err != nil
		})
	}
}
