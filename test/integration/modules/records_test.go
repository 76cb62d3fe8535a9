// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// record has some fields of the answers about a pod.
type record struct {
	Result, Summary string
	Attempts        []struct {
		Words []struct{ Plugin, Text string }
	}
}

// awaitRecord waits until a pod's record is as expected.
func (s *stand) awaitRecord(t *testing.T, scheduler *localcluster.Scheduler, pod *corev1.Pod, want string, is func(record) bool) {
	t.Helper()
	s.Await(t, "the records of "+pod.Name, func() error {
		content, err := s.Get(t.Context(), scheduler.URL()+"/scheduling/pods/"+pod.Namespace+"/"+pod.Name)
		if err != nil {
			return err
		}
		var found record
		if err := json.Unmarshal(content, &found); err != nil {
			return err
		}
		return cluster.Unless(found.Result == "Unschedulable" && is(found), "%s, want %s", content, want)
	})
}

// awaitSummary waits until a pod's record has the expected summary.
func (s *stand) awaitSummary(t *testing.T, scheduler *localcluster.Scheduler, pod *corev1.Pod, want string) {
	t.Helper()
	s.awaitRecord(t, scheduler, pod, want, func(found record) bool { return found.Summary == want })
}

func TestTheRecordsSayWhyAGangAndATenantWait(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, 2)
	s.createGroup(t, "red")
	scheduler := s.start(t, "gang.yaml")
	s.awaitSummary(t, scheduler, s.CreatePod(t, member("red", "alone")),
		"It is rejected before any node is evaluated: PodGroup default/red has fewer pods than its minMember.")
	if err := scheduler.Stop(); err != nil {
		t.Fatal(err)
	}

	s.createQuota(t, "tenant", "cpu: 2, memory: 16Gi", "cpu: 2, memory: 16Gi")
	scheduler = s.start(t, "quota.yaml")
	s.place(t, "tenant", "first", "second")
	s.awaitSummary(t, scheduler, s.CreatePod(t, newPod("tenant", "third", "1")),
		"It is rejected before any node is evaluated: Pod tenant/third is rejected in PreFilter because ElasticQuota tenant is more than Max.")
}

// whatIf has some fields of the answer to a dry run.
type whatIf struct {
	Result, Summary string
	Rejections      []struct{ Plugin string }
	Gang            *gang
	Verdicts        []struct{ Fits bool }
}

type gang struct {
	Needed, Found int
	Unfit         string
	Pods          []struct{ Name, Node string }
	Victims       []struct{ Pods []string }
}

func (g *gang) victims() (count int) {
	for _, node := range g.Victims {
		count += len(node.Pods)
	}
	return count
}

// whatIf asks for a dry run, and returns the answer also if it is another one than 200.
func (s *stand) whatIf(t *testing.T, scheduler *localcluster.Scheduler, method, query, body string) (found whatIf, content []byte) {
	t.Helper()
	_, content, err := s.Ask(t.Context(), method, scheduler.URL()+"/scheduling/what-if"+query, strings.NewReader(body))
	if err == nil {
		err = json.Unmarshal(content, &found)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	return found, content
}

// Two nodes have places for 8 of the 20 pods.
func TestAGangThatDoesNotFitIsToldAndTried(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, 2)
	s.createGroup(t, "red")
	scheduler := s.start(t, "gang.yaml")
	s.createMembers(t, "red")
	const text = "It needs places for 20 pods, and 8 were found. Pod red-"
	for _, pod := range []string{"red-00", "red-19"} {
		s.awaitRecord(t, scheduler, member("red", pod), text, func(found record) bool {
			words := found.Attempts[0].Words
			return len(words) == 1 && words[0].Plugin == "Coscheduling" && strings.HasPrefix(words[0].Text, text)
		})
	}

	const list = `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "%s"}, "spec": {"minMember": %d}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "draft", "annotations": {"scheduling-records/copies": "%d"},
			"labels": {"pod-group.scheduling.sigs.k8s.io": "%[1]s"}},
			"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}}]}`
	for name, test := range map[string]struct {
		method, query, body                   string
		result                                string
		needed, found, pods, places, verdicts int
		summary                               string
	}{
		"a pending pod": {"GET", "?pod=default/red-00", "", "Unschedulable", 20, 8, 20, 0, 0,
			"The gang default/red needs places for 20 pods, and found 8. Pod default/red-"},
		"each node": {"GET", "?pod=default/red-00&nodes=all", "", "Unschedulable", 20, 8, 20, 0, 2,
			"The gang default/red needs places for 20 pods, and found 8. Pod default/red-"},
		"a gang that fits": {"POST", "", fmt.Sprintf(list, "draft", 8, 9), "Fits", 8, 8, 9, 8, 0,
			"The gang default/draft fits: 8 of its 9 pending pods would go to 2 nodes."},
		"a gang that does not": {"POST", "", fmt.Sprintf(list, "draft", 9, 9), "Unschedulable", 9, 8, 9, 0, 0,
			"The gang default/draft needs places for 9 pods, and found 8. Pod default/draft-"},
		"less of one that exists": {"POST", "", fmt.Sprintf(list, "red", 2, 2), "Fits", 2, 2, 2, 2, 0,
			"The gang default/red fits: 2 pending pods would go to "},
		"too few pods": {"POST", "", fmt.Sprintf(list, "draft", 9, 8), "Unschedulable", 9, 0, 0, 0, 0,
			"The gang default/draft cannot run: PodGroup default/draft has fewer pods than its minMember."},
		"a topology that no node has": {"POST", "", strings.Replace(fmt.Sprintf(list, "draft", 2, 2), `"name"`,
			`"annotations": {"coscheduling.scheduler/required-topology-key": "none"}, "name"`, 1), "Unschedulable", 2, 0, 2, 0, 0,
			"The gang default/draft needs places for 2 pods, and found 0."},
		"no minMember": {"POST", "", fmt.Sprintf(list, "draft", -1, 8), "Unschedulable", 0, 0, 0, 0, 0,
			"The gang default/draft cannot run: the pod's PodGroup has no valid spec: minMember must be at least 1."},
	} {
		got, content := s.whatIf(t, scheduler, test.method, test.query, test.body)
		if got.Gang == nil {
			t.Errorf("%s: %s", name, content)
			continue
		}
		places := 0
		for _, pod := range got.Gang.Pods {
			if pod.Node != "" {
				places++
			}
		}
		if got.Result != test.result || got.Gang.Needed != test.needed || got.Gang.Found != test.found || len(got.Gang.Pods) != test.pods ||
			places != test.places || len(got.Verdicts) != test.verdicts || !strings.HasPrefix(got.Summary, test.summary) ||
			(got.Gang.Unfit != "") != (len(got.Rejections) > 0) {
			t.Errorf("%s: %s", name, content)
		}
	}
	// Nothing was changed by them: the gang that waits gets all of its places.
	s.CreateNodes(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "large"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("24"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("32"),
		}},
	})
	s.awaitBoundGang(t, "red")
	// They fill the nodes, and have no priority.
	got, content := s.whatIf(t, scheduler, "POST", "", strings.ReplaceAll(fmt.Sprintf(list, "draft", 2, 2), `"containers"`, `"priority": 10, "containers"`))
	if got.Gang == nil || got.Result != "Unschedulable" || got.Gang.victims() != 2 || !strings.HasPrefix(got.Summary,
		"The gang default/draft does not fit now. Preemption would evict 2 pods from ") {
		t.Errorf("with priority: %s", content)
	}
	if bound := s.bound(t)["red"]; bound != members {
		t.Errorf("%d pods are left of the gang", bound)
	}
}
