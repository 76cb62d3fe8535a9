// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// Two profiles of one scheduler differ in their window: for one, all pods
// are fully measured when the scheduler restarts, and for the other none is.
func restart(t *testing.T) {
	const (
		pods   = 300
		slow   = "slow"
		window = time.Hour
		// cores is the CPU request of the pods, and also their expected use.
		cores = pods * 0.1
		// rounding is the maximum sum of the page's rounding errors, a thousandth of a percent for each node.
		rounding = nodeCount * 32 * 0.00001
	)
	s := newStand(t, &shared)
	short, long := builtIn("cpu"), cpuThatStays(window)
	for _, cpu := range []object{short, long} {
		cpu["estimator"] = object{"resource": "cpu", "factor": 100}
	}
	config := s.configuration(t, "restart", profile(corev1.DefaultSchedulerName, s.args(time.Second, time.Minute, short)),
		profile(slow, s.args(time.Second, time.Minute, long)))
	scheduler := s.startScheduler(t, "kube-scheduler", config)
	s.awaitFresh(t, scheduler, "cpu")
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	// They are bound as if by any schedulers, half with each profile.
	placements, err := s.Place(ctx, append(s.newPods(pods/2, "", "100m"), s.newPods(pods/2, slow, "100m")...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitRunning(ctx, placements); err != nil {
		t.Fatal(err)
	}

	first := s.firstStart(t)
	// counted checks the load in flight in the status: all requests for one profile, and nothing for the other.
	counted := func(when string) {
		s.await(t, "pods to show in the mean of some seconds and not in that of an hour, "+when, func() error {
			page, err := s.page(scheduler)
			if err != nil {
				return err
			}
			m, err := s.metrics(scheduler)
			if err != nil {
				return err
			}
			inFlight := page.inFlight(corev1.DefaultSchedulerName, "cpu")
			inMetrics := m.sum("in_flight_pods", "profile="+corev1.DefaultSchedulerName)
			// With a window of an hour, the mean already includes a little of them.
			age := time.Since(first).Seconds() / window.Seconds()
			got, running := page.inFlight(slow, "cpu"), m.sum("in_flight_pods", "profile="+slow)
			well := inFlight == 0 && inMetrics == 0 && got <= cores+rounding && got >= cores*(1-age)-rounding && running == pods
			return cluster.Unless(well, "%v cores of pods do not show in the mean of some seconds, %v pods in the metrics; "+
				"%v cores do not in that of an hour, want up to %v; %v pods in the metrics, want %d",
				inFlight, inMetrics, got, float64(cores), running, pods)
		})
	}
	counted("before the restart")
	if err := scheduler.Stop(); err != nil {
		t.Fatal(err)
	}
	scheduler = s.startScheduler(t, "kube-scheduler", config)
	s.awaitFresh(t, scheduler, "cpu")
	// Nothing changed, but the scheduler has listed them all again; one more pod causes a cycle that counts them.
	counted("after the restart")
	s.place(t, s.newPods(1, "", "100m"))
}

// firstStart returns the start time of the first pod.
func (s *stand) firstStart(t *testing.T) time.Time {
	t.Helper()
	first := time.Now()
	for _, pod := range s.pods(t) {
		if start := pod.Status.StartTime; start != nil && start.Time.Before(first) {
			first = start.Time
		}
	}
	return first
}

func standby(t *testing.T) {
	s := newStand(t, &shared)
	cool := s.nodes[57]
	s.exporters.load(0.95, slices.DeleteFunc(slices.Clone(s.nodes), func(node string) bool { return node == cool })...)
	config := s.configuration(t, "leader",
		profile(corev1.DefaultSchedulerName, s.args(time.Second, 5*time.Minute, builtIn("cpu"))))
	leader := s.startScheduler(t, "leader", config, localcluster.WithLeaderElection())
	lease := s.awaitLeader(t, "")
	standby := s.startScheduler(t, "standby", config, localcluster.WithLeaderElection())

	for _, scheduler := range []*localcluster.Scheduler{leader, standby} {
		s.await(t, "the nodes to be seen hot but for one", func() error {
			page, err := s.page(scheduler)
			if err != nil {
				return err
			}
			return page.loads(corev1.DefaultSchedulerName, "cpu", func(node string, percent float64) bool {
				return percent > 80 == (node != cool)
			})
		})
	}
	if holder := s.awaitLeader(t, ""); *holder.Spec.HolderIdentity != *lease.Spec.HolderIdentity {
		t.Fatal("the standby leads already")
	}
	if on := s.place(t, s.newPods(1, "", "100m")); on[cool] != 1 {
		t.Errorf("the leader bound a pod to %v, want %s", on, cool)
	}
	if attempts := s.mustMetrics(t, standby).sumOf("scheduler_schedule_attempts_total"); attempts != 0 {
		t.Fatalf("the standby has scheduled %v pods", attempts)
	}

	// Prometheus does not answer from now on.
	s.proxy.behave(hangs)
	warm := s.mustPage(t, standby)
	if warm.snapshot == 0 {
		t.Fatal("the standby has no snapshot")
	}
	t.Logf("the standby has snapshot %d, taken %.1f s ago", warm.snapshot, warm.age.Seconds())
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	if on := s.place(t, s.newPods(1, "", "100m")); on[cool] != 1 {
		t.Errorf("the standby bound its first pod to %v, want %s", on, cool)
	}
	if holder := s.awaitLeader(t, *lease.Spec.HolderIdentity); holder == nil {
		t.Error("there is no leader")
	}
	after := s.mustMetrics(t, standby)
	if cycles := after.sum("fallback_cycles_total"); cycles != 0 {
		t.Errorf("the standby decided %v times without measurements, want never", cycles)
	}
	if bound := after.sumOf("scheduler_schedule_attempts_total", "result=scheduled"); bound != 1 {
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
