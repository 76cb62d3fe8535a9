// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// MixedNodes returns n nodes that differ for the default plugins: three sizes in three zones, two kinds of disks (the
// label disktype), and every fifth with a PreferNoSchedule taint. The first is node-0.
func MixedNodes(n int) []*v1.Node {
	var nodes []*v1.Node
	for i := 0; i < n; i++ {
		name := fmt.Sprintf("node-%d", i)
		node := st.MakeNode().Name(name).
			Label(v1.LabelHostname, name).
			Label(v1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%3)).
			Label("disktype", []string{"ssd", "hdd"}[i%2]).
			Capacity(map[v1.ResourceName]string{
				v1.ResourceCPU:    []string{"2", "4", "8"}[i%3],
				v1.ResourceMemory: []string{"8Gi", "4Gi", "16Gi"}[i%3],
				v1.ResourcePods:   "20",
			}).Obj()
		if i%5 == 0 {
			node.Spec.Taints = []v1.Taint{{Key: "old", Effect: v1.TaintEffectPreferNoSchedule}}
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// MixedPods returns n pods for MixedNodes: three sizes, two namespaces, two priorities, some that select a disk, some
// that spread over zones, and every eleventh larger than any node. The first is default/pod-0.
func MixedPods(n int) []*v1.Pod {
	var pods []*v1.Pod
	for i := 0; i < n; i++ {
		app := fmt.Sprintf("app-%d", i%4)
		cpu := []string{"100m", "500m", "1"}[i%3]
		if i%11 == 3 {
			cpu = "64"
		}
		pod := st.MakePod().Namespace([]string{"default", "other"}[i%2]).Name(fmt.Sprintf("pod-%d", i)).Label("app", app).
			Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: []string{"1Gi", "128Mi", "512Mi"}[i%3]}).
			Priority(int32(i % 2 * 10))
		switch i % 7 {
		case 2:
			pod.NodeSelector(map[string]string{"disktype": "ssd"})
		case 4:
			pod.SpreadConstraint(1, v1.LabelTopologyZone, v1.DoNotSchedule, st.MakeLabelSelector().Label("app", app).Obj())
		}
		pods = append(pods, pod.Obj())
	}
	return pods
}
