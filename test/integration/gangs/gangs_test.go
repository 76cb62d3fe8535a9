// SPDX-License-Identifier: Apache-2.0

// Package gangs tests gangs with gang.yaml on a local control plane. It needs programs that were built before, so it has
// its own make target.
package gangs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	root       = "../../.."
	groupLabel = "pod-group.scheduling.sigs.k8s.io"
	// important is a priority class above the default.
	important = "important"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is a control plane with PodGroups, and nodes on which a pod takes 1 CPU.
type stand struct {
	*cluster.Cluster
	scheduler *localcluster.Scheduler
}

// newStand returns a stand with a node for each number of places, node-0 and so on.
func newStand(t testing.TB, places ...int) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t)}
	s.CreateFrom(t, root+"/manifests/crds", root+"/manifests/rbac/coscheduling.yaml")
	t.Cleanup(func() {
		s.Kubectl(t, context.Background(), "delete", "podgroups", "--all", "--all-namespaces")
	})
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
	for i, cpus := range places {
		s.CreateNodes(t, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status:     corev1.NodeStatus{Allocatable: cluster.Resources(fmt.Sprint(cpus), "640Gi", "110")},
		})
	}
	return s
}

// config writes gang.yaml, in which some texts are replaced, to a file.
func config(t testing.TB, replacements ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gang.yaml")
	cluster.Write(t, file, strings.NewReplacer(replacements...).Replace(cluster.Read(t, root+"/manifests/config/gang.yaml")))
	return file
}

func (s *stand) start(t testing.TB) {
	t.Helper()
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config(t))
}

// createGroup creates a PodGroup; spec has further fields.
func (s *stand) createGroup(t testing.TB, name string, minMember int, spec string) {
	t.Helper()
	s.Create(t, fmt.Sprintf("apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\n"+
		"metadata: {name: %s, namespace: default}\nspec: {minMember: %d%s}\n", name, minMember, spec))
}

// pod describes a pod that takes a place, of a gang or of none.
func pod(name, group string) *corev1.Pod {
	pod := localcluster.NewPod(name, corev1.DefaultSchedulerName)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	if group != "" {
		pod.Labels = map[string]string{groupLabel: group}
	}
	return pod
}

// createMembers creates pods of a gang, NAME-FIRST and so on.
func (s *stand) createMembers(t testing.TB, group string, first, count int, change func(*corev1.Pod)) {
	t.Helper()
	for i := first; i < first+count; i++ {
		member := pod(fmt.Sprintf("%s-%d", group, i), group)
		if change != nil {
			change(member)
		}
		s.CreatePod(t, member)
	}
}

func withPriority(pod *corev1.Pod) { pod.Spec.PriorityClassName = important }

// fill creates pods without a gang, and waits until they are bound.
func (s *stand) fill(t testing.TB, count int) {
	t.Helper()
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, s.CreatePod(t, pod(fmt.Sprintf("filler-%d", i), "")))
	}
	for _, pod := range pods {
		s.AwaitBound(t, pod)
	}
}

// pods returns those of the default namespace, by gang; the others are in "". A pod that is being deleted is left out.
func (s *stand) pods(t testing.TB) map[string][]corev1.Pod {
	t.Helper()
	list, err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string][]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods[pod.Labels[groupLabel]] = append(pods[pod.Labels[groupLabel]], pod)
		}
	}
	return pods
}

