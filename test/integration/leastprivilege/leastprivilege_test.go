// SPDX-License-Identifier: Apache-2.0

// Package leastprivilege measures the permissions that the scheduler of manifests/second-scheduler needs: it runs it on
// a local control plane as its service account, makes it do everything that it can do, and compares the API server's
// audit log with the rules. It needs programs that were built before, so it has its own make target.
package leastprivilege

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	// schedulerName is the base's one profile, and the name of all objects of the base.
	schedulerName = "second-scheduler"
	base          = "../../../manifests/second-scheduler"
)

var account = cluster.Account{Namespace: metav1.NamespaceSystem, Name: schedulerName}

var shared = cluster.Shared{AuditPolicy: cluster.AllRequests}

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is the control plane with the base applied to it.
type stand struct {
	*cluster.Cluster
	client kubernetes.Interface
	nodes  []string
}

// newStand applies the base, with kubectl, as an operator would, and removes it at the end of the test.
func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t)}
	s.client = s.Client()
	s.nodes = s.AddNodes(t, 4)
	s.Kubectl(t, t.Context(), "apply", "-k", base)
	t.Cleanup(func() { s.Kubectl(t, context.Background(), "delete", "-k", base) })
	return s
}

func TestSecondSchedulerIsAllowedWhatItUsesAndNothingElse(t *testing.T) {
	s := newStand(t)
	grants := s.grants(t)
	s.awaitGrants(t, grants)
	config := s.writeConfig(t)
	// The steps stop at the first refusal. A scheduler without the
	// permission to list nodes does not start, and logs this.
	running := s.startScheduler(t, config)
	s.awaitLeader(t, 1)
	for _, namespace := range []string{"team-a", "team-b"} {
		s.bind(t, namespace)
		s.preempt(t, namespace)
		s.bindVolumes(t, namespace)
	}
	s.repeatFailures(t, "team-a", "team-b")
	s.readMetrics(t, running)
	// The second time the lease exists already.
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	s.startScheduler(t, config)
	s.awaitLeader(t, 2)

	requests := requests(s.Audit(t))
	t.Logf("%s may:\n%s\nit asked for:\n%s", account.User(), lines(grants), lines(requests))
	if findings := compare(grants, requests); len(findings) > 0 {
		t.Fatal(strings.Join(findings, "\n"))
	}
}

// lines formats each value on its own line.
func lines[T fmt.Stringer](things []T) string {
	var text strings.Builder
	for _, thing := range things {
		fmt.Fprintf(&text, "  %s\n", thing)
	}
	return text.String()
}

func TestPodsOfTheDeploymentsAreAllowedWherePodSecurityIsRestricted(t *testing.T) {
	const extender = "../../../manifests/scheduler-extender"
	s := newStand(t)
	s.Kubectl(t, t.Context(), "apply", "-k", extender)
	t.Cleanup(func() { s.Kubectl(t, context.Background(), "delete", "-k", extender) })
	s.Create(t, `{apiVersion: v1, kind: Namespace, metadata: {name: restricted, labels: {
  pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: v1.23}}}`)
	for _, name := range []string{schedulerName, "scheduler-extender"} {
		deployment, err := s.client.AppsV1().Deployments(account.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.dryRun(t, deployment, "restricted", func(*corev1.PodSpec) {}); err != nil {
			t.Error(err)
		}
		err = s.dryRun(t, deployment, "restricted", func(pod *corev1.PodSpec) { pod.HostNetwork = true })
		if !apierrors.IsForbidden(err) {
			t.Errorf("the API server looks at no pod's security: of one with hostNetwork it said %v", err)
		}
	}
}

// dryRun checks by a server-side dry run that the API server accepts a pod of a Deployment.
func (s *stand) dryRun(t *testing.T, deployment *appsv1.Deployment, namespace string, change func(*corev1.PodSpec)) error {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "of-the-deployment", Namespace: namespace},
		Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
	}
	change(&pod.Spec)
	onlyAsk := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	_, err := s.client.CoreV1().Pods(namespace).Create(t.Context(), pod, onlyAsk)
	return err
}

