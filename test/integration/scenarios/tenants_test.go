// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kube-scheduler-fork/test/cluster"
)

func TestTenantsAreKeptApart(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("blue-1", ""), newNode("blue-2", ""), newNode("green-1", ""), newNode("green-2", ""), newNode("shared-1", ""))
	s.startScheduler(t, "tenants/scheduler.yaml")
	s.follow(t, "Tenants on nodes of their own")
	tolerating := func(tenant string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.Tolerations = []corev1.Toleration{{Key: "tenant", Value: tenant, Effect: corev1.TaintEffectNoExecute}}
		}
	}
	for _, tenant := range []string{"blue", "green"} {
		s.deploy(t, tenant, "of-"+tenant, 6, tolerating(tenant))
	}
	s.deploy(t, corev1.NamespaceDefault, "of-none", 6, func(*corev1.PodSpec) {})
	s.awaitCounts(t, "", map[string][2]int{"of-blue": {6, 0}, "of-green": {6, 0}, "of-none": {6, 0}})
	for app, prefix := range map[string]string{"of-blue": "blue-", "of-green": "green-", "of-none": "shared-"} {
		for _, pod := range s.pods(t, app) {
			if !strings.HasPrefix(pod.Spec.NodeName, prefix) {
				t.Errorf("%s is on %s, want a node %s…", pod.Name, pod.Spec.NodeName, prefix)
			}
		}
	}

	// The taint alone would admit it.
	intruder := newPod("green", "intruder", "intruder")
	tolerating("blue")(&intruder.Spec)
	intruder.Spec.NodeSelector = map[string]string{"node-restriction.kubernetes.io/tenant": "blue"}
	s.CreatePod(t, intruder)
	s.AwaitPending(t, intruder.Namespace, intruder.Name, `2 node(s) were denied by rule "node-of-another-tenant" of NodeFilter`)

	// The scheduler does not handle it.
	past := newPod("green", "past", "past-the-scheduler")
	past.Spec.NodeName = "blue-1"
	s.CreatePod(t, past)
	s.Await(t, "the pod to be evicted that names its node", func() error {
		pod, err := s.Pod(t, past.Namespace, past.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cluster.Unless(err == nil && pod.DeletionTimestamp != nil, "it is there: %v", err)
	})

	large := newPod("blue", "large", "large")
	large.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *newNode("", "").Status.Capacity.Cpu()
	s.refused(t, large, "exceeded quota: all, requested: requests.cpu=8, used: requests.cpu=6, limited: requests.cpu=12")
}
