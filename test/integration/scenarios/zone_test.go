// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/build/localcluster/supervisor"
	"kube-scheduler-fork/test/cluster"
)

func TestAZoneFailsAndComesBack(t *testing.T) {
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", "zone-a"), newNode("node-2", "zone-a"), newNode("node-3", "zone-b"), newNode("node-4", "zone-b"))
	s.create(t, newNode("node-5", "zone-c"), newNode("node-6", "zone-c"))
	kubelets := s.startKubelets(t)
	s.startScheduler(t, "fault-domains/scheduler.yaml")
	s.follow(t, "A zone fails and comes back")
	s.awaitZones(t, "web", map[string]int{"zone-a": 4, "zone-b": 4, "zone-c": 4})
	for _, app := range []string{"api", "database"} {
		s.awaitZones(t, app, map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2})
	}

	began := time.Now()
	since := func() time.Duration { return time.Since(began).Round(time.Second) }
	if err := s.processes.Kill(kubelets); err != nil {
		t.Fatal(err)
	}
	for count := 1; count <= 2; count++ {
		s.Await(t, fmt.Sprintf("%d of the nodes to have their pods evicted", count), func() error {
			tainted := s.tainted(t)
			return cluster.Unless(tainted >= count, "%d are tainted", tainted)
		})
		t.Logf("%s after the zone has failed, %d of its 2 nodes are given up", since(), count)
	}
	s.awaitZones(t, "web", map[string]int{"zone-a": 6, "zone-b": 6})
	s.awaitZones(t, "api", map[string]int{"zone-a": 3, "zone-b": 3})
	t.Logf("%s after the zone has failed, all pods run again that may run elsewhere", since())
	// Its nodes still exist, with none of these pods: one more elsewhere would make a skew of three.
	s.awaitZones(t, "database", map[string]int{"zone-a": 2, "zone-b": 2, "none": 2})
	s.Await(t, "the scheduler to say why the others wait", func() error {
		for _, pod := range s.pods(t, "database") {
			if pod.Spec.NodeName == "" && !strings.Contains(cluster.WhyPending(&pod), "didn't match pod topology spread constraints") {
				return fmt.Errorf("%s: %q", pod.Name, cluster.WhyPending(&pod))
			}
		}
		return nil
	})

	began = time.Now()
	kubelets = s.startKubelets(t)
	s.awaitZones(t, "database", map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2})
	t.Logf("%s after the zone is back, those run there that have waited for it", since())
	s.Await(t, "the pods to be gone that were left in the zone", func() error {
		for _, app := range []string{"web", "api", "database"} {
			list, err := s.Client().CoreV1().Pods(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
			if err != nil {
				return err
			}
			if running := len(s.pods(t, app)); running < len(list.Items) {
				return fmt.Errorf("%d of %s are being deleted", len(list.Items)-running, app)
			}
		}
		return nil
	})
	// Running pods are not moved.
	s.awaitZones(t, "web", map[string]int{"zone-a": 6, "zone-b": 6})
	s.awaitZones(t, "api", map[string]int{"zone-a": 3, "zone-b": 3})

	s.deschedule(t)
	s.awaitZones(t, "web", map[string]int{"zone-a": 4, "zone-b": 4, "zone-c": 4})
	s.awaitZones(t, "api", map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2})
	s.awaitZones(t, "database", map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2})

	// Without its nodes the zone no longer counts for spreading.
	if err := s.processes.Kill(kubelets); err != nil {
		t.Fatal(err)
	}
	s.Kubectl(t, t.Context(), "delete", "nodes", "--selector", corev1.LabelTopologyZone+"=zone-c")
	for _, app := range []string{"web", "api", "database"} {
		for _, pod := range s.pods(t, app) {
			if slices.Contains([]string{"node-5", "node-6"}, pod.Spec.NodeName) {
				s.Kubectl(t, t.Context(), "delete", "pod", pod.Name, "--force", "--grace-period=0")
			}
		}
	}
	s.awaitZones(t, "database", map[string]int{"zone-a": 3, "zone-b": 3})
}

// deschedule runs descheduler once, with the command on the page.
func (s *stand) deschedule(t *testing.T) {
	t.Helper()
	const (
		kubeconfig = "~/.kube/config"
		command    = "descheduler --kubeconfig " + kubeconfig + " --policy-config-file " + examples + "zone/descheduler-policy.yaml"
	)
	if !strings.Contains(cluster.Read(t, page), "    "+command+"\n") {
		t.Fatalf("%s does not have the command %q", page, command)
	}
	arguments := strings.Fields(command)[1:]
	arguments[slices.Index(arguments, kubeconfig)] = s.Kubeconfig()
	// Without an interval it would exit after its first pass, which the supervisor treats as a failure.
	process := cluster.StartProgram(t, s.processes, "descheduler", "DESCHEDULER", append(arguments, "--secure-port=0", "--descheduling-interval=1h", "--v=1")...)
	s.Await(t, "descheduler to have evicted pods", func() error {
		evicted := strings.Count(cluster.Read(t, process.LogFile()), `"Evicted pod"`)
		return cluster.Unless(evicted > 0, "it has evicted none")
	}, process.LogFile())
}

// tainted returns the number of nodes whose pods the node lifecycle controller evicts.
func (s *stand) tainted(t *testing.T) int {
	t.Helper()
	list, err := s.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, node := range list.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute {
				count++
			}
		}
	}
	return count
}

// ownKubelets is the annotation of nodes whose kubelets startKubelets simulates.
const ownKubelets = "example.com/kubelets"

// create creates nodes that the kwok of all others ignores.
func (s *stand) create(t *testing.T, nodes ...*corev1.Node) {
	t.Helper()
	for _, node := range nodes {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, ownKubelets, "own")
		if _, err := s.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// startKubelets starts a kwok for those nodes, and waits until they are ready.
func (s *stand) startKubelets(t *testing.T) *supervisor.Process {
	t.Helper()
	process := cluster.StartProgram(t, s.processes, "kubelets", "KWOK", "--kubeconfig="+s.Kubeconfig(), "--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector="+ownKubelets+"=own", "--node-lease-duration-seconds=40",
		"--cidr=10.245.0.0/16", "--node-ip="+supervisor.Loopback)
	s.Await(t, "the nodes to be ready", func() error {
		list, err := s.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			if !localcluster.NodeReady(&node) || len(node.Spec.Taints) > 0 {
				return fmt.Errorf("%s is not: taints %v", node.Name, node.Spec.Taints)
			}
		}
		return nil
	}, process.LogFile())
	return process
}
