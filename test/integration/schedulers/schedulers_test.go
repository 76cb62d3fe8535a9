// SPDX-License-Identifier: Apache-2.0

// Package schedulers runs three schedulers at once on one API server: stock, ours in its place, and ours as a second
// one. It checks from the API server's audit log which of them binds which pod, and how they compete for nodes. It
// needs programs that were built before, so it has its own make target.
package schedulers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	// total is the number of pods, divided among the three schedulers.
	total = 1000
	// podCPU is the request of each pod: twenty of them fill a node.
	podCPU      = "400m"
	podsPerNode = 20
)

// auditPolicy logs the user and the pod of each attempt to bind.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create]
    resources: [{group: "", resources: [pods/binding]}]
  - level: None
`

var shared = cluster.Shared{AuditPolicy: auditPolicy}

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// scheduler is one of the three. Its name is also that of its service account, which is in the audit log.
type scheduler struct {
	name, profile, program string
	// pods is the number of pods for its profile; they fill pool nodes, labelled pool: name.
	pods, pool int
	// ownPool restricts its profile to the nodes of its pool.
	ownPool string
}

func (s scheduler) account() cluster.Account {
	return cluster.Account{Namespace: metav1.NamespaceSystem, Name: s.name}
}

// stockPool restricts a profile to the pool "stock", by a plugin of stock.
const stockPool = `
    pluginConfig:
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
                - matchExpressions: [{key: pool, operator: In, values: [stock]}]
`

// three returns the three schedulers. Stock is restricted to its pool by its own plugins, ours by NodeFilter.
func three(t *testing.T) []scheduler {
	const ourPool = `
    plugins:
      multiPoint:
        enabled:
          - name: NodeFilter
    pluginConfig:
      - name: NodeFilter
        args:
          rules:
            - name: own-pool-only
              action: Deny
              nodeSelector:
                matchExpressions: [{key: pool, operator: NotIn, values: [%s]}]
