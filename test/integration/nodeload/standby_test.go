// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

func standby(t *testing.T) {
	s := newStand(t, &shared)
	cool := s.nodes[57]
	s.exporters.load(0.95, slices.DeleteFunc(slices.Clone(s.nodes), func(node string) bool { return node == cool })...)
	// Its series have the node's name in another label.
	gpu := builtIn("gpu")
	gpu["nodeMatch"] = object{"label": "Hostname"}
	config := s.configuration(t, "leader",
		profile(corev1.DefaultSchedulerName, s.args(time.Second, 5*time.Minute, builtIn("cpu"), gpu)))
	leader := s.startScheduler(t, "leader", config, localcluster.SchedulerOptions{LeaderElection: true})
	lease := s.awaitLeader(t, "")
	standby := s.startScheduler(t, "standby", config, localcluster.SchedulerOptions{LeaderElection: true})

	for _, scheduler := range []*localcluster.Scheduler{leader, standby} {
		s.await(t, "the nodes to be seen hot but for one", func() error {
			page, err := s.page(scheduler)
			if err != nil {
				return err
			}
			asLoaded := func(node string, percent float64) bool { return percent > 80 == (node != cool) }
			return errors.Join(page.loads(corev1.DefaultSchedulerName, "cpu", asLoaded), page.loads(corev1.DefaultSchedulerName, "gpu", asLoaded))
		})
	}
	if holder := s.awaitLeader(t, ""); *holder.Spec.HolderIdentity != *lease.Spec.HolderIdentity {
		t.Fatal("the standby leads already")
	}
	if on := s.place(t, s.newPods(1, "", "100m")); on[cool] != 1 {
		t.Errorf("the leader bound a pod to %v, want %s", on, cool)
	}
	if attempts := s.sum(t, standby, "scheduler_schedule_attempts_total"); attempts != 0 {
		t.Fatalf("the standby has scheduled %v pods", attempts)
	}

	s.prometheus.Kill()
	warm := s.mustPage(t, standby)
	if warm.snapshot == 0 {
		t.Fatal("the standby has no snapshot")
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	if on := s.place(t, s.newPods(1, "", "100m")); on[cool] != 1 {
		t.Errorf("the standby bound its first pod to %v, want %s", on, cool)
	}
	if holder := s.awaitLeader(t, *lease.Spec.HolderIdentity); holder == nil {
		t.Error("there is no leader")
	}
	if cycles := s.sum(t, standby, fallbacks); cycles != 0 {
		t.Errorf("the standby decided %v times without measurements, want never", cycles)
	}
	if bound := s.sum(t, standby, `scheduler_schedule_attempts_total\{.*result="scheduled".*\}`); bound != 1 {
		t.Errorf("the standby bound %v pods, want one", bound)
	}
	if snapshot := s.mustPage(t, standby).snapshot; snapshot > warm.snapshot+1 {
		t.Errorf("the standby has snapshot %d, though Prometheus has not answered since %d", snapshot, warm.snapshot)
	}
}

// awaitLeader waits until there is a different leader than before.
func (s *stand) awaitLeader(t *testing.T, before string) *coordinationv1.Lease {
	t.Helper()
	var lease *coordinationv1.Lease
	s.await(t, "a leader", func() error {
		var err error
		leases := s.Client().CoordinationV1().Leases(metav1.NamespaceSystem)
		lease, err = leases.Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			return err
		}
		holder := ""
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		return cluster.Unless(holder != "" && holder != before, "the lease's holder is %q", holder)
	})
	return lease
}
