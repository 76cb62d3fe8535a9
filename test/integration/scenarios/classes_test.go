// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestClassesOfService(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", ""), newNode("node-2", ""))
	s.startScheduler(t, "")
	s.follow(t, "Classes of service")
	class := func(name string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.PriorityClassName = name }
	}
	// 16 CPUs, all of them in use by pods that say nothing.
	s.deploy(t, "shop", "batch", 16, class(""))
	s.awaitCounts(t, "at first", map[string][2]int{"batch": {16, 0}})
	s.deploy(t, "shop", "search", 2, class("silver"))
	s.awaitCounts(t, "with silver", map[string][2]int{"batch": {14, 2}, "search": {2, 0}})
	// Ten are wanted, and the quota is for eight. Those of the lowest class make room.
	s.deploy(t, "shop", "checkout", 10, class("gold"))
	s.awaitCounts(t, "with gold", map[string][2]int{"batch": {6, 10}, "search": {2, 0}, "checkout": {8, 0}})
	gold := newPod("shop", "checkout", "one-too-many")
	gold.Spec.PriorityClassName = "gold"
	s.refused(t, gold, "exceeded quota: gold")
	gold.Namespace = corev1.NamespaceDefault
	s.refused(t, gold, "insufficient quota to match these scopes: [{PriorityClass In [gold silver]}]")

	// What is given back is used.
	_, err := s.Client().AppsV1().Deployments("shop").Patch(t.Context(), "checkout", types.MergePatchType,
		[]byte(`{"spec": {"replicas": 5}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitCounts(t, "with less gold", map[string][2]int{"batch": {9, 7}, "search": {2, 0}, "checkout": {5, 0}})
}
