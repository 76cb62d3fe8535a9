// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

const (
	// groupLabel is the label that names the PodGroup of a pod.
	groupLabel = "pod-group.scheduling.sigs.k8s.io"
	// members are the pods of a gang. Each requests memberCPU, so that one gang fills the nodes.
	members, memberCPU, nodes = 20, "2", 5
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
