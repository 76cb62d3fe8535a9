// SPDX-License-Identifier: Apache-2.0

// Package newerservers upgrades a control plane below a running scheduler, from the API server of 1.23 to those of later
// releases, and tests what the scheduler does under each. NEWER_APISERVERS has their versions, in order. It needs programs
// that were built before: make test TESTS=newer-servers.
package newerservers

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	root        = "../../../manifests/"
	pods, nodes = 200, 30
	// errorsAllowed is how often a line of the scheduler's source may log an error, which all have a cause that passes.
	errorsAllowed = 3
	// leases outlive the start of an API server on a busy machine.
	leases = "leaderElection: {leaderElect: true, leaseDuration: 60s, renewDeadline: 50s, retryPeriod: 1s}\n" +
		"podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1\n"
	loaded = `  - schedulerName: loaded
    plugins:
      queueSort: {disabled: [{name: PrioritySort}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: NodeLoad, weight: 50}]}
    pluginConfig:
      - {name: NodeLoad, args: {prometheus: {endpoints: ["%s"]}, resources: [{name: cpu}]}}
`
	volumes = `
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local}, provisioner: example.com, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: example.com}, spec: {storageCapacity: true}}
---
{apiVersion: storage.k8s.io/v1beta1, kind: CSIStorageCapacity, metadata: {name: capacity, namespace: default}, storageClassName: local,
  nodeTopology: {matchLabels: {kubernetes.io/hostname: orion-07}}, capacity: 10Gi}
`
	claim = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: default},
  spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 5Gi}}}}
`
	volume = `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: local,
  capacity: {storage: 5Gi}, claimRef: {name: data, namespace: default}, csi: {driver: example.com, volumeHandle: data}}}
