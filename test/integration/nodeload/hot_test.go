// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

func hotNodes(t *testing.T) {
	const threshold = 80
	s := newStand(t, &shared)
	coolOnes, hotOnes := s.nodes[:10], s.nodes[10:]
	s.exporters.load(0.95, hotOnes...)
	// Old measurements are not what this is about, so none is.
	scheduler := s.startScheduler(t, "kube-scheduler", s.configuration(t, "hot",
		profile(corev1.DefaultSchedulerName, s.args(3*time.Second, 5*time.Minute, builtIn("cpu")))))
	s.await(t, "the hot nodes to be seen hot, and the others not", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(node string, percent float64) bool {
			return percent > threshold == slices.Contains(hotOnes, node)
		})
	})

	for node, count := range s.place(t, s.newPods(40, "", "100m")) {
		if !slices.Contains(coolOnes, node) {
			t.Errorf("%d pods are on %s, which is hot", count, node)
		}
	}

	s.exporters.load(0.95, coolOnes...)
	s.await(t, "all nodes to be seen hot", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(_ string, percent float64) bool { return percent > threshold })
	})
	var why string
	waiting := s.newPods(20, "", "100m")
	for _, pod := range waiting {
		s.CreatePod(t, pod)
	}
	s.await(t, "the scheduler to say why no node will do", func() error {
		pods := s.pods(t)
		for _, pod := range waiting {
			seen := pods[pod.Name]
			if seen.Spec.NodeName != "" {
				t.Fatalf("%s was bound to %s, which is hot", pod.Name, seen.Spec.NodeName)
			}
			if message := cluster.WhyPending(&seen); !strings.Contains(message, "cpu") || !strings.Contains(message, "80 %") {
				return fmt.Errorf("%s: %q", pod.Name, message)
			} else {
				why = message
			}
		}
		return nil
	})
	t.Logf("why they wait: %s", why)
	before := s.mustMetrics(t, scheduler)
	if rejections := before.sum("rejections_total", "resource=cpu"); rejections < float64(len(waiting)*nodeCount) {
		t.Errorf("%v rejections were counted, want one at least for each of %d pods and each node", rejections, len(waiting))
	}

	coolAgain := coolOnes[:5]
	s.exporters.load(0.1, coolAgain...)
	// When the first snapshot was taken that shows room for all of them.
	var at time.Time
	s.await(t, "the nodes that cooled to be seen cool", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		at = time.Now().Add(-page.age)
		return page.loads(corev1.DefaultSchedulerName, "cpu", func(node string, percent float64) bool {
			return percent < threshold-5 == slices.Contains(coolAgain, node)
		})
	})
	s.await(t, "the pods that waited", func() error {
		pods := s.pods(t)
		for _, pod := range waiting {
			switch node := pods[pod.Name].Spec.NodeName; {
			case node == "":
				return errors.New(pod.Name + " is not bound")
			case !slices.Contains(coolAgain, node):
				t.Fatalf("%s was bound to %s, which is hot", pod.Name, node)
			}
		}
		return nil
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
