// SPDX-License-Identifier: Apache-2.0

// Package endtoend measures what the scheduler of manifests/second-scheduler needs to be allowed: it runs it on a local
// control plane as the service account that it has in a cluster, lets it do everything that it can do, and compares the
// API server's audit log with the rules. It needs programs that were built before, so it is run by its own make target.
package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/integration/leastprivilege"
	"kube-scheduler-fork/test/testinput"
)

const (
	// schedulerName is the base's one profile, and the name of everything that the base makes.
	schedulerName = "my-scheduler"
	// patience is how long the scheduler may take for one thing: many times what it takes on a slow, busy machine.
	patience = 90 * time.Second
)

var account = leastprivilege.ServiceAccount{Namespace: metav1.NamespaceSystem, Name: schedulerName}

// auditPolicy logs who asked for what, once it is answered or, for a watch, begun.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// stand is the control plane with the base applied to it.
type stand struct {
	plane    *localcluster.ControlPlane
	client   kubernetes.Interface
	auditLog string
	// rendered are the manifests of the base; config is the file with the configuration that is in them.
	rendered []byte
	config   string
	kubectl  string
	nodes    []string
}

func TestSecondSchedulerIsAllowedWhatItUsesAndNothingElse(t *testing.T) {
	scheduler := testinput.File(t, "KUBE_SCHEDULER")
	s := newStand(t)
	grants, err := leastprivilege.ReadGrants(bytes.NewReader(s.rendered), account)
	if err != nil {
		t.Fatal(err)
	}

	s.awaitGrants(t, grants)
	// The steps stop at the first refusal. A scheduler that may not list nodes does not start; its log says so.
	running := s.startScheduler(t, scheduler)
	s.awaitLeader(t, 1)
	for _, namespace := range []string{"team-a", "team-b"} {
		s.bind(t, namespace)
		s.preempt(t, namespace)
		s.bindVolumes(t, namespace)
	}
	s.repeatFailures(t, "team-a", "team-b")
	s.readMetrics(t, running)
	// The second time it finds the lease there.
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	s.startScheduler(t, scheduler)
	s.awaitLeader(t, 2)

	usage := s.usage(t)
	comparison := leastprivilege.Compare(grants, usage)
	var table strings.Builder
	if err := comparison.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("what %s may do, and did:\n%s", account.User(), table.String())
	if err := comparison.Err(); err != nil {
		t.Fatal(err)
	}

	t.Run("without any one grant it would have been refused", func(t *testing.T) {
		for i, grant := range grants {
			without := append(append([]leastprivilege.Grant{}, grants[:i]...), grants[i+1:]...)
			if leastprivilege.Compare(without, usage).Err() == nil {
				t.Errorf("%s: nobody misses it", grant)
			}
		}
	})
	t.Run("one more grant would have been noticed", func(t *testing.T) {
		more := append(append([]leastprivilege.Grant{}, grants...), leastprivilege.Grant{Verb: "get", Resource: "secrets"})
		if leastprivilege.Compare(more, usage).Err() == nil {
			t.Error("get secrets: nobody noticed")
		}
	})
}

func TestPodsOfTheDeploymentAreAllowedWherePodSecurityIsRestricted(t *testing.T) {
	s := newStand(t)
	deployment, err := s.client.AppsV1().Deployments(account.Namespace).Get(t.Context(), schedulerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.namespace(t, "restricted", map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "v1.23",
	})
	if err := s.dryRun(t, deployment, "restricted", func(*corev1.PodSpec) {}); err != nil {
		t.Error(err)
	}
	err = s.dryRun(t, deployment, "restricted", func(pod *corev1.PodSpec) { pod.HostNetwork = true })
	if !apierrors.IsForbidden(err) {
		t.Errorf("the API server looks at no pod's security: of one with hostNetwork it said %v", err)
	}
}

// dryRun asks the API server whether it would take a pod of a Deployment.
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

