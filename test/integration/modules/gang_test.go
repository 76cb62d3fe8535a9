// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/test/cluster"
)

const (
	// groupLabel is the label that names the PodGroup of a pod.
	groupLabel = "pod-group.scheduling.sigs.k8s.io"
	// members are the pods of a gang. Each requests memberCPU, so that one gang fills the nodes.
	members, memberCPU, nodes = 20, "2", 5
	// Pods wait longer than the tests, so that no awaited effect comes from a timeout.
	timeout, longTimeout = "permitWaitingTimeSeconds: 60", "permitWaitingTimeSeconds: 900"
	// flushed is the time after which the scheduling queue retries pods that no event has moved.
	flushed = 60 * time.Second
)

func (s *stand) createGroup(t *testing.T, name string) {
	t.Helper()
	s.create(t, "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: %s, namespace: default}\n"+
		"spec: {minMember: %d}\n", name, members)
}

func member(group, name string) *corev1.Pod {
	pod := newPod(corev1.NamespaceDefault, name, memberCPU)
	pod.Labels = map[string]string{groupLabel: group}
	return pod
}

// createMembers creates all pods of a group, with the group's name first.
func (s *stand) createMembers(t *testing.T, group string) {
	t.Helper()
	for i := range members {
		s.CreatePod(t, member(group, fmt.Sprintf("%s-%02d", group, i)))
	}
}

// bound counts the bound pods of each group.
func (s *stand) bound(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, pod := range s.pods(t, corev1.NamespaceDefault) {
		if pod.Spec.NodeName != "" {
			counts[pod.Labels[groupLabel]]++
		}
	}
	return counts
}

func (s *stand) awaitBoundGang(t *testing.T, group string) {
	t.Helper()
	s.Await(t, "all pods of the group "+group+" to be bound", func() error {
		bound := s.bound(t)
		return cluster.Unless(bound[group] == members, "bound are %v", bound)
	})
}

// awaitBindings waits until the audit log has the expected number of
// bindings, and returns the names of the pods in that order.
func (s *stand) awaitBindings(t *testing.T, count int) (names []string, last time.Time) {
	t.Helper()
	s.Await(t, fmt.Sprintf("%d bindings in the audit log", count), func() error {
		names = nil
		for _, event := range s.Audit(t) {
			if object := event.ObjectRef; object != nil && object.Subresource == "binding" && event.ResponseStatus.Code == 201 {
				names, last = append(names, object.Name), event.RequestReceivedTimestamp.Time
			}
		}
		return cluster.Unless(len(names) >= count, "there are %d", len(names))
	})
	if sorted := slices.Sorted(slices.Values(names)); len(names) > count || len(slices.Compact(sorted)) < count {
		t.Errorf("bindings are of %v, want %d, each of another pod", names, count)
	}
	return names, last
}

// groupOf returns the group of a pod, by its name.
func groupOf(name string) string {
	if strings.Contains(name, "red") {
		return "red"
	}
	return "blue"
}

func TestOfTwoGangsThatShareTheRoomOneIsBoundAndTheOtherAsSoonAsItEnds(t *testing.T) {
	for name, create := range map[string]func(*testing.T, *stand){
		"one after the other": func(t *testing.T, s *stand) {
			s.createMembers(t, "red")
			s.createMembers(t, "blue")
		},
		// Groups of the same second are sorted by the names of their pods, which alternate.
		"by turns": func(t *testing.T, s *stand) {
			for i := range members {
				s.CreatePod(t, member("red", fmt.Sprintf("pod-%02d-red", i)))
				s.CreatePod(t, member("blue", fmt.Sprintf("pod-%02d-blue", i)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			s.AddNodes(t, nodes)
			s.createGroup(t, "red")
			s.createGroup(t, "blue")
			s.start(t, "gang.yaml", timeout, longTimeout)
			create(t, s)
			first, second := "red", "blue"
			s.Await(t, "all pods of one group to be bound", func() error {
				bound := s.bound(t)
				if bound["blue"] == members {
					first, second = "blue", "red"
				}
				return cluster.Unless(bound[first] == members, "bound are %v", bound)
			})
			removed := time.Now()
			s.remove(t, corev1.NamespaceDefault, groupLabel+"="+first)
			s.awaitBoundGang(t, second)
			names, last := s.awaitBindings(t, 2*members)
			for i, name := range names {
				if (groupOf(name) == first) != (i < members) {
					t.Fatalf("in this order were bound %v, want all of %s before the first of %s", names, first, second)
				}
			}
			took := last.Sub(removed)
			t.Logf("the last pod of %s was bound %s after those of %s were removed", second, took, first)
			if took > flushed {
				t.Errorf("want it moved by an event, within %s", flushed)
			}
		})
	}
}

func TestAGangOfWhichTheLastPodIsDeletedGivesItsRoomBack(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, nodes)
	s.createGroup(t, "red")
	scheduler := s.start(t, "gang.yaml", timeout, longTimeout)
	// No scheduler handles the last one, so the others wait for it.
	last := member("red", "last")
	last.Spec.SchedulerName = "none"
	s.CreatePod(t, last)
	for i := range members - 1 {
		s.CreatePod(t, member("red", fmt.Sprintf("red-%02d", i)))
	}
	s.Await(t, "all pods but the last to wait", func() error {
		waiting := 0
		log := cluster.Read(t, scheduler.LogFile())
		for i := range members - 1 {
			if strings.Contains(log, fmt.Sprintf(`"Pod is waiting to be scheduled to node" pod="default/red-%02d"`, i)) {
				waiting++
			}
		}
		return cluster.Unless(waiting == members-1, "%d do", waiting)
	})
	// They hold at least three of the four slots of each node.
	whole := newPod(corev1.NamespaceDefault, "wants-a-node", "8")
	s.CreatePod(t, whole)
	if why := s.awaitRefused(t, whole.Namespace, whole.Name); !strings.Contains(why, "Insufficient cpu") {
		t.Errorf("the pod that wants a whole node is refused: %s, want it to be for lack of CPU", why)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := s.Client().CoreV1().Pods(last.Namespace).Delete(t.Context(), last.Name, now); err != nil {
		t.Fatal(err)
	}
	s.AwaitBound(t, whole)
	if bound := s.bound(t)["red"]; bound > 0 {
		t.Errorf("%d pods of a gang are bound that lacks one, want none", bound)
	}
}

func TestASchedulerThatIsKilledWhileItBindsAGangBindsTheRestLater(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, nodes)
	s.createGroup(t, "red")
	s.createGroup(t, "blue")
	const client = "clientConnection:\n"
	// Two requests per second: bindings are slow enough to stop in the middle.
	slow := s.start(t, "gang.yaml", timeout, longTimeout, client, client+"  qps: 2\n  burst: 2\n")
	s.createMembers(t, "red")
	s.Await(t, "some pods of a gang to be bound", func() error {
		return cluster.Unless(s.bound(t)["red"] > 0, "none is")
	})
	if err := slow.Kill(); err != nil {
		t.Fatal(err)
	}
	if bound := s.bound(t)["red"]; bound >= members {
		t.Fatalf("all %d pods were bound before the scheduler was killed, want some", bound)
	}
	// Meanwhile another gang needs the same room.
	s.createMembers(t, "blue")
	s.start(t, "gang.yaml", timeout, longTimeout)
	s.awaitBoundGang(t, "red")
	if bound := s.bound(t)["blue"]; bound > 0 {
		t.Errorf("%d pods of the other gang are bound, want none", bound)
	}
	s.awaitBindings(t, members)
}
