// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// troubledConfig configures a scheduler that waits long for a free lease, and calls an extender.
const troubledConfig = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 10m, renewDeadline: 5m, retryPeriod: 1s}
extenders:
  - urlPrefix: %s
    filterVerb: filter
    httpTimeout: 5m
`

// slowly is longer than SchedulerBindsSlowly allows.
const slowly = 6 * time.Second

// unsynced is there only while a scheduler waits for its informers.
const unsynced = "scheduler_informer_unsynced"

// waitingTimes are the metrics by PriorityClass, which only ours has.
var waitingTimes = []string{"scheduler_pod_waiting_duration_seconds_bucket", "scheduler_pod_waiting_duration_seconds_count"}

// Both the released stock scheduler and ours have the metrics, except those by PriorityClass. Each alert becomes
// pending when its problem exists, and not before.
func TestSchedulerAlertsAndDashboardWithRealData(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		testScheduler(t, cluster.Program(t, "STOCK_SCHEDULER"), append(waitingTimes, unsynced)...)
	})
	t.Run("ours", func(t *testing.T) { testScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), unsynced) })
}

func testScheduler(t *testing.T, program string, missing ...string) {
	s := &troubled{
		stand: stand{Cluster: shared.Get(t), prometheus: cluster.NewPrometheus(t)}, release: make(chan struct{}),
	}
	s.AddNodes(t, 4)
	extender := httptest.NewServer(http.HandlerFunc(s.filter))
	t.Cleanup(extender.Close)
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	cluster.Write(t, config, fmt.Sprintf(troubledConfig, extender.URL))
	// The scheduler has a different port at each start. As a static pod it would keep its port.
	metrics := httptest.NewServer(http.HandlerFunc(s.metricsPage))
	t.Cleanup(metrics.Close)
	s.startPrometheus(t, "scheduler", map[string]any{
		"job_name": "kube-scheduler", "static_configs": static(t, metrics.URL),
	})
	s.awaitState(t, "SchedulerGone", "pending")

	// As a standby it counts a pod as active without scheduling it.
	lease := s.takeLease(t)
	s.start(t, program, config)
	s.CreatePod(t, localcluster.NewPod("first", ""))
	s.awaitData(t, `scheduler_pending_pods{queue="active"} == 1`)
	s.awaitState(t, "SchedulerHasNoLeader", "pending")
	s.awaitState(t, "SchedulerGone", "inactive")
	s.awaitState(t, "SchedulerFallsBehind", "inactive")

	// It leads.
	leases, now := s.Client().CoordinationV1().Leases(lease.Namespace), metav1.DeleteOptions{}
	if err := leases.Delete(t.Context(), lease.Name, now); err != nil {
		t.Fatal(err)
	}
	s.awaitState(t, "SchedulerHasNoLeader", "inactive")
	s.awaitData(t, `scheduler_schedule_attempts_total{result="scheduled"} == 1`)
	for _, alert := range []string{"PodsWait", "Errors", "DecidesSlowly", "BindsSlowly"} {
		s.awaitState(t, "Scheduler"+alert, "inactive")
	}
	nowhere := localcluster.NewPod("fits-nowhere", "")
	nowhere.Spec.NodeSelector = map[string]string{"no": "node"}
	s.CreatePod(t, nowhere)
	s.awaitData(t, `scheduler_pending_pods{queue="unschedulable"} == 1`)

	// Others wait while it schedules a slow one.
	s.CreatePod(t, localcluster.NewPod("slow", ""))
	s.awaitData(t, `scheduler_pending_pods{queue="active"} == 0`)
	behind := s.CreatePod(t, localcluster.NewPod("behind", ""))
	s.awaitState(t, "SchedulerFallsBehind", "pending")
	if err := s.Client().CoreV1().Pods(behind.Namespace).Delete(t.Context(), behind.Name, now); err != nil {
		t.Fatal(err)
	}
	s.awaitState(t, "SchedulerFallsBehind", "inactive")
	close(s.release)
	s.awaitState(t, "SchedulerDecidesSlowly", "pending")
	s.awaitState(t, "SchedulerBindsSlowly", "pending")

	// A rate needs two samples.
	for i := range 2 {
		s.CreatePod(t, localcluster.NewPod(fmt.Sprintf("fails-%d", i+1), ""))
		s.awaitData(t, fmt.Sprintf(`scheduler_schedule_attempts_total{result="error"} > %d`, i))
	}
	s.awaitState(t, "SchedulerErrors", "pending")
	s.awaitState(t, "SchedulerPodsWait", "pending")

	// Plugin durations are measured in one of ten cycles: the probability of none in 100 cycles is below 1 in 30,000. A
	// rate needs a sample before the second hundred.
	for burst := range 2 {
		var pods []*corev1.Pod
		for i := range 100 {
			pods = append(pods, localcluster.NewPod(fmt.Sprintf("pod-%d-%d", burst, i+1), ""))
		}
		for _, pod := range pods[:5] {
			pod.Spec.PriorityClassName = "system-cluster-critical"
		}
		if _, err := s.Place(t.Context(), pods...); err != nil {
			t.Fatal(err)
		}
		s.awaitData(t, "sum(scheduler_plugin_execution_duration_seconds_count) > 0")
	}
	s.awaitPanels(t, "scheduler", missing...)
	s.checkMetrics(t, "scheduler", missing...)
	if len(missing) == 1 {
		s.awaitData(t, `scheduler_pod_waiting_duration_seconds_count{priority_class="system-cluster-critical"} == 10`)
	}

	for restarts := range 3 {
		s.awaitState(t, "SchedulerRestarts", "inactive")
		if err := s.running.Load().Stop(); err != nil {
			t.Fatal(err)
		}
		s.start(t, program, config)
		s.awaitData(t, fmt.Sprintf(`changes(process_start_time_seconds[30m]) == %d`, restarts+1))
	}
	s.awaitState(t, "SchedulerRestarts", "pending")
}

// troubled is a scheduler that can be stopped and started, its extender, and a Prometheus that scrapes it.
type troubled struct {
	stand
	running atomic.Pointer[localcluster.Scheduler]
	// release makes the extender answer for slow pods.
	release chan struct{}
}

func (s *troubled) start(t *testing.T, program, config string) {
	t.Helper()
	s.running.Store(s.StartScheduler(t, program, config, localcluster.SchedulerOptions{LeaderElection: true}))
}

// metricsPage forwards the metrics of the running scheduler.
func (s *troubled) metricsPage(w http.ResponseWriter, r *http.Request) {
	scheduler := s.running.Load()
	if scheduler == nil {
		http.Error(w, "no scheduler runs", http.StatusServiceUnavailable)
		return
	}
	content, err := s.Get(r.Context(), scheduler.URL()+"/metrics")
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(content) // Prometheus retries
}

// filter is the extender: it is slow for the pod "slow", and fails for pods whose names begin with "fails".
func (s *troubled) filter(w http.ResponseWriter, r *http.Request) {
	var arguments extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&arguments); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result := extenderv1.ExtenderFilterResult{Nodes: arguments.Nodes}
	switch {
	case arguments.Pod.Name == "slow":
		time.Sleep(slowly)
		<-s.release
	case strings.HasPrefix(arguments.Pod.Name, "fails"):
		result = extenderv1.ExtenderFilterResult{Error: "broken"}
	}
	_ = json.NewEncoder(w).Encode(result) // the scheduler reports a missing answer
}

// takeLease takes the lease, so that schedulers stay standbys.
func (s *troubled) takeLease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	holder, seconds, now := "elsewhere", int32(600), metav1.NowMicro()
	lease, err := s.Client().CoordinationV1().Leases(metav1.NamespaceSystem).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// awaitData waits until Prometheus returns data for an expression.
func (s *stand) awaitData(t *testing.T, promQL string) {
	t.Helper()
	s.Await(t, promQL, func() error {
		return cluster.Unless(len(s.query(t, promQL)) > 0, "there is none")
	}, s.prometheus.LogFile())
}
