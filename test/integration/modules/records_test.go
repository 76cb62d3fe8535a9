// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// awaitSummary waits until a pod's record has the expected summary.
func (s *stand) awaitSummary(t *testing.T, scheduler *localcluster.Scheduler, pod *corev1.Pod, want string) {
	t.Helper()
	s.Await(t, "the records of "+pod.Name, func() error {
		content, err := s.Get(t.Context(), scheduler.URL()+"/scheduling/pods/"+pod.Namespace+"/"+pod.Name)
		if err != nil {
			return err
		}
		var record struct{ Result, Summary string }
		if err := json.Unmarshal(content, &record); err != nil {
			return err
		}
		return cluster.Unless(record.Result == "Unschedulable" && record.Summary == want, "%s: %s, want %s", record.Result, record.Summary, want)
	})
}

func TestTheRecordsSayWhyAGangAndATenantWait(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, 2)
	s.createGroup(t, "red")
	scheduler := s.start(t, "gang.yaml")
	s.awaitSummary(t, scheduler, s.CreatePod(t, member("red", "alone")),
		"It is rejected before any node is evaluated: pod(s) of PodGroup default/red are fewer than its minMember.")
	if err := scheduler.Stop(); err != nil {
		t.Fatal(err)
	}

	s.createQuota(t, "tenant", "cpu: 2, memory: 16Gi", "cpu: 2, memory: 16Gi")
	scheduler = s.start(t, "quota.yaml")
	s.place(t, "tenant", "first", "second")
	s.awaitSummary(t, scheduler, s.CreatePod(t, newPod("tenant", "third", "1")),
		"It is rejected before any node is evaluated: Pod tenant/third is rejected in PreFilter because ElasticQuota tenant is more than Max.")
}