// writeConfig writes the configuration that the Deployment mounts to a file, and returns its path. Only the lease is
// longer: a scheduler that cannot renew it in time, as on a slow, busy machine, exits.
func (s *stand) writeConfig(t *testing.T) string {
	t.Helper()
	deployment, err := s.client.AppsV1().Deployments(account.Namespace).Get(t.Context(), schedulerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || len(pod.Volumes) != 1 || pod.Volumes[0].ConfigMap == nil {
		t.Fatalf("the Deployment should have the service account %s and one ConfigMap: %+v", account.Name, pod)
	}
	name := pod.Volumes[0].ConfigMap.Name
	configMap, err := s.client.CoreV1().ConfigMaps(account.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const elect = "  leaderElect: true\n"
	before, after, found := strings.Cut(configMap.Data["config.yaml"], elect)
	if !found {
		t.Fatalf("the configuration in the ConfigMap %s does not say %q", name, elect)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	cluster.Write(t, file, before+elect+"  leaseDuration: 60s\n  renewDeadline: 50s\n"+after)
	return file
}

// awaitGrants waits until the API server applies the rules.
func (s *stand) awaitGrants(t *testing.T, grants []grant) {
	t.Helper()
	for _, grant := range grants {
		for _, groups := range grant.rule.APIGroups {
			resource, subresource, _ := strings.Cut(grant.rule.Resources[0], "/")
			s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
				User: account.User(),
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: grant.rule.Verbs[0], Group: groups, Resource: resource, Subresource: subresource,
					Namespace: grant.namespace, Name: strings.Join(grant.rule.ResourceNames, ""),
				},
			})
		}
	}
}

// startScheduler starts the scheduler with the configuration of the base and a token of its service account.
func (s *stand) startScheduler(t *testing.T, config string) *localcluster.Scheduler {
	t.Helper()
	return s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config,
		localcluster.SchedulerOptions{Token: s.Token(t, account), LeaderElection: true})
}

// await polls until a condition holds. It fails the test as soon as the scheduler was refused something.
func (s *stand) await(t *testing.T, what string, condition func() error) {
	t.Helper()
	tick := 0
	s.Await(t, what, func() error {
		if tick++; tick%10 == 0 {
			for _, request := range requests(s.Audit(t)) {
				if !request.allowed {
					t.Fatalf("while waiting for %s: the scheduler asked for this, and was refused: %s; next: grant it in "+
						"manifests/second-scheduler, or find out what asks", what, request)
				}
			}
		}
		return condition()
	})
}

// awaitLeader waits until the scheduler holds the lease of the base and has renewed it, and until the events show that
// it was elected as many times as elections.
func (s *stand) awaitLeader(t *testing.T, elections int) {
	t.Helper()
	var first *coordinationv1.Lease
	s.await(t, "the lease "+schedulerName+" to be taken and renewed", func() error {
		lease, err := s.client.CoordinationV1().Leases(account.Namespace).Get(t.Context(), schedulerName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return errors.New("it has no holder")
		}
		if first == nil || *first.Spec.HolderIdentity != *lease.Spec.HolderIdentity {
			first = lease
		}
		return cluster.Unless(lease.Spec.RenewTime.After(first.Spec.RenewTime.Time), "it is not renewed")
	})
	s.await(t, "the event that says who leads", func() error {
		ofElections := metav1.ListOptions{FieldSelector: "reason=LeaderElection"}
		events, err := s.client.CoreV1().Events(account.Namespace).List(t.Context(), ofElections)
		if err != nil {
			return err
		}
		leaders := 0
		for _, event := range events.Items {
			if strings.HasSuffix(event.Message, "became leader") {
				leaders++
			}
		}
		return cluster.Unless(leaders == elections, "there are %d, want %d", leaders, elections)
	})
}

// newPod describes a pod for the second scheduler with a request for CPU.
func newPod(namespace, name, cpu string) *corev1.Pod {
	pod := localcluster.NewPod(name, schedulerName)
	pod.Namespace = namespace
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	return pod
}

