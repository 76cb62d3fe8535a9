// SPDX-License-Identifier: Apache-2.0

package noderesourcetopology

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	topologyv1alpha1 "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha1"
)

// TestFilterIgnoresResourcesWithoutZone has resources that the node has and none of its zones.
func TestFilterIgnoresResourcesWithoutZone(t *testing.T) {
	list := func(amounts map[v1.ResourceName]string) v1.ResourceList {
		resources := v1.ResourceList{}
		for name, amount := range amounts {
			resources[name] = resource.MustParse(amount)
		}
		return resources
	}
	zones := topologyv1alpha1.ZoneList{}
	for _, name := range []string{"node-0", "node-1"} {
		zones = append(zones, topologyv1alpha1.Zone{Name: name, Type: "Node", Resources: topologyv1alpha1.ResourceInfoList{
			{Name: "cpu", Available: resource.MustParse("4")}, {Name: "memory", Available: resource.MustParse("16Gi")},
		}})
	}
	nodeInfo := framework.NewNodeInfo()
	nodeInfo.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: v1.NodeStatus{Allocatable: list(
		map[v1.ResourceName]string{"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "example.com/nic": "4"})}})
	container := func(cpu string, limited bool, also v1.ResourceName) v1.Container {
		requests := list(map[v1.ResourceName]string{"cpu": cpu, "memory": "1Gi", also: "1"})
		of := v1.Container{Name: "container", Resources: v1.ResourceRequirements{Requests: requests}}
		if limited {
			of.Resources.Limits = requests
		}
		return of
	}
	for name, tt := range map[string]struct {
		containers []v1.Container
		fits       bool
	}{
		"ephemeral storage":                     {[]v1.Container{container("1", true, "ephemeral-storage")}, true},
		"ephemeral storage, burstable":          {[]v1.Container{container("1", false, "ephemeral-storage")}, true},
		"two containers with ephemeral storage": {[]v1.Container{container("1", true, "ephemeral-storage"), container("1", true, "ephemeral-storage")}, true},
		"two containers with a device":          {[]v1.Container{container("1", true, "example.com/nic"), container("1", true, "example.com/nic")}, true},
		"more CPU than a zone has":              {[]v1.Container{container("5", true, "ephemeral-storage")}, false},
		"huge pages that no zone has":           {[]v1.Container{container("1", true, "hugepages-2Mi")}, false},
		"three containers in two zones": {[]v1.Container{container("3", true, "example.com/nic"),
			container("3", true, "example.com/nic"), container("3", true, "example.com/nic")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{Containers: tt.containers}}
			if status := singleNUMAContainerLevelHandler(pod, zones, nodeInfo); status.IsSuccess() != tt.fits {
				t.Errorf("container scope: %v, want success %v", status, tt.fits)
			}
			if len(tt.containers) > 2 {
				return // The sum of the pod fits no zone.
			}
			if status := singleNUMAPodLevelHandler(pod, zones, nodeInfo); status.IsSuccess() != tt.fits {
				t.Errorf("pod scope: %v, want success %v", status, tt.fits)
			}
		})
	}
}