`
	stock, ours := cluster.Program(t, "STOCK_SCHEDULER"), cluster.Program(t, "KUBE_SCHEDULER")
	return []scheduler{
		{"stock", "stock-scheduler", stock, 340, 17, stockPool},
		{"ours", corev1.DefaultSchedulerName, ours, 340, 17, fmt.Sprintf(ourPool, "ours")},
		{"second", "second-scheduler", ours, 320, 16, fmt.Sprintf(ourPool, "second")},
	}
}

// stockProfile, ownPool and packing return a profile without its name.
func stockProfile(scheduler) string { return "" }

func ownPool(s scheduler) string { return s.ownPool }

// packing makes all three prefer the same node, the fullest.
func packing(scheduler) string {
	return `
    plugins:
      score:
        disabled:
          - name: NodeResourcesBalancedAllocation
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 1}]
`
}

func TestWithRoomEachBindsItsOwnPodsAndNoNodeIsFull(t *testing.T) {
	s := newStand(t)
	// Twice the needed room.
	s.AddNodes(t, 2*total/podsPerNode)
	s.startAll(t, stockProfile)
	s.place(t, s.newPods())
	s.checkBindings(t)
	if over := s.overcommitted(t); len(over) > 0 {
		t.Errorf("nodes with more than they have: %v", over)
	}

	// This is what happens to a second scheduler of the same name.
	pod := s.activePods(t)[0]
	err := s.Client().CoreV1().Pods(pod.Namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	}, metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "already assigned to node") {
		t.Errorf("a pod that is bound was bound again; the API server says: %v", err)
	}
}

func TestWithAPoolForEachTheLastFreeSlotIsUsedAndNoNodeIsOverfull(t *testing.T) {
	s := newStand(t)
	var nodes []*corev1.Node
	for _, scheduler := range s.schedulers {
		for i := range scheduler.pool {
			nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", scheduler.name, i+1), Labels: map[string]string{"pool": scheduler.name},
			}})
		}
	}
	s.CreateNodes(t, nodes...)
	s.startAll(t, ownPool)
	s.place(t, s.newPods())
	s.checkBindings(t)
	for node, count := range s.podsOnNodes(t) {
		if count != podsPerNode {
			t.Errorf("node %s has %d pods, want %d: just full", node, count, podsPerNode)
		}
	}
}

// Without spare room and without pools, two schedulers can assign the same slot, because each does not know of the
// other's pod yet. This is a race, so it is only counted; the test checks that all pods are placed in the end. It takes
// the part of a kubelet, which rejects a pod without room, and of a controller, which recreates it.
func TestWithoutPoolsPodsTooManyAreRejectedByTheNodeAndFindRoomElsewhere(t *testing.T) {
	s := newStand(t)
	s.AddNodes(t, total/podsPerNode)
	s.startAll(t, packing)
	s.place(t, s.newPods())
	s.checkBindings(t)
	for round := 1; ; round++ {
		over := s.overcommitted(t)
		if len(over) == 0 {
			t.Logf("after %d rounds no node has more than it can run", round-1)
			break
		}
		if round > 20 {
			t.Fatalf("still, after %d rounds: %v", round-1, over)
		}
		replacements := s.reject(t, over, round)
		t.Logf("round %d: %d nodes were given more than they have; %d pods are OutOfcpu and made again",
			round, len(over), len(replacements))
		s.place(t, replacements)
	}
	s.checkBindings(t)
	for node, count := range s.podsOnNodes(t) {
		if count != podsPerNode {
			t.Errorf("node %s has %d pods, want %d: just full", node, count, podsPerNode)
		}
	}
}

// stand is a control plane with the three schedulers.
type stand struct {
	*cluster.Cluster
	schedulers []scheduler
	// asked is the user that should bind a pod, by the pod's name.
	asked map[string]string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	return &stand{Cluster: shared.Get(t), schedulers: three(t), asked: map[string]string{}}
}

// startAll starts the three schedulers, each with its own service
// account with the roles of the stock scheduler, and with one profile.
func (s *stand) startAll(t *testing.T, profile func(scheduler) string) {
	t.Helper()
	for _, scheduler := range s.schedulers {
		account := scheduler.account()
		const authentication = "extension-apiserver-authentication"
		s.CreateAccount(t, account, rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:kube-scheduler"},
			rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:volume-scheduler"},
			rbacv1.RoleRef{Kind: "Role", Name: authentication + "-reader"})
		// The API server learns of the last binding last.
		s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
			User: account.User(), ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Resource: "configmaps", Namespace: account.Namespace, Name: authentication,
			},
		})
		config := cluster.WriteConfig(t, "profiles:\n  - schedulerName: "+scheduler.profile+profile(scheduler))
		s.StartScheduler(t, scheduler.program, config,
			localcluster.SchedulerOptions{Name: scheduler.name + "-scheduler", Token: s.Token(t, account)})
	}
}

// newPods describes all pods, those of the three schedulers mixed.
func (s *stand) newPods() []*corev1.Pod {
	var all []*corev1.Pod
	for number := 0; len(all) < total; number++ {
		for _, scheduler := range s.schedulers {
			if number < scheduler.pods {
				all = append(all, s.newPod(fmt.Sprintf("%s-%03d", scheduler.name, number+1), scheduler))
			}
		}
	}
	return all
}

func (s *stand) newPod(name string, scheduler scheduler) *corev1.Pod {
	pod := localcluster.NewPod(name, scheduler.profile)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(podCPU)
	s.asked[name] = scheduler.account().User()
	return pod
}

// place creates pods and waits until they are bound. It checks by the events that each was bound by its profile.
func (s *stand) place(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	placements, err := s.Place(ctx, pods...)
	if err != nil {
		t.Fatal(err)
	}
	waiting := 0
	for _, placement := range placements {
		// A pod may be tried before its scheduler has seen that another has left a node; then it is retried.
		if placement.Node == "" && placement.Message != "" {
			waiting++
			continue
		}
		if err := placement.Err(); err != nil {
			t.Error(err)
		}
	}
	s.Await(t, fmt.Sprintf("the %d pods that found no node at first", waiting), func() error {
		for _, pod := range s.activePods(t) {
			if pod.Spec.NodeName == "" {
				return fmt.Errorf("%s has none: %s", pod.Name, cluster.WhyPending(&pod))
			}
		}
		return nil
	})
}

// activePods returns the pods that a node needs room for, in the order of their binding.
func (s *stand) activePods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	active := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	slices.SortStableFunc(active, func(a, b corev1.Pod) int { return boundAt(a).Compare(boundAt(b)) })
	return active
}

// boundAt returns the time when a pod was bound, to the second.
func boundAt(pod corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func (s *stand) podsOnNodes(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, pod := range s.activePods(t) {
		count[pod.Spec.NodeName]++
	}
	return count
}

// overcommitted returns the nodes whose pods request more CPU than they have, each with the latest pods that exceed it.
func (s *stand) overcommitted(t *testing.T) map[string][]corev1.Pod {
	t.Helper()
	list, err := s.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]*resource.Quantity{}
	for _, node := range list.Items {
		cpu := node.Status.Allocatable.Cpu().DeepCopy()
		free[node.Name] = &cpu
	}
	over := map[string][]corev1.Pod{}
	for _, pod := range s.activePods(t) {
		request := pod.Spec.Containers[0].Resources.Requests.Cpu()
		if room := free[pod.Spec.NodeName]; room.Cmp(*request) < 0 {
			over[pod.Spec.NodeName] = append(over[pod.Spec.NodeName], pod)
		} else {
			room.Sub(*request)
		}
	}
	return over
}

// reject rejects pods as a kubelet without room does, and returns the pods that a controller would create instead.
func (s *stand) reject(t *testing.T, over map[string][]corev1.Pod, round int) []*corev1.Pod {
	t.Helper()
	api := s.Client().CoreV1().Pods(corev1.NamespaceDefault)
	var replacements []*corev1.Pod
	for node, pods := range over {
		for _, pod := range pods {
			s.Await(t, "the status of "+pod.Name+" on "+node, func() error {
				// KWOK sets every pod to Running once, even a failed one, so this must come after it.
				seen, err := api.Get(t.Context(), pod.Name, metav1.GetOptions{})
				if err == nil && seen.Status.Phase != corev1.PodRunning {
					err = fmt.Errorf("it is %s", seen.Status.Phase)
				}
				if err != nil {
					return err
				}
				seen.Status.Phase, seen.Status.Reason = corev1.PodFailed, "OutOfcpu"
				seen.Status.Message = "Pod Node didn't have enough resource: cpu"
				_, err = api.UpdateStatus(t.Context(), seen, metav1.UpdateOptions{})
				return err
			})
			at := slices.IndexFunc(s.schedulers, func(scheduler scheduler) bool { return scheduler.profile == pod.Spec.SchedulerName })
			replacements = append(replacements, s.newPod(fmt.Sprintf("%s-r%d", pod.Name, round), s.schedulers[at]))
		}
	}
	return replacements
}

// checkBindings checks in the audit log that each pod was bound once, by its scheduler.
func (s *stand) checkBindings(t *testing.T) {
	t.Helper()
	var boundBy map[string][]string
	var refused map[string]int
	// A pod can be visible on its node before the log is written.
	s.Await(t, fmt.Sprintf("the audit log to say who bound the %d pods", len(s.asked)), func() error {
		boundBy, refused = map[string][]string{}, map[string]int{}
		for _, event := range s.Audit(t) {
			if event.ObjectRef == nil || event.ResponseStatus == nil || event.ObjectRef.Subresource != "binding" {
				t.Fatalf("the audit log has an event that its policy does not ask for: %+v", event)
			}
			if code := event.ResponseStatus.Code; code >= 300 {
				refused[fmt.Sprintf("%d %s", code, event.ResponseStatus.Reason)]++
				continue
			}
			boundBy[event.ObjectRef.Name] = append(boundBy[event.ObjectRef.Name], event.User.Username)
		}
		if len(boundBy) < len(s.asked) {
			return fmt.Errorf("it says so of %d", len(boundBy))
		}
		return nil
	})
	for pod, user := range s.asked {
		if users := boundBy[pod]; !slices.Equal(users, []string{user}) {
			t.Errorf("pod %s was bound by %q, want by %s, once", pod, users, user)
		}
	}
	if len(boundBy) != len(s.asked) {
		t.Errorf("%d pods were bound, of %d", len(boundBy), len(s.asked))
	}
	count := map[string]int{}
	for _, users := range boundBy {
		count[users[0]]++
	}
	t.Logf("bindings: %v; refused: %v", count, refused)
}
