// SPDX-License-Identifier: Apache-2.0

// Package scenarios runs the scenarios of docs/scenarios.md with the scheduler and Kubernetes' controllers. It needs
// programs that were built before, so it has its own make target.
package scenarios

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/build/localcluster/supervisor"
	"kube-scheduler-fork/test/cluster"
)

const (
	root     = "../../.."
	page     = "docs/scenarios.md"
	examples = "manifests/examples/scenarios/"
)

var shared cluster.Shared

func TestMain(m *testing.M) {
	// It is for all tests, but applies only to pods of classes that one of them creates.
	shared.AdmissionConfiguration, _ = filepath.Abs(root + "/" + examples + "classes/admission.yaml")
	cluster.Main(m, &shared)
}

// stand is the control plane with the controllers that the scenarios
// need: those of Deployments and Jobs, of lost nodes and their pods, of quotas, and of disruption budgets.
type stand struct {
	*cluster.Cluster
	processes *supervisor.Supervisor
}

func newStand(t *testing.T) *stand {
	t.Helper()
	// The paths in the page's commands are relative to this directory.
	t.Chdir(root)
	s := &stand{Cluster: shared.Get(t)}
	s.processes = s.StartControllers(t, "deployment,replicaset,job,nodelifecycle,podgc,resourcequota,disruption",
		"deployments,replicasets,jobs,resourcequotas,limitranges,poddisruptionbudgets")
	return s
}

// follow runs the kubectl commands of a section of the page.
func (s *stand) follow(t *testing.T, heading string) {
	t.Helper()
	for _, command := range s.commands(t, page, heading) {
		s.Kubectl(t, t.Context(), command...)
	}
}

// commands returns the arguments of the kubectl commands in a section of a page.
func (s *stand) commands(t *testing.T, page, heading string) (commands [][]string) {
	t.Helper()
	_, section, found := strings.Cut(cluster.Read(t, page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, command := range regexp.MustCompile(`(?m)^    kubectl (.+)$`).FindAllStringSubmatch(section, -1) {
		commands = append(commands, strings.Fields(command[1]))
	}
	if len(commands) == 0 {
		t.Fatalf("the section %q of %s has no command", heading, page)
	}
	return commands
}

// zonesOf returns the number of pods of an app in each zone, without those that are being deleted.
func (s *stand) zonesOf(t *testing.T, app string) map[string]int {
	t.Helper()
	nodes, err := s.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	zone := map[string]string{"": "none"}
	for _, node := range nodes.Items {
		zone[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	count := map[string]int{}
	for _, pod := range s.pods(t, app) {
		count[zone[pod.Spec.NodeName]]++
	}
	return count
}

// pods returns the pods of an app that are not being deleted.
func (s *stand) pods(t *testing.T, app string) []corev1.Pod {
	t.Helper()
	list, err := s.Client().CoreV1().Pods(corev1.NamespaceAll).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// awaitZones waits until each zone has the expected number of pods of an app.
func (s *stand) awaitZones(t *testing.T, app string, want map[string]int) {
	t.Helper()
	s.Await(t, fmt.Sprintf("the pods of %s to be in the zones %v", app, want), func() error {
		is := s.zonesOf(t, app)
		return cluster.Unless(maps.Equal(is, want), "they are in %v", is)
	})
}

// startScheduler starts the scheduler with a configuration of the examples, or without a name with the default one.
func (s *stand) startScheduler(t *testing.T, config string) *localcluster.Scheduler {
	t.Helper()
	file := examples + config
	if config == "" {
		file = cluster.WriteConfig(t, "profiles:\n  - schedulerName: default-scheduler\n")
	}
	return s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file)
}

// newNode describes a node with 8 CPUs. With an empty zone it has none.
func newNode(name, zone string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	if zone != "" {
		node.Labels[corev1.LabelTopologyZone] = zone
	}
	node.Status.Capacity = cluster.Resources("8", "32Gi", "110")
	node.Status.Allocatable = node.Status.Capacity
	return node
}

// newPod describes a pod of an app that requests one CPU.
func newPod(namespace, app, name string) *corev1.Pod {
	pod := localcluster.NewPod(name, corev1.DefaultSchedulerName)
	pod.Namespace, pod.Labels = namespace, map[string]string{"app": app}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	return pod
}

// deploy creates a Deployment of such pods.
func (s *stand) deploy(t *testing.T, namespace, app string, replicas int32, change func(*corev1.PodSpec)) {
	t.Helper()
	pod := newPod(namespace, app, app)
	change(&pod.Spec)
	deployment := cluster.NewDeployment(app, replicas, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec})
	_, err := s.Client().AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitCounts waits until the expected numbers of pods of apps are bound and pending.
func (s *stand) awaitCounts(t *testing.T, when string, want map[string][2]int) {
	t.Helper()
	s.Await(t, fmt.Sprintf("pods of apps that run, and that wait, %s: %v", when, want), func() error {
		is := map[string][2]int{}
		for app := range want {
			var count [2]int
			for _, pod := range s.pods(t, app) {
				if pod.Spec.NodeName != "" {
					count[0]++
				} else {
					count[1]++
				}
			}
			is[app] = count
		}
		return cluster.Unless(maps.Equal(is, want), "they are %v", is)
	})
}

// refused checks that the API server refuses a pod.
func (s *stand) refused(t *testing.T, pod *corev1.Pod, words string) {
	t.Helper()
	s.Await(t, pod.Name+" to be refused", func() error {
		// A quota refuses pods only after the quota controller has counted.
		_, err := s.Client().CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return cluster.Unless(err != nil && strings.Contains(err.Error(), words), "the API server says: %v, want %q", err, words)
	})
}