// newStand starts a control plane with an audit log and applies the base to it, with kubectl, as an operator would.
func newStand(t *testing.T) *stand {
	t.Helper()
	folder := t.TempDir()
	s := &stand{auditLog: filepath.Join(folder, "audit.log"), kubectl: testinput.File(t, "KUBECTL")}
	policy := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	s.plane, err = localcluster.Start(t.Context(), localcluster.Options{
		Etcd: testinput.File(t, "ETCD"), KubeAPIServer: testinput.File(t, "KUBE_APISERVER"), KWOK: testinput.File(t, "KWOK"),
		Parent: folder, Progress: t.Output(),
		APIServerArguments: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + s.auditLog},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.client = s.plane.Client()
	if s.nodes, err = s.plane.AddNodes(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	base := testinput.File(t, "SECOND_SCHEDULER")
	s.rendered = s.runKubectl(t, "kustomize", base)
	s.runKubectl(t, "apply", "-k", base)
	s.config = s.readConfig(t, filepath.Join(folder, "config.yaml"))
	return s
}

func (s *stand) runKubectl(t *testing.T, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.kubectl, arguments...)
	// It keeps what it learns about an API server in the home directory.
	command.Env = []string{"KUBECONFIG=" + s.plane.Kubeconfig(), "HOME=" + s.plane.Folder()}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return output
}

// readConfig writes the configuration that the Deployment mounts to a file, and gives its path. Only the lease is a longer one: a
// scheduler that cannot renew it in time, as on a slow, busy machine, ends.
func (s *stand) readConfig(t *testing.T, file string) string {
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
	content := before + elect + "  leaseDuration: 60s\n  renewDeadline: 50s\n" + after
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// awaitGrants waits until the API server allows what was read in the rules. It learns of new rules a moment after it has
// stored them, and a scheduler that came in between would be refused.
func (s *stand) awaitGrants(t *testing.T, grants []leastprivilege.Grant) {
	t.Helper()
	for _, grant := range grants {
		resource, subresource, _ := strings.Cut(grant.Resource, "/")
		s.awaitAllowed(t, grant.String(), authorizationv1.SubjectAccessReviewSpec{
			User: account.User(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: grant.Verb, Group: grant.Group, Resource: resource, Subresource: subresource,
				Namespace: grant.Namespace, Name: grant.Name,
			},
		})
	}
}

func (s *stand) awaitAllowed(t *testing.T, what string, question authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: question}
	s.await(t, "the API server to allow: "+what, func(ctx context.Context) (bool, error) {
		answer, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}

// startScheduler starts the scheduler with the configuration of the base and a token of its service account.
func (s *stand) startScheduler(t *testing.T, executable string) *localcluster.Scheduler {
	t.Helper()
	scheduler, err := s.plane.StartScheduler(t.Context(), executable, s.config,
		localcluster.WithToken(s.token(t, account)), localcluster.WithLeaderElection())
	if err != nil {
		t.Fatal(err)
	}
	return scheduler
}

func (s *stand) token(t *testing.T, account leastprivilege.ServiceAccount) string {
	t.Helper()
	request, err := s.client.CoreV1().ServiceAccounts(account.Namespace).CreateToken(
		t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// usage gives what the scheduler has asked for so far.
func (s *stand) usage(t *testing.T) leastprivilege.Usage {
	t.Helper()
	log, err := os.Open(s.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	usage, err := leastprivilege.ReadAudit(log, account.User())
	if err != nil {
		t.Fatal(err)
	}
	return usage
}

// await asks until a condition holds. It fails the test when it does not in time, and as soon as the scheduler was
// refused something.
func (s *stand) await(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var lastErr error
	for tick := 1; ; tick++ {
		done, err := condition(ctx)
		if done && err == nil {
			return
		}
		if ctx.Err() == nil {
			lastErr = err
		}
		if tick%10 == 0 {
			for request := range s.usage(t) {
				if !request.Allowed {
					t.Fatalf("while waiting for %s: the scheduler asked for this, and was refused: %s; next: grant it in "+
						"manifests/second-scheduler, or find out who asks", what, request)
				}
			}
		}
		select {
		case <-ticker.C:
		case <-s.plane.Failed():
			t.Fatalf("while waiting for %s: %v", what, s.plane.Failure())
		case <-ctx.Done():
			t.Fatalf("waited %s for %s in vain (the last error: %v); next: look into the end of the scheduler's log:\n%s",
				patience, what, lastErr, s.schedulerLog())
		}
	}
}

// schedulerLog gives the end of the scheduler's log, which is removed with the control plane.
func (s *stand) schedulerLog() string {
	content, err := os.ReadFile(filepath.Join(s.plane.Folder(), "kube-scheduler.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// awaitLeader waits until the scheduler holds the lease of the base and has renewed it, and an event says so; elections is
// how often that has happened then.
func (s *stand) awaitLeader(t *testing.T, elections int) {
	t.Helper()
	var first *coordinationv1.Lease
	s.await(t, "the lease "+schedulerName+" to be taken and renewed", func(ctx context.Context) (bool, error) {
		lease, err := s.client.CoordinationV1().Leases(account.Namespace).Get(ctx, schedulerName, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return false, err
		}
		if first == nil || *first.Spec.HolderIdentity != *lease.Spec.HolderIdentity {
			first = lease
		}
		return lease.Spec.RenewTime.After(first.Spec.RenewTime.Time), nil
	})
	s.await(t, "the event that says who leads", func(ctx context.Context) (bool, error) {
		ofElections := metav1.ListOptions{FieldSelector: "reason=LeaderElection"}
		events, err := s.client.CoreV1().Events(account.Namespace).List(ctx, ofElections)
		if err != nil {
			return false, err
		}
		leaders := 0
		for _, event := range events.Items {
			if strings.HasSuffix(event.Message, "became leader") {
				leaders++
			}
		}
		return leaders == elections, nil
	})
}

func (s *stand) namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// newPod describes a pod for the second scheduler with a request for CPU.
func newPod(namespace, name, cpu string) *corev1.Pod {
	pod := localcluster.NewPod(name, schedulerName)
	pod.Namespace = namespace
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	return pod
}

func (s *stand) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := s.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *stand) awaitBound(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	s.await(t, "pod "+pod.Namespace+"/"+pod.Name+" to be bound", func(ctx context.Context) (bool, error) {
		seen, err := s.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && seen.Spec.NodeName != "", err
	})
}

// bind has pods placed by what the scheduler knows of other objects: the services that select them, and the labels of
// namespaces. For these it reads the same lists as it does for replica sets and the like.
func (s *stand) bind(t *testing.T, namespace string) {
	t.Helper()
	s.namespace(t, namespace, map[string]string{"team": namespace})
	labels := map[string]string{"app": "web"}
	_, err := s.client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
		s.create(t, pod)
		s.awaitBound(t, pod)
	}
}

// preempt fills a node with a pod and then wants room there for a pod of higher priority.
func (s *stand) preempt(t *testing.T, namespace string) {
	t.Helper()
	_, err := s.client.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important"}, Value: 1000}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	onFirstNode := map[string]string{corev1.LabelHostname: s.nodes[0]}
	victim, important := newPod(namespace, "victim-in-"+namespace, "6"), newPod(namespace, "important", "6")
	victim.Spec.NodeSelector, important.Spec.NodeSelector = onFirstNode, onFirstNode
	important.Spec.PriorityClassName = "important"
	s.create(t, victim)
	s.awaitBound(t, victim)
	s.create(t, important)
	s.awaitBound(t, important)
	s.await(t, "the victim to be gone", func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().Pods(namespace).Get(ctx, victim.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	// The next one needs the room.
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := s.client.CoreV1().Pods(namespace).Delete(t.Context(), important.Name, now); err != nil {
		t.Fatal(err)
	}
}

// bindVolumes has pods placed whose volumes wait for them: one that exists already, and one that has yet to be made. The
// test does what the controller manager and the driver of the storage would do.
func (s *stand) bindVolumes(t *testing.T, namespace string) {
	t.Helper()
	ready, made := namespace+"-ready", namespace+"-made"
	s.storageClass(t, ready, "kubernetes.io/no-provisioner")
	s.storageClass(t, made, "storage.example.com")
	yes := true
	_, err := s.client.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: "storage.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	capacity := resource.MustParse("100Gi")
	_, err = s.client.StorageV1beta1().CSIStorageCapacities(namespace).Create(t.Context(), &storagev1beta1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Name: made},
		StorageClassName: made, Capacity: &capacity, NodeTopology: &metav1.LabelSelector{},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	s.volume(t, newVolume(ready, ready))
	pod := s.podWithClaim(t, namespace, ready)
	s.await(t, "the volume "+ready+" to be reserved", func(ctx context.Context) (bool, error) {
		volume, err := s.client.CoreV1().PersistentVolumes().Get(ctx, ready, metav1.GetOptions{})
		return err == nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Name == ready, err
	})
	s.bindClaim(t, namespace, ready)
	s.awaitBound(t, pod)

	pod = s.podWithClaim(t, namespace, made)
	var claim *corev1.PersistentVolumeClaim
	s.await(t, "the claim "+made+" to say the node", func(ctx context.Context) (bool, error) {
		var err error
		claim, err = s.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, made, metav1.GetOptions{})
		return err == nil && claim.Annotations["volume.kubernetes.io/selected-node"] != "", err
	})
	volume := newVolume(made, made)
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: made, UID: claim.UID,
	}
	s.volume(t, volume)
	s.bindClaim(t, namespace, made)
	s.awaitBound(t, pod)
}

func (s *stand) storageClass(t *testing.T, name, provisioner string) {
	t.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := s.client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &wait,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// newVolume describes a volume on the disk of any node.
func newVolume(name, class string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:       class,
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/srv/" + name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}},
			}}}},
		},
	}
}

// volume creates a volume, and says as the controller manager does that it can be had.
func (s *stand) volume(t *testing.T, volume *corev1.PersistentVolume) {
	t.Helper()
	created, err := s.client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status.Phase = corev1.VolumeAvailable
	if _, err := s.client.CoreV1().PersistentVolumes().UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// podWithClaim creates a claim for a volume of the class with the same name, and a pod that uses it.
func (s *stand) podWithClaim(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	_, err := s.client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &name,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod(namespace, name, "100m")
	pod.Spec.Volumes = []corev1.Volume{{
		Name:         "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
	}}
	s.create(t, pod)
	return pod
}

// bindClaim ties a claim to the volume of the same name, as the controller manager does at last.
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

// repeatFailures has a pod in each namespace that fits on no node, and lets the scheduler look at it again until it says
// the same once more: then the event that it sent is patched, where at first it was created.
func (s *stand) repeatFailures(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		pod := newPod(namespace, "fits-nowhere", "100m")
		// Not for a reason that a look at a single node would tell: then a change of a node would be no reason to try again.
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no-pod": "has-this"}},
			}},
		}}
		s.create(t, pod)
	}
	ofFailures := metav1.ListOptions{FieldSelector: "reason=FailedScheduling"}
	round := 0
	what := "a repeated FailedScheduling event in each of " + strings.Join(namespaces, ", ")
	s.await(t, what, func(ctx context.Context) (bool, error) {
		// A change of a node's labels is a reason to look again.
		round++
		patch := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, round)
		nodes := s.client.CoreV1().Nodes()
		if _, err := nodes.Patch(ctx, s.nodes[0], types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return false, err
		}
		for _, namespace := range namespaces {
			events, err := s.client.EventsV1().Events(namespace).List(ctx, ofFailures)
			if err != nil {
				return false, err
			}
			if !hasSeries(events.Items) {
				return false, nil
			}
		}
		return true, nil
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

// readMetrics reads the scheduler's metrics as Prometheus does, with the token of a service account that may.
func (s *stand) readMetrics(t *testing.T, scheduler *localcluster.Scheduler) {
	t.Helper()
	prometheus := leastprivilege.ServiceAccount{Namespace: metav1.NamespaceDefault, Name: "prometheus"}
	meta := metav1.ObjectMeta{Name: prometheus.Name}
	_, err := s.client.CoreV1().ServiceAccounts(prometheus.Namespace).Create(
		t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: prometheus.Namespace, Name: prometheus.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The scheduler would keep a refusal for a while, too.
	s.awaitAllowed(t, prometheus.User()+" to get /metrics", authorizationv1.SubjectAccessReviewSpec{
		User:                  prometheus.User(),
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	})
	if code, body := s.get(t, scheduler.URL()+"/metrics", s.token(t, prometheus)); code != http.StatusOK ||
		!strings.Contains(body, "scheduler_schedule_attempts_total") {
		t.Errorf("/metrics with a token that may read it: status %d, want 200 and the scheduler's metrics", code)
	}
	for whose, token := range map[string]string{"of somebody who may not": s.token(t, account), "of nobody": ""} {
		if code, _ := s.get(t, scheduler.URL()+"/metrics", token); code != http.StatusForbidden {
			t.Errorf("/metrics with the token %s: status %d, want 403", whose, code)
		}
	}
	if code, _ := s.get(t, scheduler.URL()+"/healthz", ""); code != http.StatusOK {
		t.Errorf("/healthz without a token, as kubelet asks: status %d, want 200", code)
	}
}

// get asks the scheduler itself.
func (s *stand) get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", s.plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