`
)

var duration = flag.Duration("duration", 0, "time for which everything is repeated under each newer API server")

var shared = cluster.Shared{Aggregation: true}

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is a control plane with the scheduler, and what the API server of 1.23 led to.
type stand struct {
	*cluster.Cluster
	whole     *testing.T
	config    string
	scheduler *localcluster.Scheduler
	// minor is the release of the API server.
	minor  int
	placed map[string]string
}

// TestUpgrades replaces the API server by each newer one, on the same store.
func TestUpgrades(t *testing.T) {
	versions := strings.Fields(os.Getenv("NEWER_APISERVERS"))
	if len(versions) == 0 {
		t.Fatal("NEWER_APISERVERS names no release; next: make test TESTS=newer-servers")
	}
	s := &stand{Cluster: shared.Get(t), whole: t, minor: 23}
	for i := range nodes {
		node := cluster.ShapedNode(i)
		if i >= nodes-2 {
			node.Labels["loads"] = "measured"
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, localcluster.LoadAnnotation+"cpu", []string{"0.1", "0.9"}[i-nodes+2])
		}
		s.CreateNodes(t, node)
	}
	a := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "later-a", Labels: map[string]string{"later": "fields", "only": "a"}}}
	b := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "later-b", Labels: map[string]string{"later": "fields"}}}
	b.Spec.Taints = []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
	s.CreateNodes(t, a, b)
	s.CreateFrom(t, root+"crds", root+"rbac/coscheduling.yaml")
	s.Create(t, volumes)
	endpoint := "http://" + cluster.FreeAddress(t, "127.0.0.2")
	s.ServeLoads(t, endpoint)
	s.config = filepath.Join(t.TempDir(), "config.yaml")
	cluster.Write(t, s.config, strings.Replace(cluster.RankedConfig(nodes), "  - plugins:\n", "  - schedulerName: default-scheduler\n    plugins:\n"+
		"      queueSort: {disabled: [{name: PrioritySort}]}\n      multiPoint: {enabled: [{name: Coscheduling}]}\n", 1)+
		fmt.Sprintf(loaded, endpoint)+leases)
	s.start()
	t.Run("1.23", s.everything)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { s.upgrade(t, version) })
	}
}

// start starts the scheduler, which outlives the subtest that starts it: the next upgrade happens below it.
func (s *stand) start() {
	t := s.whole
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), s.config, localcluster.SchedulerOptions{LeaderElection: true})
}

// upgrade replaces the API server below the running scheduler, and then kills that and starts it again.
func (s *stand) upgrade(t *testing.T, version string) {
	program := cluster.Program(t, "KUBE_APISERVER") + "-" + version
	if err := s.ReplaceAPIServer(t.Context(), program, "--feature-gates="+gates[version]); err != nil {
		t.Fatal(err)
	}
	is, err := s.Client().Discovery().ServerVersion()
	if err != nil || is.GitVersion != "v"+version {
		t.Fatalf("the API server says that it is %v, %v", is, err)
	}
	if s.minor, err = strconv.Atoi(is.Minor); err != nil {
		t.Fatal(err)
	}
	before := s.holder(t)
	s.AwaitBound(t, s.CreatePod(t, localcluster.NewPod("during-the-upgrade", "")))
	if after := s.holder(t); after != before {
		t.Errorf("%s led before the upgrade, and %s does after it", before, after)
	}
	s.removePods(t)
	if err := s.scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.Await(t, "the new scheduler to lead", func() error { return cluster.Unless(s.holder(t) != before, "%s holds the lease", before) })
	s.everything(t)
}

func (s *stand) holder(t *testing.T) string {
	t.Helper()
	lease, err := s.Client().CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("nobody holds the lease: %v", err)
	}
	return *lease.Spec.HolderIdentity
}

func (s *stand) everything(t *testing.T) {
	for began, first := time.Now(), true; first || s.minor > 23 && time.Since(began) < *duration && !t.Failed(); first = false {
		t.Run("shapes", s.shapes)
		t.Run("events", s.events)
		t.Run("preemption", s.preemption)
		t.Run("capacity", s.capacity)
		t.Run("gang", s.gang)
		t.Run("load", s.load)
		t.Run("fields", s.laterFields)
	}
	counts := map[string]int{}
	log := cluster.Read(t, s.scheduler.LogFile())
	for _, line := range regexp.MustCompile(`(?m)^E\d.*? (\S+:\d+)\] .*$`).FindAllStringSubmatch(log, -1) {
		if counts[line[1]]++; counts[line[1]] == errorsAllowed+1 {
			t.Errorf("the scheduler repeats: %s", line[0])
		}
	}
	if t.Failed() {
		t.Log(cluster.Tails(s.scheduler.LogFile()))
	}
}

func (s *stand) removePods(t *testing.T) {
	t.Helper()
	s.Kubectl(t, t.Context(), "delete", "pods", "--all", "--now")
}

// shapes checks that pods go to the nodes to which the same scheduler bound them under 1.23.
func (s *stand) shapes(t *testing.T) {
	watched, err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	placed := map[string]string{}
	for i := range pods {
		pod := s.CreatePod(t, cluster.ShapedPod(i))
		placed[pod.Name] = cluster.AwaitRunning(t, watched, pod.Name)
	}
	s.removePods(t)
	if s.placed == nil {
		s.placed = placed
	}
	if !maps.Equal(placed, s.placed) {
		t.Errorf("they are on %v, and under 1.23 they were on %v", placed, s.placed)
	}
}

// events checks that the events of a pod that is tried again are counted in one, and that its record says why it waits.
func (s *stand) events(t *testing.T) {
	pod := localcluster.NewPod("waits", "")
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "missing"}},
	}}}}
	pod = s.CreatePod(t, pod)
	tries := 0
	s.Await(t, "an event that is counted", func() error {
		// A change of a node's labels wakes the pod.
		tries++
		s.Kubectl(t, t.Context(), "label", "node", "later-a", "--overwrite", "try="+fmt.Sprint(tries))
		list, err := s.Client().EventsV1().Events(pod.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.uid=" + string(pod.UID)})
		if err != nil {
			return err
		}
		counted := slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "FailedScheduling" && e.Series != nil && e.Series.Count >= 2
		})
		return cluster.Unless(counted, "there are only %v", list.Items)
	})
	content, err := s.Get(t.Context(), s.scheduler.URL()+"/scheduling/pods/default/waits")
	if err != nil || !strings.Contains(string(content), "None of 32 nodes fits") {
		t.Errorf("the record is %s, %v", content, err)
	}
	s.removePods(t)
}

func (s *stand) preemption(t *testing.T) {
	large := func(name, class string) *corev1.Pod {
		pod := localcluster.NewPod(name, "")
		pod.Spec.PriorityClassName, pod.Spec.NodeSelector = class, map[string]string{"only": "a"}
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("6")
		return s.CreatePod(t, pod)
	}
	s.AwaitBound(t, large("low", ""))
	s.AwaitBound(t, large("high", "system-cluster-critical"))
	s.removePods(t)
}

// capacity checks that a pod with a volume goes to the only node whose driver has room for it, which is published since 1.23.
func (s *stand) capacity(t *testing.T) {
	s.Create(t, claim)
	pod := localcluster.NewPod("data", "")
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	s.CreatePod(t, pod)
	claims := s.Client().CoreV1().PersistentVolumeClaims(pod.Namespace)
	s.Await(t, "the scheduler to choose a node for the volume", func() error {
		claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return cluster.Unless(claim.Annotations["volume.kubernetes.io/selected-node"] == "orion-07", "the annotations are %v", claim.Annotations)
	})
	// As the provisioner and the controller of volumes do.
	s.Create(t, volume)
	if _, err := claims.Patch(t.Context(), "data", types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "data"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"status": {"phase": "Bound"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if node := s.AwaitBound(t, pod); node != "orion-07" {
		t.Errorf("it is bound to %s", node)
	}
	s.removePods(t)
	s.Kubectl(t, t.Context(), "delete", "persistentvolumeclaims/data", "persistentvolumes/data", "--wait=false")
	s.Kubectl(t, t.Context(), "patch", "persistentvolumeclaims/data", "--type=merge", `-p={"metadata": {"finalizers": null}}`)
	s.Kubectl(t, t.Context(), "patch", "persistentvolumes/data", "--type=merge", `-p={"metadata": {"finalizers": null}}`)
}

func (s *stand) gang(t *testing.T) {
	s.Create(t, "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: gang, namespace: default}\nspec: {minMember: 3}\n")
	member := func(i int) *corev1.Pod {
		pod := localcluster.NewPod(fmt.Sprintf("gang-%d", i), "")
		pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": "gang"}
		return s.CreatePod(t, pod)
	}
	first, second := member(1), member(2)
	s.AwaitPending(t, first.Namespace, first.Name, "gang")
	for _, pod := range []*corev1.Pod{member(3), first, second} {
		s.AwaitBound(t, pod)
	}
	s.removePods(t)
	s.Kubectl(t, t.Context(), "delete", "podgroups", "--all")
}

// load checks that NodeLoad avoids the hot one of two nodes.
func (s *stand) load(t *testing.T) {
	pod := localcluster.NewPod("load", "loaded")
	pod.Spec.NodeSelector = map[string]string{"loads": "measured"}
	if node := s.AwaitBound(t, s.CreatePod(t, pod)); node != "orion-28" {
		t.Errorf("it is bound to %s, whose CPU is hot", node)
	}
	s.removePods(t)
}
