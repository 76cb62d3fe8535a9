// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPodsThatSayNothingAreSpreadOverZones(t *testing.T) {
	even := map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2}
	for _, test := range []struct {
		name, config string
		even         bool
	}{
		{"with Kubernetes' own constraints", "", false},
		{"with the cluster's", "fault-domains/scheduler.yaml", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStand(t)
			// Four empty nodes in one zone, and a half-full one in each of the others.
			for _, name := range []string{"node-1", "node-2", "node-3", "node-4"} {
				s.CreateNodes(t, newNode(name, "zone-a"))
			}
			s.CreateNodes(t, newNode("node-5", "zone-b"), newNode("node-6", "zone-c"))
			for _, node := range []string{"node-5", "node-6"} {
				busy := newPod(corev1.NamespaceDefault, "busy", "busy-on-"+node)
				busy.Spec.NodeName = node
				busy.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
				}
				s.CreatePod(t, busy)
			}
			s.startScheduler(t, test.config)
			s.follow(t, "Pods of one service are all in one zone")
			s.awaitCounts(t, "", map[string][2]int{"web": {6, 0}})
			zones := s.zonesOf(t, "web")
			t.Logf("%s: %v", test.name, zones)
			if maps.Equal(zones, even) != test.even {
				t.Errorf("%s the pods are in %v; want them even: %v", test.name, zones, test.even)
			}
		})
	}
}
