// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

func TestPodsOfAFailedZoneTakeTheRoomOfPlaceholders(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", "zone-a"), newNode("node-2", "zone-a"), newNode("node-3", "zone-b"), newNode("node-4", "zone-b"))
	s.create(t, newNode("node-5", "zone-c"), newNode("node-6", "zone-c"))
	kubelets := s.startKubelets(t)
	s.startScheduler(t, "fault-domains/scheduler.yaml")
	s.follow(t, "Keep room free for a zone")
	s.awaitCounts(t, "before the others", map[string][2]int{"placeholder": {16, 0}})
	// With these the cluster is full.
	s.deploy(t, corev1.NamespaceDefault, "web", 32, func(spec *corev1.PodSpec) {
		seconds := int64(5)
		spec.Tolerations = []corev1.Toleration{{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		}}
	})
	s.awaitCounts(t, "while all zones work", map[string][2]int{"placeholder": {16, 0}, "web": {32, 0}})
	t.Logf("before: web %v, placeholders %v", s.zonesOf(t, "web"), s.zonesOf(t, "placeholder"))

	began := time.Now()
	if err := s.processes.Kill(kubelets); err != nil {
		t.Fatal(err)
	}
	s.Await(t, "the zone to be given up", func() error {
		tainted := s.tainted(t)
		return cluster.Unless(tainted == 2, "%d of its 2 nodes are tainted", tainted)
	})
	t.Logf("%s after the zone has failed, its nodes are given up", time.Since(began).Round(time.Second))
	s.awaitZones(t, "web", map[string]int{"zone-a": 16, "zone-b": 16})
	t.Logf("%s after the zone has failed, all pods run again", time.Since(began).Round(time.Second))
	zones := s.zonesOf(t, "placeholder")
	t.Logf("after: placeholders %v", zones)
	if zones["zone-a"]+zones["zone-b"] > 0 {
		t.Errorf("placeholders are in %v, want none in zone-a and zone-b", zones)
	}
}