// nodes returns the nodes of a gang's bound pods.
func (s *stand) nodes(t testing.TB, group string) (nodes []string) {
	t.Helper()
	for _, pod := range s.pods(t)[group] {
		if pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes
}

func (s *stand) awaitBoundGang(t testing.TB, group string, count int) {
	t.Helper()
	s.Await(t, fmt.Sprintf("%d pods of %q to be bound", count, group), func() error {
		bound := s.nodes(t, group)
		return cluster.Unless(len(bound) == count, "%d are", len(bound))
	})
}

// awaitRefused waits until all pods of a gang are refused for the same reason, which it returns. None may be bound.
func (s *stand) awaitRefused(t testing.TB, group, part string) {
	t.Helper()
	s.Await(t, fmt.Sprintf("the pods of %q to be refused: %s", group, part), func() error {
		why := map[string]int{}
		for _, pod := range s.pods(t)[group] {
			if pod.Spec.NodeName != "" {
				t.Fatalf("pod %s is bound, want it refused", pod.Name)
			}
			why[cluster.WhyPending(&pod)]++
		}
		for reason := range why {
			if len(why) == 1 && strings.Contains(reason, part) {
				return nil
			}
		}
		return fmt.Errorf("reasons are %v", why)
	})
}

// attempts returns the number of attempts for gangs with a result.
func (s *stand) attempts(t testing.TB, result string) int {
	t.Helper()
	content, err := s.Get(t.Context(), s.scheduler.URL()+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return int(cluster.Sum(content, `scheduler_coscheduling_attempts_total\{.*result="`+result+`"\}`))
}

func TestAGangThatDoesNotFitEvenByPreemptionEvictsNothing(t *testing.T) {
	s := newStand(t, 1, 1, 1)
	s.start(t)
	s.fill(t, 3)
	s.createGroup(t, "red", 5, "")
	s.createMembers(t, "red", 0, 5, withPriority)
	s.awaitRefused(t, "red", "does not fit as a whole")
	// A pod that ends wakes the gang, and another one takes its place.
	for i := range 3 {
		s.Kubectl(t, t.Context(), "delete", "pod", fmt.Sprintf("filler-%d", i), "--now")
		s.Await(t, "another attempt", func() error {
			attempts := s.attempts(t, "unschedulable")
			return cluster.Unless(attempts > i+1, "there were %d", attempts)
		})
		s.AwaitBound(t, s.CreatePod(t, pod(fmt.Sprintf("filler-%d-again", i), "")))
	}
	if pods := s.pods(t); len(pods[""]) != 3 || len(s.nodes(t, "red")) > 0 {
		t.Errorf("%d of 3 other pods are left, and %v are nodes of the gang, want nothing changed", len(pods[""]), s.nodes(t, "red"))
	}
}

func TestAGangWithMinResourcesPreempts(t *testing.T) {
	s := newStand(t, 1, 1, 1)
	s.start(t)
	s.fill(t, 3)
	s.createGroup(t, "red", 2, `, minResources: {cpu: "2"}`)
	s.createMembers(t, "red", 0, 2, withPriority)
	s.awaitBoundGang(t, "red", 2)
	if left := len(s.pods(t)[""]); left != 1 {
		t.Errorf("%d of 3 other pods are left, want 1", left)
	}
}

func TestPodsThatAreBeingDeletedDoNotCount(t *testing.T) {
	s := newStand(t)
	// Nothing ends its pods, as KWOK does on the other nodes.
	_, err := s.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"},
		Status:     corev1.NodeStatus{Allocatable: cluster.Resources("8", "64Gi", "110")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.createGroup(t, "red", 4, "")
	s.createMembers(t, "red", 0, 4, nil)
	s.awaitBoundGang(t, "red", 4)
	for i := range 4 {
		if err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).Delete(t.Context(), fmt.Sprintf("red-%d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.createMembers(t, "red", 4, 2, nil)
	s.awaitRefused(t, "red", "has fewer pods than its minMember")
	s.createMembers(t, "red", 6, 2, nil)
	s.awaitBoundGang(t, "red", 4)
}

func TestAPodGroupComesLaterAndGoes(t *testing.T) {
	s := newStand(t, 8)
	s.start(t)
	s.createMembers(t, "red", 0, 2, nil)
	s.awaitRefused(t, "red", "the pod's PodGroup does not exist")
	s.createGroup(t, "red", 2, "")
	s.awaitBoundGang(t, "red", 2)
	s.Kubectl(t, t.Context(), "delete", "podgroup", "red")
	s.CreatePod(t, pod("red-2", "red"))
	s.AwaitBound(t, s.CreatePod(t, pod("alone", "")))
	const absent = "the pod's PodGroup does not exist"
	if why := s.AwaitPending(t, corev1.NamespaceDefault, "red-2", absent); why != absent {
		t.Errorf("the new pod waits because: %s", why)
	}
	if bound := len(s.nodes(t, "red")); bound != 2 {
		t.Errorf("%d pods of the gang are bound, want the first 2", bound)
	}
}

func TestTwoSchedulersHaveTheirOwnGangs(t *testing.T) {
	s := newStand(t, 8)
	s.start(t)
	const second = "second"
	s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config(t, "schedulerName: default-scheduler", "schedulerName: "+second), localcluster.SchedulerOptions{Name: second})
	ofSecond := func(pod *corev1.Pod) { pod.Spec.SchedulerName = second }
	s.createGroup(t, "red", 4, "")
	s.createGroup(t, "blue", 2, "")
	s.createMembers(t, "red", 0, 2, ofSecond)
	s.createMembers(t, "blue", 0, 2, ofSecond)
	s.awaitBoundGang(t, "blue", 2)
	s.createMembers(t, "red", 2, 2, nil)
	for _, name := range []string{"red-2", "red-3"} {
		s.AwaitPending(t, corev1.NamespaceDefault, name, "those with another schedulerName only count when they are bound")
	}
	if bound := len(s.nodes(t, "red")); bound > 0 {
		t.Errorf("%d pods of the gang with two schedulers are bound", bound)
	}
}

// TestAStandbyBindsTheRestOfAGang kills the leader in the middle of binding. The rest goes first although another gang is
// older, and preempts as a gang.
func TestAStandbyBindsTheRestOfAGang(t *testing.T) {
	const count = 10
	s := newStand(t, count)
	s.createGroup(t, "blue", count, "")
	s.createGroup(t, "red", count, "")
	elect := []string{"leaderElect: true", "{leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}", "leaderElection:\n  ", "leaderElection: "}
	const client = "clientConnection:\n"
	// Two requests per second: bindings are slow enough to stop in the middle.
	slow := s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config(t, append(elect, client, client+"  qps: 2\n  burst: 2\n")...),
		localcluster.SchedulerOptions{LeaderElection: true, Name: "leader"})
	s.createMembers(t, "red", 0, count, withPriority)
	s.Await(t, "some pods of the gang to be bound", func() error {
		return cluster.Unless(len(s.nodes(t, "red")) > 0, "none is")
	})
	if err := slow.Kill(); err != nil {
		t.Fatal(err)
	}
	bound := len(s.nodes(t, "red"))
	if bound >= count {
		t.Fatalf("all %d pods were bound before the scheduler was killed, want some", bound)
	}
	// Meanwhile pods without a gang take the rest of the room, and the older gang waits for it, too.
	for i := range count - bound {
		filler := pod(fmt.Sprintf("filler-%d", i), "")
		filler.Spec.NodeName = "node-0"
		s.CreatePod(t, filler)
	}
	s.createMembers(t, "blue", 0, count, withPriority)
	s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config(t, elect...), localcluster.SchedulerOptions{LeaderElection: true, Name: "standby"})
	s.awaitBoundGang(t, "red", count)
	if pods := s.pods(t); len(pods[""]) > 0 || len(s.nodes(t, "blue")) > 0 {
		t.Errorf("%d other pods and %d of the older gang are left on the node, want none", len(pods[""]), len(s.nodes(t, "blue")))
	}
}
