// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

// TestSpotNodesAreReclaimed: the pods of lost spot nodes run on other nodes at once, and new pods use new spot nodes.
func TestSpotNodesAreReclaimed(t *testing.T) {
	const config = "manifests/config/placement-policy.yaml"
	for _, whenUnsatisfiable := range []string{"ScheduleAnyway", "DoNotSchedule"} {
		t.Run(whenUnsatisfiable, func(t *testing.T) {
			s := newStand(t)
			spot := func(name string) *corev1.Node {
				node := newNode(name, "")
				node.Labels["capacity"] = "spot"
				return node
			}
			s.CreateNodes(t, spot("spot-1"), spot("spot-2"), newNode("on-demand-1", ""), newNode("on-demand-2", ""))
			file := filepath.Join(t.TempDir(), "scheduler.yaml")
			cluster.Write(t, file, strings.Replace(cluster.Read(t, config), ": ScheduleAnyway", ": "+whenUnsatisfiable, 1))
			s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file)
			s.Kubectl(t, t.Context(), "apply", "-f", examples+"spot/web.yaml")
			s.awaitOnSpot(t, 8, 2)

			s.Kubectl(t, t.Context(), "delete", "nodes", "--selector", "capacity=spot")
			s.awaitOnSpot(t, 0, 10)

			s.CreateNodes(t, spot("spot-3"), spot("spot-4"))
			s.Kubectl(t, t.Context(), "scale", "deployment", "web", "--replicas", "20")
			s.awaitOnSpot(t, 10, 10)
		})
	}
}

// awaitOnSpot waits until the expected numbers of pods of web are on spot and on other nodes, and none is pending.
func (s *stand) awaitOnSpot(t *testing.T, onSpot, elsewhere int) {
	t.Helper()
	s.Await(t, fmt.Sprintf("%d pods on spot nodes and %d elsewhere", onSpot, elsewhere), func() error {
		is := map[string]int{}
		why := ""
		for _, pod := range s.pods(t, "web") {
			kind, _, _ := strings.Cut(pod.Spec.NodeName, "-")
			is[kind]++
			if pod.Spec.NodeName == "" {
				why = cluster.WhyPending(&pod)
			}
		}
		return cluster.Unless(is["spot"] == onSpot && is["on"] == elsewhere && is[""] == 0, "they are %v: %s", is, why)
	})
}
