// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

// TestSpotNodesAreReclaimed: the pods of lost spot nodes run on other nodes, and new pods use new spot nodes.
func TestSpotNodesAreReclaimed(t *testing.T) {
	for _, tt := range []struct {
		name, whenUnsatisfiable string
		// notice is set if the nodes are drained first.
		notice bool
	}{
		{"as on the page", "ScheduleAnyway", true},
		{"without notice", "ScheduleAnyway", false},
		{"with DoNotSchedule", "DoNotSchedule", true},
		{"with DoNotSchedule and without notice", "DoNotSchedule", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t)
			spot := func(name string) *corev1.Node {
				node := newNode(name, "")
				node.Labels["capacity"] = "spot"
				return node
			}
			s.CreateNodes(t, spot("spot-1"), spot("spot-2"), newNode("on-demand-1", ""), newNode("on-demand-2", ""))
			file := filepath.Join(t.TempDir(), "scheduler.yaml")
			shipped := cluster.Read(t, "manifests/config/placement-policy.yaml")
			cluster.Write(t, file, strings.Replace(shipped, ": ScheduleAnyway", ": "+tt.whenUnsatisfiable, 1))
			s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file)
			commands := s.commands(t, page, "Spot nodes are reclaimed")
			if len(commands) != 5 {
				t.Fatalf("the section has %d commands, want apply, drain, delete, scale and rollout: %q", len(commands), commands)
			}
			s.Kubectl(t, t.Context(), commands[0]...)
			s.awaitOnSpot(t, 8, 2)

			began := time.Now()
			if tt.notice {
				s.Kubectl(t, t.Context(), commands[1]...)
				// The nodes exist, but are cordoned.
				s.awaitOnSpot(t, 0, 10)
			}
			s.Kubectl(t, t.Context(), commands[2]...)
			s.awaitOnSpot(t, 0, 10)
			t.Logf("%s after the nodes were reclaimed, all pods run again", time.Since(began).Round(time.Second))

			s.CreateNodes(t, spot("spot-3"), spot("spot-4"))
			s.Kubectl(t, t.Context(), commands[3]...)
			s.awaitOnSpot(t, 10, 10)
			s.Kubectl(t, t.Context(), commands[4]...)
			s.awaitOnSpot(t, 16, 4)
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