// place creates a pod and waits until it is bound.
func (s *stand) place(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	s.CreatePod(t, pod)
	s.awaitBound(t, pod)
}

func (s *stand) awaitBound(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	s.await(t, "the pod "+pod.Namespace+"/"+pod.Name+" to be bound", func() error {
		seen, err := s.Pod(t, pod.Namespace, pod.Name)
		if err != nil {
			return err
		}
		return cluster.Unless(seen.Spec.NodeName != "", "it is not: %s", cluster.WhyPending(seen))
	})
}

// bind makes the scheduler place pods by other objects: the services that select them, and the labels of namespaces.
// For these it reads the same lists as for replica sets and the like.
func (s *stand) bind(t *testing.T, namespace string) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	s.Create(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s, labels: {team: %[1]s}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %[1]s}, spec: {selector: {app: web}, ports: [{port: 80}]}}`, namespace))
	for _, name := range []string{"web-1", "web-2"} {
		pod := newPod(namespace, name, "100m")
		pod.Labels = labels
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:       corev1.LabelHostname,
				LabelSelector:     &metav1.LabelSelector{MatchLabels: labels},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": namespace}},
			}},
		}}
		s.place(t, pod)
	}
}

// preempt fills a node with a pod, and then creates a pod of higher priority that needs the room.
func (s *stand) preempt(t *testing.T, namespace string) {
	t.Helper()
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 1000}")
	onFirstNode := map[string]string{corev1.LabelHostname: s.nodes[0]}
	victim, important := newPod(namespace, "victim-in-"+namespace, "6"), newPod(namespace, "important", "6")
	victim.Spec.NodeSelector, important.Spec.NodeSelector = onFirstNode, onFirstNode
	important.Spec.PriorityClassName = "important"
	s.place(t, victim)
	s.place(t, important)
	s.await(t, "the victim to be gone", func() error {
		_, err := s.Pod(t, namespace, victim.Name)
		if err == nil {
			return errors.New("it is there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	// The next one needs the room.
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := s.client.CoreV1().Pods(namespace).Delete(t.Context(), important.Name, now); err != nil {
		t.Fatal(err)
	}
}

// bindVolumes makes the scheduler place pods whose volumes wait for the first consumer: one that exists, and one that
// is still to be provisioned. The test takes the part of the controller manager and the storage driver.
func (s *stand) bindVolumes(t *testing.T, namespace string) {
	t.Helper()
	ready, made := namespace+"-ready", namespace+"-made"
	s.Create(t, fmt.Sprintf(`
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[2]s}, provisioner: kubernetes.io/no-provisioner,
  volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[3]s}, provisioner: storage.example.com,
  volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: storage.example.com}, spec: {storageCapacity: true}}
---
{apiVersion: storage.k8s.io/v1beta1, kind: CSIStorageCapacity, metadata: {name: %[3]s, namespace: %[1]s},
  storageClassName: %[3]s, capacity: 100Gi, nodeTopology: {}}`, namespace, ready, made))

	s.volume(t, ready, "")
	pod := s.podWithClaim(t, namespace, ready)
	s.await(t, "the volume "+ready+" to be reserved", func() error {
		volume, err := s.client.CoreV1().PersistentVolumes().Get(t.Context(), ready, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return cluster.Unless(volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Name == ready, "it is for %+v", volume.Spec.ClaimRef)
	})
	s.bindClaim(t, namespace, ready)
	s.awaitBound(t, pod)

	pod = s.podWithClaim(t, namespace, made)
	var claim *corev1.PersistentVolumeClaim
	s.await(t, "the claim "+made+" to say the node", func() error {
		var err error
		claim, err = s.client.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), made, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return cluster.Unless(claim.Annotations["volume.kubernetes.io/selected-node"] != "", "annotations %v", claim.Annotations)
	})
	s.volume(t, made, fmt.Sprintf(", claimRef: {kind: PersistentVolumeClaim, apiVersion: v1, namespace: %s, name: %s, uid: %s}", namespace, made, claim.UID))
	s.bindClaim(t, namespace, made)
	s.awaitBound(t, pod)
}

// volume creates a volume on the disk of any node, with more fields, and marks it available, as the controller manager does.
func (s *stand) volume(t *testing.T, name, more string) {
	t.Helper()
	s.Create(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec: {storageClassName: %[1]s, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, local: {path: /srv/%[1]s},
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}]}}%[2]s}`, name, more))
	_, err := s.client.CoreV1().PersistentVolumes().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Available"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// podWithClaim creates a claim for a volume of the class with the same name, and a pod that uses it.
