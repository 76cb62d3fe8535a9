// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zones describes zones with the given CPUs and with enough memory.
func zones(cpus ...int) string {
	var zones []string
	for i, cpu := range cpus {
		zones = append(zones, fmt.Sprintf(`{"name": "node-%d", "type": "Node", "resources": [`+
			`{"name": "cpu", "capacity": %d, "allocatable": %[2]d, "available": %[2]d}, `+
			`{"name": "memory", "capacity": "16Gi", "allocatable": "16Gi", "available": "16Gi"}]}`, i, cpu))
	}
	return "[" + strings.Join(zones, ", ") + "]"
}

// guaranteed describes a pod that kubelet binds to a zone.
func guaranteed(name, cpu string) *corev1.Pod {
	pod := newPod(corev1.NamespaceDefault, name, cpu)
	resources := &pod.Spec.Containers[0].Resources
	resources.Limits = resources.Requests
	return pod
}

func (s *stand) createNodeWithZones(t *testing.T, name string, cpus ...int) {
	t.Helper()
	total := 0
	for _, cpu := range cpus {
		total += cpu
	}
	s.CreateNodes(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(total), resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}},
	})
	s.create(t, "apiVersion: topology.node.k8s.io/v1alpha1\nkind: NodeResourceTopology\nmetadata: {name: %s}\n"+
		"topologyPolicies: [SingleNUMANodePodLevel]\nzones: %s\n", name, zones(cpus...))
}

func TestAPodGoesToTheNodeOfWhichASingleZoneHasRoom(t *testing.T) {
	s := newStand(t)
	// By requests, the wide node is better.
	s.createNodeWithZones(t, "wide", 4, 4, 4, 4)
	s.createNodeWithZones(t, "narrow", 6, 2)
	s.start(t, "numa.yaml")
	none := s.CreatePod(t, guaranteed("fits-no-zone", "7"))
	s.AwaitPending(t, none.Namespace, none.Name, "cannot align")
	fits := s.CreatePod(t, guaranteed("fits-one-zone", "6"))
	if node := s.AwaitBound(t, fits); node != "narrow" {
		t.Errorf("a pod is bound to %s, want narrow, the only node with such a zone", node)
	}
	// The plugin ignores pods that kubelet binds to no zone.
	burstable := s.CreatePod(t, newPod(corev1.NamespaceDefault, "needs-no-zone", "5"))
	if node := s.AwaitBound(t, burstable); node != "wide" {
		t.Errorf("a pod that is not Guaranteed is bound to %s, want wide", node)
	}
	s.Kubectl(t, t.Context(), "patch", "noderesourcetopologies", "wide", "--type=merge", "--patch", `{"zones": `+zones(8, 8)+`}`)
	if node := s.AwaitBound(t, none); node != "wide" {
		t.Errorf("the first pod is bound to %s, want wide, which has larger zones now", node)
	}
}
