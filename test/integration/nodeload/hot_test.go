// SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHotNodesGetNoPodsAndWhatWaitedIsMovedByTheirCooling(t *testing.T) {
	t.Parallel()
	const threshold = 80
	s := newStand(t)
	coolOnes, hotOnes := s.nodes[:10], s.nodes[10:]
	s.exporters.load(0.95, hotOnes...)
	// Old measurements are not what this is about, so none is.
	scheduler := s.startScheduler(t, "kube-scheduler", s.configuration(t, "hot",
		profile(corev1.DefaultSchedulerName, s.args(3*time.Second, 5*time.Minute, builtIn("cpu")))))
	s.await(t, "the hot nodes to be seen hot, and the others not", func() (string, error) {
		page, err := s.page(scheduler)
		if err != nil {
			return "", err
		}
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(node string, percent float64) bool {
			return percent > threshold == slices.Contains(hotOnes, node)
		}), nil
	})

	for node, count := range s.place(t, s.newPods(40, "", "100m")) {
		if !slices.Contains(coolOnes, node) {
			t.Errorf("%d pods are on %s, which is hot", count, node)
		}
	}

	s.exporters.load(0.95, coolOnes...)
	s.await(t, "all nodes to be seen hot", func() (string, error) {
		page, err := s.page(scheduler)
		if err != nil {
			return "", err
		}
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(_ string, percent float64) bool { return percent > threshold }), nil
	})
	waiting := s.newPods(20, "", "100m")
	for _, pod := range waiting {
		if _, err := s.plane.Client().CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.await(t, "the scheduler to say why no node will do", func() (string, error) {
		pods := s.pods(t)
		for _, pod := range waiting {
			seen := pods[pod.Name]
			if seen.Spec.NodeName != "" {
				t.Fatalf("%s was bound to %s, which is hot", pod.Name, seen.Spec.NodeName)
			}
			if message := whyWaiting(seen); !strings.Contains(message, "cpu") || !strings.Contains(message, "80 %") {
				return fmt.Sprintf("%s: %q", pod.Name, message), nil
			}
		}
		return "", nil
	})
	t.Logf("why they wait: %s", whyWaiting(s.pods(t)[waiting[0].Name]))
	before := s.mustMetrics(t, scheduler)
	if rejections := before.sum("rejections_total", "resource=cpu"); rejections < float64(len(waiting)*nodeCount) {
		t.Errorf("%v rejections were counted, want one at least for each of %d pods and each node", rejections, len(waiting))
	}

	coolAgain := coolOnes[:5]
	s.exporters.load(0.1, coolAgain...)
	// When the first snapshot was taken that shows room for all of them.
	var at time.Time
	s.await(t, "the nodes that cooled to be seen cool", func() (string, error) {
		page, err := s.page(scheduler)
		if err != nil {
			return "", err
		}
		at = time.Now().Add(-page.age)
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(node string, percent float64) bool {
			return percent < threshold-5 == slices.Contains(coolAgain, node)
		}), nil
	})
	s.await(t, "the pods that waited", func() (string, error) {
		pods := s.pods(t)
		for _, pod := range waiting {
			switch node := pods[pod.Name].Spec.NodeName; {
			case node == "":
				return pod.Name + " is not bound", nil
			case !slices.Contains(coolAgain, node):
				t.Fatalf("%s was bound to %s, which is hot", pod.Name, node)
			}
		}
		return "", nil
	})
	t.Logf("%d pods arrived %.1f s at most after the snapshot was taken that shows room for them",
		len(waiting), time.Since(at).Seconds())
	moved := func(m metrics) float64 {
		return m.sumOf("scheduler_queue_incoming_pods_total", "event=NodeLoadChanged")
	}
	if count := moved(s.mustMetrics(t, scheduler)) - moved(before); count < float64(len(waiting)) {
		t.Errorf("%v pods were moved because a load changed, want %d", count, len(waiting))
	}
}

// whyWaiting is what the scheduler says of a pod that it did not bind.
func whyWaiting(pod corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