func (s *stand) podWithClaim(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	s.Create(t, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %[1]s, namespace: %[2]s},
  spec: {storageClassName: %[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, name, namespace))
	pod := newPod(namespace, name, "100m")
	pod.Spec.Volumes = []corev1.Volume{{
		Name:         "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
	}}
	s.CreatePod(t, pod)
	return pod
}

// bindClaim binds a claim to the volume of the same name, as the controller manager does.
func (s *stand) bindClaim(t *testing.T, namespace, name string) {
	t.Helper()
	claims := s.client.CoreV1().PersistentVolumeClaims(namespace)
	patch := func(content string, subresources ...string) {
		t.Helper()
		_, err := claims.Patch(t.Context(), name, types.MergePatchType, []byte(content), metav1.PatchOptions{}, subresources...)
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(fmt.Sprintf(`{"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":%q}}`, name))
	patch(`{"status":{"phase":"Bound"}}`, "status")
}

// repeatFailures creates a pod in each namespace that fits on no node, and makes the scheduler retry it until it
// reports the same failure again: then it patches the event that it created at first.
func (s *stand) repeatFailures(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		pod := newPod(namespace, "fits-nowhere", "100m")
		// The reason must not be one that a check of a single node
		// finds: then a change of a node would not cause a retry.
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no-pod": "has-this"}},
			}},
		}}
		s.CreatePod(t, pod)
	}
	ofFailures := metav1.ListOptions{FieldSelector: "reason=FailedScheduling"}
	round := 0
	what := "a repeated FailedScheduling event in each of " + strings.Join(namespaces, ", ")
	s.await(t, what, func() error {
		// A change of a node's labels causes a retry.
		round++
		patch := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, round)
		nodes := s.client.CoreV1().Nodes()
		if _, err := nodes.Patch(t.Context(), s.nodes[0], types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
		for _, namespace := range namespaces {
			events, err := s.client.EventsV1().Events(namespace).List(t.Context(), ofFailures)
			if err != nil {
				return err
			}
			if !hasSeries(events.Items) {
				return fmt.Errorf("%s has none", namespace)
			}
		}
		return nil
	})
}

func hasSeries(events []eventsv1.Event) bool {
	for _, event := range events {
		if event.Regarding.Name == "fits-nowhere" && event.Series != nil {
			return true
		}
	}
	return false
}

// readMetrics reads the scheduler's metrics as Prometheus does, with the token of a permitted service account.
func (s *stand) readMetrics(t *testing.T, scheduler *localcluster.Scheduler) {
	t.Helper()
	prometheus := cluster.Account{Namespace: metav1.NamespaceDefault, Name: "prometheus"}
	s.Create(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: prometheus},
  rules: [{verbs: [get], nonResourceURLs: [/metrics]}]}`)
	s.CreateAccount(t, prometheus, rbacv1.RoleRef{Kind: "ClusterRole", Name: prometheus.Name})
	// The scheduler caches refusals, too.
	s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
		User:                  prometheus.User(),
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	})
	code, body, err := s.Ask(t.Context(), http.MethodGet, scheduler.URL()+"/metrics", nil, s.Token(t, prometheus))
	if err != nil || code != http.StatusOK || !strings.Contains(string(body), "scheduler_schedule_attempts_total") {
		t.Errorf("/metrics with a token that may read it: status %d (%v), want 200 and the scheduler's metrics", code, err)
	}
}
