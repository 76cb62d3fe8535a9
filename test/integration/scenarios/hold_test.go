// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

// TestPodsAreHeldBackUntilALabelOpensThem also checks that the event of a node's label requeues the pod.
func TestPodsAreHeldBackUntilALabelOpensThem(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", ""), newNode("node-2", ""))
	scheduler := s.startScheduler(t, "hold/scheduler.yaml")
	commands := s.commands(t, "docs/plugins.md", "Hold pods back until a label opens them")
	if len(commands) != 3 {
		t.Fatalf("the section has %d commands, want one that creates, and two that open: %q", len(commands), commands)
	}
	s.Kubectl(t, t.Context(), commands[0]...)
	report, training := s.awaitPod(t, "report"), s.awaitPod(t, "training")
	s.AwaitPending(t, report.Namespace, report.Name, `2 pod(s) were denied by rule "on-hold" of PodFilter`)
	s.AwaitPending(t, training.Namespace, training.Name, `2 node(s) were denied by rule "no-driver-yet" of NodeFilter`)

	s.Kubectl(t, t.Context(), commands[1]...)
	s.AwaitBound(t, report)
	s.AwaitPending(t, training.Namespace, training.Name, `2 node(s) were denied by rule "no-driver-yet" of NodeFilter`)

	s.Kubectl(t, t.Context(), commands[2]...)
	if node := s.AwaitBound(t, training); node != "node-2" {
		t.Errorf("the pod is on %s, want the node with the label", node)
	}
	metrics, err := scheduler.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(metrics), `scheduler_queue_incoming_pods_total{event="NodeLabelChange"`) {
		t.Error("no pod was requeued by the event of the node's label, NodeLabelChange")
	}
}

// awaitPod waits until an app has its only pod.
func (s *stand) awaitPod(t *testing.T, app string) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	s.Await(t, "the pod of "+app, func() error {
		pods = s.pods(t, app)
		return cluster.Unless(len(pods) == 1, "%d exist", len(pods))
	})
	return &pods[0]
}
