// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

const (
	// groupLabel is the label that names the PodGroup of a pod.
	groupLabel = "pod-group.scheduling.sigs.k8s.io"
	// members are the pods of a gang. Each requests memberCPU, so that one gang fills the nodes.
	members, memberCPU, nodes = 20, "2", 5
	// Pods wait longer than the tests, so that no awaited effect comes from a timeout.
	timeout, longTimeout = "permitWaitingTimeSeconds: 60", "permitWaitingTimeSeconds: 900"
)

func (s *stand) createGroup(t *testing.T, name string) {
	t.Helper()
	s.create(t, "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: %s, namespace: default}\n"+
		"spec: {minMember: %d}\n", name, members)
}

func member(group, name string) *corev1.Pod {
	pod := newPod(corev1.NamespaceDefault, name, memberCPU)
	pod.Labels = map[string]string{groupLabel: group}
	return pod
}

// createMembers creates all pods of a group, with the group's name first.
func (s *stand) createMembers(t *testing.T, group string) {
	t.Helper()
	for i := range members {
		s.CreatePod(t, member(group, fmt.Sprintf("%s-%02d", group, i)))
	}
}

// bound counts the bound pods of each group.
func (s *stand) bound(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, pod := range s.pods(t, corev1.NamespaceDefault) {
		if pod.Spec.NodeName != "" {
			counts[pod.Labels[groupLabel]]++
		}
	}
	return counts
}

func (s *stand) awaitBoundGang(t *testing.T, group string) {
	t.Helper()
	s.Await(t, "all pods of the group "+group+" to be bound", func() error {
		bound := s.bound(t)
		return cluster.Unless(bound[group] == members, "bound are %v", bound)
	})
}

// awaitBindings waits until the audit log has the expected number of bindings, each of another pod.
func (s *stand) awaitBindings(t *testing.T, count int) {
	t.Helper()
	var names []string
	s.Await(t, fmt.Sprintf("%d bindings in the audit log", count), func() error {
		names = nil
		for _, event := range s.Audit(t) {
			if object := event.ObjectRef; object != nil && object.Subresource == "binding" && event.ResponseStatus.Code == 201 {
				names = append(names, object.Name)
			}
		}
		return cluster.Unless(len(names) >= count, "there are %d", len(names))
	})
	if sorted := slices.Sorted(slices.Values(names)); len(names) > count || len(slices.Compact(sorted)) < count {
		t.Errorf("bindings are of %v, want %d, each of another pod", names, count)
	}
}

func TestASchedulerThatIsKilledWhileItBindsAGangBindsTheRestLater(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, nodes)
	s.createGroup(t, "red")
	s.createGroup(t, "blue")
	const client = "clientConnection:\n"
	// Two requests per second: bindings are slow enough to stop in the middle.
	slow := s.start(t, "gang.yaml", timeout, longTimeout, client, client+"  qps: 2\n  burst: 2\n")
	s.createMembers(t, "red")
	s.Await(t, "some pods of a gang to be bound", func() error {
		return cluster.Unless(s.bound(t)["red"] > 0, "none is")
	})
	if err := slow.Kill(); err != nil {
		t.Fatal(err)
	}
	if bound := s.bound(t)["red"]; bound >= members {
		t.Fatalf("all %d pods were bound before the scheduler was killed, want some", bound)
	}
	// Meanwhile another gang needs the same room.
	s.createMembers(t, "blue")
	s.start(t, "gang.yaml", timeout, longTimeout)
	s.awaitBoundGang(t, "red")
	if bound := s.bound(t)["blue"]; bound > 0 {
		t.Errorf("%d pods of the other gang are bound, want none", bound)
	}
	s.awaitBindings(t, members)
}
