// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/test/cluster"
)

func TestClassesOfService(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", ""), newNode("node-2", ""))
	s.startScheduler(t, "")
	s.follow(t, "Classes of service")
	// The API server enforces a quota once the quota controller has counted.
	large := newPod("shop", "checkout", "more-than-all")
	large.Spec.PriorityClassName = "gold"
	large.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
	s.refused(t, large, "exceeded quota: gold")
	class := func(name string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.PriorityClassName = name }
	}
	// 16 CPUs, all in use by pods without a class.
	s.deploy(t, "shop", "batch", 16, class(""))
	s.awaitCounts(t, "at first", map[string][2]int{"batch": {16, 0}})
	s.deploy(t, "shop", "search", 2, class("silver"))
	s.awaitCounts(t, "with silver", map[string][2]int{"batch": {14, 2}, "search": {2, 0}})
	// The pods of the lowest class are evicted.
	s.deploy(t, "shop", "checkout", 8, class("gold"))
	withGold := map[string][2]int{"batch": {6, 10}, "search": {2, 0}, "checkout": {8, 0}}
	s.awaitCounts(t, "with gold", withGold)
	// Ten are wanted, and the quota allows eight. During preemption the quota controller recounts from slightly old
	// pods and can admit more than that, so the test waits until it is idle.
	s.Await(t, "all of the quota to be in use", func() error {
		quota, err := s.Client().CoreV1().ResourceQuotas("shop").Get(t.Context(), "gold", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return cluster.Unless(equality.Semantic.DeepEqual(quota.Status.Used, quota.Spec.Hard), "in use are %v", quota.Status.Used)
	})
	s.scale(t, "checkout", 10)
	s.Await(t, "the ReplicaSet to be refused more", func() error {
		list, err := s.Client().AppsV1().ReplicaSets("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=checkout"})
		if err != nil {
			return err
		}
		for _, set := range list.Items {
			for _, condition := range set.Status.Conditions {
				if condition.Type == appsv1.ReplicaSetReplicaFailure && strings.Contains(condition.Message, "exceeded quota: gold") {
					return nil
				}
			}
		}
		return errors.New("it is not")
	})
	s.awaitCounts(t, "with ten that are wanted", withGold)
	gold := newPod("shop", "checkout", "one-too-many")
	gold.Spec.PriorityClassName = "gold"
	s.refused(t, gold, "exceeded quota: gold")
	gold.Namespace = corev1.NamespaceDefault
	s.refused(t, gold, "insufficient quota to match these scopes: [{PriorityClass In [gold silver]}]")

	// Freed room is used.
	s.scale(t, "checkout", 5)
	s.awaitCounts(t, "with less gold", map[string][2]int{"batch": {9, 7}, "search": {2, 0}, "checkout": {5, 0}})
}

// scale sets the replicas of a Deployment in the namespace shop.
func (s *stand) scale(t *testing.T, app string, replicas int) {
	t.Helper()
	_, err := s.Client().AppsV1().Deployments("shop").Patch(t.Context(), app, types.MergePatchType,
		fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
