// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/test/cluster"
)

// auditPolicy logs each write of a pod's conditions.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [patch, update]
    resources: [{group: "", resources: [pods/status]}]
  - level: None
`

// waitingFor is the environment variable with the minimum time that pods wait, such as 10m. Without it they are retried
// as soon as possible. The flag -timeout of go test must be longer.
const waitingFor = "NODE_LOAD_WAITING"

// waitingPods checks that a waiting pod writes one condition, however often it is retried while all nodes are hot, and
// is moved when nodes cool.
func waitingPods(t *testing.T) {
	const (
		pods, retries = 100, 3
		why           = "200 node(s) had cpu above 80 % of capacity"
	)
	var atLeast time.Duration
	if text := os.Getenv(waitingFor); text != "" {
		var err error
		if atLeast, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v; next: give a duration, such as 10m", waitingFor, err)
		}
	}
	s := newStand(t, &shared)
	s.exporters.load(0.95, s.nodes...)
	scheduler := s.startScheduler(t, "kube-scheduler", s.configuration(t, "waiting",
		profile(corev1.DefaultSchedulerName, s.args(time.Second, 5*time.Minute, builtIn("cpu")))))
	s.await(t, "all nodes to be seen hot", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(_ string, percent float64) bool { return percent > 85 })
	})
	began := time.Now()
	waiting := s.newPods(pods, "", "100m")
	for _, pod := range waiting {
		s.CreatePod(t, pod)
	}
	// writes counts the conditions that the scheduler wrote of each pod.
	writes := func() map[string]int {
		count := map[string]int{}
		for _, event := range s.Audit(t) {
			if strings.HasPrefix(event.UserAgent, "kube-scheduler") {
				count[event.ObjectRef.Name]++
			}
		}
		return count
	}
	s.await(t, "the scheduler to say of each pod why it waits", func() error {
		for name, pod := range s.pods(t) {
			if message := cluster.WhyPending(&pod); !strings.Contains(message, why) {
				return fmt.Errorf("%s: %q", name, message)
			}
		}
		return cluster.Unless(len(writes()) == pods, "the audit log has %d pods", len(writes()))
	})

	attempts := func() float64 {
		return s.mustMetrics(t, scheduler).sumOf("scheduler_schedule_attempts_total", "result=unschedulable")
	}
	for retry := range retries {
		before := attempts()
		// A changed pod is retried.
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/retry":"%d"}}}`, retry)
		for _, pod := range waiting {
			if _, err := s.Client().CoreV1().Pods(pod.Namespace).
				Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		s.await(t, "all pods to be tried again", func() error {
			tried := attempts() - before
			return cluster.Unless(tried >= pods, "%v were", tried)
		})
	}
	time.Sleep(time.Until(began.Add(atLeast)))
	count := writes()
	for _, pod := range waiting {
		if count[pod.Name] != 1 {
			t.Errorf("%d conditions of %s were written, want one", count[pod.Name], pod.Name)
		}
	}
	t.Logf("%d pods waited for %.0f s, were tried %v times, and %d conditions were written",
		pods, time.Since(began).Seconds(), attempts(), len(count))
	before := s.mustMetrics(t, scheduler)
	if rejections := before.sum("rejections_total", "resource=cpu"); rejections < pods*nodeCount {
		t.Errorf("%v rejections were counted, want at least one for each of %d pods and each node", rejections, pods)
	}

	cool := s.nodes[:5]
	s.exporters.load(0.1, cool...)
	s.await(t, "the pods that waited", func() error {
		all := s.pods(t)
		for _, pod := range waiting {
			switch node := all[pod.Name].Spec.NodeName; {
			case node == "":
				return errors.New(pod.Name + " is not bound")
			case !slices.Contains(cool, node):
				t.Fatalf("%s was bound to %s, which is hot", pod.Name, node)
			}
		}
		return nil
	})
	moved := func(m metrics) float64 {
		return m.sumOf("scheduler_queue_incoming_pods_total", "event=NodeLoadChanged")
	}
	if count := moved(s.mustMetrics(t, scheduler)) - moved(before); count < pods {
		t.Errorf("%v pods were moved because a load changed, want %d", count, pods)
	}
}
