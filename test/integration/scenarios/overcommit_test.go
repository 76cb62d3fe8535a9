// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/test/cluster"
)

func TestNodesThatAreFullByRequestsTakeOvercommittingPods(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", ""), newNode("node-2", ""), newNode("node-3", ""))
	prometheus := cluster.NewPrometheus(t)
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	cluster.Write(t, config, strings.NewReplacer("http://127.0.0.1:9090", prometheus.URL(), "horizon: 1h", "refreshInterval: 1s").
		Replace(cluster.Read(t, "manifests/config/overcommit.yaml")))
	scheduler := s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config)
	commands := s.commands(t, page, "Nodes that are full by requests and idle")
	s.Kubectl(t, t.Context(), commands[0]...)
	s.awaitCounts(t, "on nodes that are full then", map[string][2]int{"web": {6, 0}})
	ordinary := s.CreatePod(t, newPod(corev1.NamespaceDefault, "ordinary", "ordinary"))
	s.AwaitPending(t, ordinary.Namespace, ordinary.Name, "3 Insufficient cpu")

	s.haveRunForHours(t, "web")
	s.recordUse(t, prometheus)
	s.Await(t, "the scheduler to have the measurements", func() error {
		answer, err := scheduler.Get(t.Context(), "/overcommit")
		if err != nil {
			return err
		}
		return cluster.Unless(strings.Count(string(answer), `"state":"open"`) == 3, "not three nodes are open: %s", answer)
	}, prometheus.LogFile())
	for _, command := range commands[1:] {
		s.Kubectl(t, t.Context(), command...)
	}
	// 8 cores less the headroom of 0.8 and a peak of 1.1 are enough for 4 × 1.5, and the quota is enough for 13.
	s.awaitCounts(t, "on CPU that web does not use", map[string][2]int{"web": {6, 0}, "batch": {12, 1}})
	for node, count := range s.nodesOf(t, "batch") {
		if node != "" && count != 4 {
			t.Errorf("%s has %d pods of batch, want 4", node, count)
		}
	}
	waits := slices.IndexFunc(s.pods(t, "batch"), func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
	late := s.pods(t, "batch")[waits]
	s.AwaitPending(t, late.Namespace, late.Name, "3 node(s) had too little unused CPU")
}

// haveRunForHours makes the running pods of an app two hours old.
func (s *stand) haveRunForHours(t *testing.T, app string) {
	t.Helper()
	started := metav1.NewTime(time.Now().Add(-2 * time.Hour))
	s.Await(t, "pods of "+app+" to run", func() error {
		for _, pod := range s.pods(t, app) {
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s", pod.Name, pod.Status.Phase)
			}
			for i := range pod.Status.ContainerStatuses {
				pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}
			}
			if _, err := s.Client().CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordUse starts a Prometheus with the last two hours of three nodes: each pod of web used half a core, and the rest
// of the node a tenth.
func (s *stand) recordUse(t *testing.T, prometheus *cluster.Prometheus) {
	t.Helper()
	const length, step = 2 * 60 * 60, 15
	var text strings.Builder
	text.WriteString("# TYPE container_cpu_usage_seconds counter\n")
	now := time.Now().Unix()
	record := func(labels string, cores float64) {
		for at := 0; at <= length; at += step {
			fmt.Fprintf(&text, "container_cpu_usage_seconds_total{%s} %g %d\n", labels, cores*float64(at), now-length+int64(at))
		}
	}
	use := map[string]float64{"node-1": 0.1, "node-2": 0.1, "node-3": 0.1}
	for _, pod := range s.pods(t, "web") {
		use[pod.Spec.NodeName] += 0.5
		record(fmt.Sprintf("instance=%q,namespace=%q,pod=%q,container=%q,id=%q",
			pod.Spec.NodeName, pod.Namespace, pod.Name, "main", "/kubepods/"+string(pod.UID)), 0.5)
	}
	for node, cores := range use {
		record(fmt.Sprintf("instance=%q,id=%q", node, "/"), cores)
	}
	prometheus.StartWith(t, text.String())
}
